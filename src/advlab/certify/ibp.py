"""Interval bounds (Gowal et al. 2018)."""

from torch import Tensor

from ._graph.graph import Graph
from ._graph.interval import over_intervals, propagate
from ._graph.margin_bounds import worst_margins
from ._graph.region import Region
from .base import Certificate


class IBP(Certificate):
    """An interval for every number in the network; margins are taken through the last layers.

    Costs two passes of the network, and is loose for networks that were not trained for it.
    """

    name = "ibp"

    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        return worst_margins(graph, region, y, over_intervals(propagate(graph, region)))
