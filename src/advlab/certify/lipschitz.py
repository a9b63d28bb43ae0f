"""Lipschitz constants by the product of layer norms."""

import math

import torch
from torch import Tensor

from ._graph.backward import Cross, Crossing, total
from ._graph.graph import Graph, Map, MaxPool, Node, Sum
from ._graph.margin_bounds import worst_margins
from ._graph.region import Region
from .base import Certificate

ORDERS = (1.0, 2.0, math.inf)
ORDER = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


class Lipschitz(Certificate):
    """The margin at x plus how far it can rise: radius times norms of the layers, multiplied.

    The last layers enter by the dual norm of their rows' differences, the others by operator norms
    that are never below the true ones: exact for dense layers, an upper bound for convolutions. A
    ball lies in larger balls of the other norms; the best of the three chains counts.
    """

    name = "lipschitz"

    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        values = graph.values(region.center)
        found = [
            worst_margins(graph, region, y, _reaching(graph, region, values, order))
            for order in ORDERS
        ]
        return torch.stack(found).amin(0)


def constants(graph: Graph, order: float, like: Tensor) -> list[float]:
    """How much faster than the input each value can move, both measured in one norm.

    Only for values that something nonlinear needs; the others are not a number.
    """
    wanted = set().union(*(graph.behind(k) for k in graph.nonlinear()))
    found = [1.0]
    for k, node in enumerate(graph.nodes[1:], start=1):
        before = [found[i] for i in node.inputs]
        found.append(_factor(node, before, order, like) if k in wanted else math.nan)
    return found


def _factor(node: Node, before: list[float], order: float, like: Tensor) -> float:
    if isinstance(node, Map):
        return node.operator_norm(order, like) * before[0]
    if isinstance(node, Sum):
        return sum(abs(w) * c for w, c in zip(node.weights, before, strict=True))
    if isinstance(node, MaxPool) and order < math.inf:
        return before[0] * _overlap(node) ** (1 / order)
    return before[0]


def _overlap(node: MaxPool) -> int:
    """How many windows a pixel can be in."""
    spans = zip(node.kernel, node.stride, node.dilation, strict=True)
    return math.prod(math.ceil(k / s) if d == 1 else k for k, s, d in spans)


def _reaching(graph: Graph, region: Region, values: list[Tensor], order: float) -> Cross:
    """<a, value> at x, and ||a||_dual times what the value can move."""
    rates = constants(graph, order, region.center)
    dimension = region.center[0].numel()
    wider = max(0.0, 1 / order - 1 / ORDER[region.ball.norm])
    reach = region.ball.radius * dimension**wider
    dual = {1.0: math.inf, 2.0: 2.0, math.inf: 1.0}[order]

    def cross(k: int, a: Tensor, rows: Tensor) -> Crossing:
        terms = a * values[k][rows]
        rise = torch.linalg.vector_norm(a.reshape(len(a), -1), dual, dim=1) * rates[k] * reach
        return Crossing(total(terms) + rise, total(terms.abs()) + rise)

    return cross
