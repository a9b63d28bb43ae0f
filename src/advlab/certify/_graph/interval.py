"""Interval arithmetic through a graph."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .backward import Crossing, Pulled, pull, total, turns, units
from .graph import NONLINEAR, Graph, Map, Node, Sum
from .region import Region
from .relaxations import Interval

Refine = Callable[[int, list[Interval], Interval], Interval]
"""May narrow the interval of the value at a place, given those of all places before it."""


def propagate(graph: Graph, region: Region, refine: Refine | None = None) -> list[Interval]:
    """An interval for every number that the network computes, over the whole threat set.

    An l1 or l2 ball is met by the first linear operations as a ball (dual norms), then by
    intervals. `refine` is asked about the inputs of nonlinear operations.
    """
    asked = {i for k in graph.nonlinear() for i in graph.nodes[k].inputs}
    balls = _met_as_a_ball(graph) if region.ball.norm != "linf" else set()
    found: list[Interval] = [(region.low, region.high)]
    for k, node in enumerate(graph.nodes[1:], start=1):
        box = _through(node, [found[i] for i in node.inputs])
        if k in balls:
            box = _cut(box, _by_dual_norm(graph, k, region))
        if refine is not None and k in asked:
            box = _cut(box, refine(k, found, box))
        found.append(box)
    return found


def over_intervals(found: list[Interval]) -> Callable[[int, Tensor, Tensor], Crossing]:
    """The crossing of interval bounds: each value at whichever end of its interval is worse."""

    def cross(k: int, a: Tensor, rows: Tensor) -> Crossing:
        low, high = (end[rows] for end in found[k])
        size = total(a.abs() * torch.maximum(low.abs(), high.abs()))
        return Crossing(total(a * torch.where(a > 0, high, low)), size)

    return cross


def _through(node: Node, boxes: list[Interval]) -> Interval:
    if isinstance(node, NONLINEAR):
        # ReLU and max pooling never fall when an input rises.
        return node.apply(boxes[0][0]), node.apply(boxes[0][1])
    if isinstance(node, Map):
        (low, high), size = boxes[0], node.magnitude()
        center, radius = node.apply((low + high) / 2), size.matrix((high - low) / 2)
        radius = radius + 8 * torch.finfo(low.dtype).eps * (center.abs() + radius)
        return center - radius, center + radius
    if not isinstance(node, Sum):
        raise TypeError(type(node).__name__)
    ends = [
        (w * low, w * high) if w >= 0 else (w * high, w * low)
        for w, (low, high) in zip(node.weights, boxes, strict=True)
    ]
    return sum(low for low, _ in ends), sum(high for _, high in ends)  # type: ignore[return-value]


def _cut(box: Interval, other: Interval) -> Interval:
    """The intersection; where rounding leaves nothing of it, the other alone."""
    low, high = torch.maximum(box[0], other[0]), torch.minimum(box[1], other[1])
    return torch.minimum(low, high), torch.maximum(low, high)


def _met_as_a_ball(graph: Graph) -> set[int]:
    """Values linear in the input that something nonlinear in it is computed from."""
    users = [(k, i) for k, node in enumerate(graph.nodes) for i in node.inputs]
    return {i for k, i in users if i > 0 and graph.crossed[k] and not graph.crossed[i]}


def _by_dual_norm(graph: Graph, target: int, region: Region) -> Interval:
    """value(x) +- radius ||w||_dual for each number w'x + b: the same widths for all examples."""
    shape = graph.nodes[target].shape
    numbers = math.prod(shape)
    widths = []
    for part in turns(numbers, graph.widest(target)):
        a = units(torch.arange(numbers)[part], shape, region.center)
        back = pull(graph, Pulled.start(target, a), torch.arange(0), None).waiting
        widths.append(region.ball.dual_norm(back[0]) if 0 in back else total(a) * 0)
    reach = region.ball.radius * torch.cat(widths).reshape(shape)
    center = Graph(graph.nodes[: target + 1]).values(region.center)[-1]
    reach = reach + 8 * torch.finfo(reach.dtype).eps * (center.abs() + reach)
    return center - reach, center + reach
