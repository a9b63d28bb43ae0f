"""Linear networks: the worst margin itself."""

from torch import Tensor

from ..threats import Ball
from ._graph.backward import Crossing
from ._graph.graph import Graph
from ._graph.margin_bounds import worst_margins
from ._graph.region import Region
from .base import Certificate


class LinearExact(Certificate):
    """Each rival class is a linear score z_j - z_y, largest at the set's own maximiser: exact.

    For every network without nonlinear operations, in l1, l2 and linf, with or without a box.
    """

    name = "linear"
    exact = True

    def objection(self, graph: Graph, ball: Ball) -> str | None:
        kinds = {type(graph.nodes[k]).__name__ for k in graph.nonlinear()}
        return f"the network is not linear: it has {', '.join(sorted(kinds))}" if kinds else None

    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        return worst_margins(graph, region, y, _none)


def _none(k: int, a: Tensor, rows: Tensor) -> Crossing:
    raise RuntimeError(f"operation {k} is not linear")
