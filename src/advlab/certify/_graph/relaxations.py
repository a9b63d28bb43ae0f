"""CROWN's linear relaxations of ReLU and max pooling, given bounds of their inputs.

H. Zhang, T.-W. Weng, P.-Y. Chen, C.-J. Hsieh, L. Daniel: Efficient neural network robustness
certification with general activation functions (NeurIPS 2018), table 2 and section 3.3.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .backward import NonlinearBound, Relaxation, row_sums
from .graph import Graph, MaxPool, Node, Relu

Interval = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ReluRelaxation:
    """Two lines with lower z <= relu(z) <= upper z + intercept on [low, high].

    Above: the chord. Below: slope 1 or that of the left branch, whichever leaves less area. Both
    are the function itself where the neuron is stable (active or inactive on the whole interval).
    """

    upper: Tensor
    intercept: Tensor
    lower: Tensor

    @classmethod
    def of(cls, node: Relu, interval: Interval) -> "ReluRelaxation":
        low, high = interval
        width = (high - low).clamp(min=torch.finfo(low.dtype).tiny)
        chord = (high - node.slope * low) / width
        active, inactive = low >= 0, high <= 0
        ones = torch.ones_like(low)
        left = ones * node.slope
        upper = torch.where(active, ones, torch.where(inactive, left, chord))
        intercept = torch.where(active | inactive, 0.0, (1 - chord) * high)
        lower = torch.where(active | (~inactive & (high > -low)), ones, left)
        return cls(upper, intercept, lower)

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound:
        """<a, relu(z)> from above: the upper line where a > 0, the lower one elsewhere."""
        positive = a > 0
        coefficients = a * torch.where(positive, self.upper[rows], self.lower[rows])
        constant = row_sums(a.clamp(min=0) * self.intercept[rows])
        return NonlinearBound(constant, constant.abs(), coefficients)


@dataclass(frozen=True)
class MaxPoolRelaxation:
    """The entry of each window with the highest lower bound is below the maximum, and is the
    maximum where that bound is above all others' upper bounds; else the largest upper bound is
    above it."""

    argmax: Tensor
    """The place of that entry in the flattened image, (n, c, windows)."""
    stable: Tensor
    """Whether it is the maximum everywhere in the set."""
    upper: Tensor
    source: tuple[int, ...]

    @classmethod
    def of(cls, node: MaxPool, interval: Interval) -> "MaxPoolRelaxation":
        low, high = node.windows(interval[0]), node.windows(interval[1])
        best, which = low.max(-1)
        others = high.scatter(-1, which[..., None], -torch.inf)
        c, h, w = node.source
        place = torch.arange(h * w, dtype=low.dtype, device=low.device)
        place = place.reshape(1, 1, h, w).expand(1, c, h, w)
        places = node.windows(place).long().clamp(min=0).expand(len(low), *which.shape[1:], -1)
        argmax = places.gather(-1, which[..., None])[..., 0]
        return cls(argmax.flatten(2), best >= others.amax(-1), high.amax(-1), node.source)

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound:
        """<a, maxima> from above."""
        linear = self.stable[rows] | (a <= 0)
        constant = torch.where(linear, 0.0, a * self.upper[rows])
        kept = torch.where(linear, a, 0.0).flatten(2)
        c, h, w = self.source
        coefficients = a.new_zeros(len(a), c, h * w)
        coefficients = coefficients.scatter_add(2, self.argmax[rows].expand(len(a), -1, -1), kept)
        magnitude = row_sums(constant.abs())
        return NonlinearBound(row_sums(constant), magnitude, coefficients.reshape(len(a), c, h, w))


def linear_relaxation(graph: Graph, intervals: list[Interval]) -> Relaxation:
    """CROWN's relaxation of every nonlinear operation, made from the interval of its input.

    Each is made when it is first needed, so the list may still grow.
    """
    known: dict[int, ReluRelaxation | MaxPoolRelaxation] = {}

    def relaxation(k: int, a: Tensor, rows: Tensor) -> NonlinearBound:
        if k not in known:
            node = graph.nodes[k]
            known[k] = _relaxation_of(node, intervals[node.inputs[0]])
        return known[k].bound(a, rows)

    return relaxation


def interval_relaxation(intervals: list[Interval]) -> Relaxation:
    """Interval bounds as a relaxation: each value at whichever end of its interval is worse."""

    def relaxation(k: int, a: Tensor, rows: Tensor) -> NonlinearBound:
        low, high = (end[rows] for end in intervals[k])
        magnitude = row_sums(a.abs() * torch.maximum(low.abs(), high.abs()))
        return NonlinearBound(row_sums(a * torch.where(a > 0, high, low)), magnitude)

    return relaxation


def _relaxation_of(node: Node, interval: Interval) -> ReluRelaxation | MaxPoolRelaxation:
    if isinstance(node, Relu):
        return ReluRelaxation.of(node, interval)
    if isinstance(node, MaxPool):
        return MaxPoolRelaxation.of(node, interval)
    raise TypeError(type(node).__name__)
