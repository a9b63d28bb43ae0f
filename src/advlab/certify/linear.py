"""Linear networks: the worst margin itself."""

from torch import Tensor

from ..threats import Threat
from ._graph.backward import NonlinearBound
from ._graph.graph import Graph
from ._graph.input_sets import InputSets
from ._graph.margin_bounds import worst_margins
from .base import Certificate


class LinearExact(Certificate):
    """The worst margin of a network without nonlinear operations: exact.

    The margin against a rival class j is a linear function, <w_j - w_y, x> + b_j - b_y, and its
    maximum over the threat set is the set's support function at w_j - w_y.

    Example:
        >>> from torch import nn
        >>> from advlab.certify import LinearExact
        >>> from advlab.threats import Ball
        >>> LinearExact().worst_margin(nn.Linear(784, 10), x, y, Ball("l2", 0.5, box=(0, 1)))
    """

    name = "linear"
    exact = True

    def unsupported(self, graph: Graph, ball: Threat) -> str | None:
        kinds = {type(graph.nodes[k]).__name__ for k in graph.nonlinear()}
        return f"the network is not linear: it has {', '.join(sorted(kinds))}" if kinds else None

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        return worst_margins(graph, sets, y, _no_relaxation)


def _no_relaxation(k: int, a: Tensor, rows: Tensor) -> NonlinearBound:
    raise RuntimeError(f"operation {k} is not linear")
