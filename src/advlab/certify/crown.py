"""Backward linear relaxation: CROWN and CROWN-IBP.

H. Zhang, T.-W. Weng, P.-Y. Chen, C.-J. Hsieh, L. Daniel: Efficient neural network robustness
certification with general activation functions (NeurIPS 2018), arXiv:1811.00866.

H. Zhang, H. Chen, C. Xiao, S. Gowal, R. Stanforth, B. Li, D. Boning, C.-J. Hsieh: Towards stable
and efficient training of verifiably robust neural networks (ICLR 2020), arXiv:1906.06316.

The lines above and below each ReLU are in `_graph/relaxations.py`, the backward pass in
`_graph/backward.py`.
"""

import math
from collections.abc import Iterator

import torch
from pydantic import PositiveFloat
from torch import Tensor

from ..threats import Threat
from ._graph.backward import (
    LinearBound,
    Relaxation,
    chunks,
    propagate_backward,
    unit_vectors,
)
from ._graph.graph import Graph, Interval, Nonlinear, Sum
from ._graph.input_sets import InputSets
from ._graph.interval import propagate_intervals, tighter_by_norm
from ._graph.margin_bounds import upper_bound, worst_margins
from ._graph.relaxations import interval_relaxation, linear_relaxation
from ._graph.rounding import rounding_errors
from .base import Certificate

ALONE = 2**16
"""Coefficients of one example from which it is done alone."""


class CrownIBP(Certificate):
    """Linear bounds of the margins, propagated back through relaxations made from intervals.

    Each ReLU lies between two lines on the interval of its input (`ReluRelaxation`). Replacing it
    by the one that makes the margin larger leaves a linear function of the input, whose maximum
    over the threat set is the set's support function. The intervals are those of IBP, so the cost
    is that of one backward pass per class. Never looser than IBP, whose bound is taken where it is
    smaller.

    Example:
        >>> from advlab.certify import CrownIBP
        >>> from advlab.threats import Ball
        >>> CrownIBP().worst_margin(model, x, y, Ball("linf", 8 / 255, box=(0, 1)))
    """

    name = "crown_ibp"

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        return _margin_bound(graph, sets, y, propagate_intervals(graph, sets))


class Crown(Certificate):
    """The same, with the intervals of hidden neurons found by backward propagation as well.

    Never looser than CROWN-IBP, whose bound is taken where it is smaller. Neurons that interval
    bounds show to be stable are left alone, the others are done in chunks, so memory stays flat.

    Args:
        work: Multiplications per example at most; a larger network is refused.

    Example:
        >>> from advlab.certify import Crown
        >>> from advlab.threats import Ball
        >>> Crown().worst_margin(model, x, y, Ball("l2", 0.5))
    """

    name = "crown"

    work: PositiveFloat = 3e10

    def unsupported(self, graph: Graph, ball: Threat) -> str | None:
        asked = {i for k in graph.nonlinear() for i in graph.nodes[k].inputs}
        need = sum(
            2 * math.prod(graph.nodes[i].shape) * graph.multiplications(i)
            for i in asked
            if graph.nonlinear_ancestors[i]
        )
        if need <= self.work:
            return None
        return (
            f"it may take {need:.2g} multiplications per example, more than work={self.work:.2g}; "
            "crown_ibp is cheaper"
        )

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        by_intervals = _margin_bound(graph, sets, y, propagate_intervals(graph, sets))
        return torch.minimum(
            by_intervals, _margin_bound(graph, sets, y, crown_intervals(graph, sets))
        )


def _margin_bound(graph: Graph, sets: InputSets, y: Tensor, intervals: list[Interval]) -> Tensor:
    """The better of linear and interval relaxation, both from the same hidden bounds."""
    errors = rounding_errors(graph, intervals)
    return torch.minimum(
        worst_margins(graph, sets, y, linear_relaxation(graph, intervals), errors),
        worst_margins(graph, sets, y, interval_relaxation(intervals)),
    )


def crown_intervals(graph: Graph, sets: InputSets) -> list[Interval]:
    """Intervals of all values, those of unstable neurons by linear relaxation."""
    made: list[Relaxation] = []

    def refine(k: int, found: list[Interval], box: Interval) -> Interval:
        if not graph.nonlinear_ancestors[k] and _already_tight(graph, k, sets):
            return box
        if not made:
            # The list grows as the network is passed, and relaxations are made when first needed.
            made.append(linear_relaxation(graph, found))
        return _backward_interval(graph, k, sets, made[0], box)

    return propagate_intervals(graph, sets, refine)


def _already_tight(graph: Graph, target: int, sets: InputSets) -> bool:
    """Whether interval propagation leaves nothing to gain for a value linear in the input: it used
    the dual norm, or the set is its interval and at most one layer mixes numbers."""
    if not sets.threat.within_radius:
        return False
    if tighter_by_norm(sets):
        return True
    mixing = [graph.nodes[k] for k in graph.ancestors(target) if k > 0]
    mixing = [node for node in mixing if isinstance(node, Sum) or node.fan_in > 1]  # type: ignore[attr-defined]
    return len(mixing) <= 1


def _backward_interval(
    graph: Graph, target: int, sets: InputSets, relaxation: Relaxation, box: Interval
) -> Interval:
    """Both ends for the neurons that matter, by pairs of neuron and example: all that can move, or
    those that can have either sign if nothing but ReLU and max pooling is made of them.

    Up to the last nonlinear operation before them, all examples share the coefficients.
    """
    low, high = (end.reshape(len(end), -1).clone() for end in box)
    users = [node for node in graph.nodes if isinstance(node, Nonlinear) and target in node.inputs]
    wanted = (low < 0) & (high > 0) if all(u.by_sign for u in users) else low < high
    neurons, rows = wanted.T.nonzero(as_tuple=True)
    unstable, which = neurons.unique_consecutive(return_inverse=True)
    shape, width = graph.nodes[target].shape, graph.max_width(target)
    for few in chunks(len(unstable), width):
        a = unit_vectors(unstable[few], shape, sets.center)
        shared = propagate_backward(graph, LinearBound.of(target, a), rows, None)
        pairs = ((which >= few.start) & (which < few.stop)).nonzero()[:, 0]
        for p, r in _batches(pairs, rows, width):
            own, i = which[p] - few.start, neurons[p]
            up, down = shared.rows(own), shared.rows(own, -1.0)
            high[r, i] = upper_bound(graph, up, r, sets, relaxation, exact=False)
            low[r, i] = -upper_bound(graph, down, r, sets, relaxation, exact=False)
    return low.reshape(box[0].shape), high.reshape(box[0].shape)


def _batches(pairs: Tensor, rows: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs to be done at once and their rows: one example at a time where that is work enough.

    A single row is broadcast over its pairs, which saves a copy of its relaxation for each.
    """
    if len(pairs) * width < len(rows.unique()) * ALONE:
        for part in chunks(len(pairs), width):
            yield pairs[part], rows[pairs[part]]
        return
    ordered = pairs[rows[pairs].argsort(stable=True)]
    for same in ordered.split(rows[ordered].unique_consecutive(return_counts=True)[1].tolist()):
        for part in chunks(len(same), width):
            yield same[part], rows[same[:1]]
