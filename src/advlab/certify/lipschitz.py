"""Lipschitz constants by the product of layer norms."""

import math

import torch
from torch import Tensor

from ..threats import Threat
from ..threats.norms import ORDER, dual_order, enclosing_exponent
from ._graph.backward import NonlinearBound, Relaxation, row_sums
from ._graph.graph import Affine, Graph, Node, Nonlinear, Sum
from ._graph.input_sets import InputSets
from ._graph.margin_bounds import worst_margins
from .base import Certificate


class Lipschitz(Certificate):
    """The margin at x plus how far it can rise: radius times norms of the layers, multiplied.

    If ||x' - x||_p <= r, then a value computed by layers of operator norms L_1, ..., L_k moves by
    at most r L_1 ... L_k in the p-norm (Szegedy et al. 2014, arXiv:1312.6199, section 4.3). The
    last layers enter by the dual norm of their rows' differences, the others by operator norms that
    are never below the true ones: exact for dense layers, an upper bound for convolutions. A ball
    lies in larger balls of the other norms; the best of the chains in l1, l2 and linf counts.

    Example:
        >>> from advlab.certify import Lipschitz
        >>> from advlab.threats import Ball
        >>> Lipschitz().worst_margin(model, x, y, Ball("l2", 0.1))
    """

    name = "lipschitz"

    def unsupported(self, graph: Graph, ball: Threat) -> str | None:
        if not ball.within_radius:
            return f"{type(ball).__name__} does not state that it lies within its radius in a norm"
        nodes = (graph.nodes[k] for k in graph.nonlinear())
        steep = {type(node).__name__ for node in nodes if _rate(node, 2.0) is None}
        return f"no Lipschitz constant is known for {', '.join(sorted(steep))}" if steep else None

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        values = graph.values(sets.center)
        found = [
            worst_margins(graph, sets, y, _lipschitz_relaxation(graph, sets, values, order))
            for order in ORDER.values()
        ]
        return torch.stack(found).amin(0)


def constants(graph: Graph, order: float, like: Tensor) -> list[float]:
    """How much faster than the input each value can move, both measured in one norm.

    Args:
        graph: The network.
        order: 1, 2 or infinity.
        like: A tensor of the network's dtype.

    Returns:
        One Lipschitz constant per node; not a number for nodes that nothing nonlinear needs.
    """
    wanted = set().union(*(graph.ancestors(k) for k in graph.nonlinear()))
    found = [1.0]
    for k, node in enumerate(graph.nodes[1:], start=1):
        before = [found[i] for i in node.inputs]
        found.append(_constant(node, before, order, like) if k in wanted else math.nan)
    return found


def _constant(node: Node, before: list[float], order: float, like: Tensor) -> float:
    if isinstance(node, Affine):
        return node.operator_norm(order, like) * before[0]
    if isinstance(node, Sum):
        return sum(abs(w) * c for w, c in zip(node.weights, before, strict=True))
    rate = _rate(node, order)
    if rate is None:
        raise TypeError(type(node).__name__)
    return before[0] * rate


def _rate(node: Node, order: float) -> float | None:
    return node.lipschitz(order) if isinstance(node, Nonlinear) else None


def _lipschitz_relaxation(
    graph: Graph, sets: InputSets, values: list[Tensor], order: float
) -> Relaxation:
    """<a, value> at x, and ||a||_dual times what the value can move."""
    rates = constants(graph, order, sets.center)
    wider = enclosing_exponent(order, sets.threat.order)
    reach = sets.threat.radius * sets.center[0].numel() ** wider

    def relaxation(k: int, a: Tensor, rows: Tensor) -> NonlinearBound:
        terms = a * values[k][rows]
        dual = torch.linalg.vector_norm(a.reshape(len(a), -1), dual_order(order), dim=1)
        rise = dual * rates[k] * reach
        return NonlinearBound(row_sums(terms) + rise, row_sums(terms.abs()) + rise)

    return relaxation
