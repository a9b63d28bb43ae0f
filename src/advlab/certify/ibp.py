"""Interval bound propagation."""

from torch import Tensor

from ._graph.graph import Graph
from ._graph.input_sets import InputSets
from ._graph.interval import propagate_intervals
from ._graph.margin_bounds import worst_margins
from ._graph.relaxations import interval_relaxation
from .base import Certificate


class IBP(Certificate):
    """Interval bounds of every number in the network; margins go through the last layers.

    If z lies in [m - r, m + r], then W z + b lies in W m + b +- |W| r, and ReLU and max pooling
    keep the order of the ends. The last affine layers are merged with the margin z_j - z_y. Costs
    two passes of the network, and is loose for networks that were not trained for it.

    S. Gowal et al.: On the effectiveness of interval bound propagation for training verifiably
    robust models (2018), arXiv:1810.12715.

    Example:
        >>> from advlab.certify import IBP
        >>> from advlab.threats import Ball
        >>> IBP().worst_margin(model, x, y, Ball("linf", 0.1)) < 0      # certified robust
    """

    name = "ibp"

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        relaxation = interval_relaxation(propagate_intervals(graph, sets))
        return worst_margins(graph, sets, y, relaxation)
