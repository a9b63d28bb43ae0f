"""Interval bounds (Gowal et al. 2018)."""

from torch import Tensor

from .base import Certificate
from .bounds import worst_margins
from .graph import Graph
from .interval import over_intervals, propagate
from .region import Region


class IBP(Certificate):
    """An interval for every number in the network; margins are taken through the last layers.

    Costs two passes of the network, and is loose for networks that were not trained for it.
    """

    name = "ibp"

    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        return worst_margins(graph, region, y, over_intervals(propagate(graph, region)))
