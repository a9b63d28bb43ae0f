"""Interval arithmetic through a graph."""

import math
from collections.abc import Callable

import torch

from .backward import LinearBound, chunks, propagate_backward, row_sums, unit_vectors
from .graph import Affine, Graph, Interval, Node, Nonlinear, Rearrange, Sum
from .input_sets import InputSets

Refine = Callable[[int, list[Interval], Interval], Interval]
"""May narrow the interval of the value at a place, given those of all places before it."""


def propagate_intervals(
    graph: Graph, sets: InputSets, refine: Refine | None = None
) -> list[Interval]:
    """An interval for every number that the network computes, over the whole threat set.

    Args:
        graph: The network.
        sets: The threat sets. Values that are linear in the input are bounded by the dual norm
            where that is tighter than the intervals of the input.
        refine: Is asked about the inputs of nonlinear operations.

    Returns:
        The lower and upper ends, (n, *shape), for each node of the graph.
    """
    asked = {i for k in graph.nonlinear() for i in graph.nodes[k].inputs}
    by_norm = _first_linear_values(graph) if tighter_by_norm(sets) else set()
    found: list[Interval] = [(sets.low, sets.high)]
    for k, node in enumerate(graph.nodes[1:], start=1):
        box = _image(node, [found[i] for i in node.inputs])
        if k in by_norm:
            box = _intersection(box, _by_dual_norm(graph, k, sets))
        if refine is not None and k in asked:
            box = _intersection(box, refine(k, found, box))
        found.append(box)
    return found


def tighter_by_norm(sets: InputSets) -> bool:
    """Whether the dual norm bounds linear functions better than coordinate intervals do."""
    return sets.threat.within_radius and not math.isinf(sets.threat.order)


def _image(node: Node, boxes: list[Interval]) -> Interval:
    if isinstance(node, Nonlinear):
        return node.image(*boxes)
    if isinstance(node, Rearrange):
        # Its matrix has no negative entry, so ends go to ends; what is only moved is not rounded.
        low, high = (node.matrix(end) for end in boxes[0])
        if node.terms == 1:
            return low, high
        unit = 8 * torch.finfo(low.dtype).eps
        return low - unit * low.abs(), high + unit * high.abs()
    if isinstance(node, Affine):
        (low, high), size = boxes[0], node.absolute
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


def _intersection(box: Interval, other: Interval) -> Interval:
    """What both hold; where rounding leaves nothing of it, the other alone."""
    low, high = torch.maximum(box[0], other[0]), torch.minimum(box[1], other[1])
    return torch.minimum(low, high), torch.maximum(low, high)


def _first_linear_values(graph: Graph) -> set[int]:
    """Values linear in the input that something nonlinear in it is computed from."""
    users = [(k, i) for k, node in enumerate(graph.nodes) for i in node.inputs]
    ancestors = graph.nonlinear_ancestors
    return {i for k, i in users if i > 0 and ancestors[k] and not ancestors[i]}


def _by_dual_norm(graph: Graph, target: int, sets: InputSets) -> Interval:
    """value(x) +- radius ||w||_dual for each number w'x + b: the same widths for all examples."""
    shape = graph.nodes[target].shape
    numbers = torch.arange(math.prod(shape), device=sets.center.device)
    widths = []
    for part in chunks(len(numbers), graph.max_width(target)):
        a = unit_vectors(numbers[part], shape, sets.center)
        start = LinearBound.of(target, a)
        back = propagate_backward(graph, start, numbers[:0], None).coefficients
        widths.append(sets.threat.dual_norm(back[0]) if 0 in back else row_sums(a) * 0)
    reach = sets.threat.radius * torch.cat(widths).reshape(shape)
    center = Graph(graph.nodes[: target + 1]).values(sets.center)[-1]
    reach = reach + 8 * torch.finfo(reach.dtype).eps * (center.abs() + reach)
    return center - reach, center + reach
