"""Linear relaxations of nonlinear operations, given bounds of their inputs.

H. Zhang, T.-W. Weng, P.-Y. Chen, C.-J. Hsieh, L. Daniel: Efficient neural network robustness
certification with general activation functions (NeurIPS 2018), table 2 and section 3.3.

Z. Shi, H. Zhang, K.-W. Chang, M. Huang, C.-J. Hsieh: Robustness verification for transformers
(ICLR 2020), for products and softmax.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from .backward import NonlinearBound, Relaxation, row_sums
from .graph import Graph, Interval, Nonlinear
from .lines import Lines, lines
from .nonlinear import Elementwise, ElementwiseProduct, LogSoftmax, MatrixProduct, Maximum, Relu


class NodeRelaxation(Protocol):
    """Bounds <a, value> of one operation from above, for coefficients a of these rows."""

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound: ...


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
        return NonlinearBound(constant, constant.abs(), (coefficients,))


@dataclass(frozen=True)
class LineRelaxation:
    """A smooth function between two lines (`lines.py`)."""

    lines: Lines

    @classmethod
    def of(cls, node: Elementwise, interval: Interval) -> "LineRelaxation":
        return cls(lines(node.function, interval))

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound:
        between, positive, negative = self.lines, a.clamp(min=0), a.clamp(max=0)
        coefficients = positive * between.upper[rows] + negative * between.lower[rows]
        above = positive * between.upper_intercept[rows]
        below = negative * between.lower_intercept[rows]
        magnitude = row_sums(above.abs() + below.abs())
        return NonlinearBound(row_sums(above + below), magnitude, (coefficients,))


@dataclass(frozen=True)
class MaximumRelaxation:
    """The entry of each window with the highest lower bound is below the maximum, and is the
    maximum where that bound is above all others' upper bounds; else the largest upper bound is
    above it."""

    argmax: Tensor
    """The place of that entry in the flattened example, (n, windows)."""
    stable: Tensor
    """Whether it is the maximum everywhere in the set."""
    upper: Tensor
    source: tuple[int, ...]

    @classmethod
    def of(cls, node: Maximum, interval: Interval) -> "MaximumRelaxation":
        low, high = node.windows(interval[0]), node.windows(interval[1])
        best, which = low.max(-1)
        others = high.scatter(-1, which[..., None], -torch.inf)
        places = node.places.clamp(min=0).expand(len(low), *which.shape[1:], -1)
        argmax = places.gather(-1, which[..., None])[..., 0]
        stable = best >= others.amax(-1)
        return cls(argmax.reshape(len(low), -1), stable, high.amax(-1), node.source)

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound:
        """<a, maxima> from above."""
        linear = self.stable[rows] | (a <= 0)
        constant = torch.where(linear, 0.0, a * self.upper[rows])
        kept = torch.where(linear, a, 0.0).reshape(len(a), -1)
        coefficients = a.new_zeros(len(a), math.prod(self.source))
        coefficients = coefficients.scatter_add(1, self.argmax[rows].expand(len(a), -1), kept)
        magnitude = row_sums(constant.abs())
        coefficients = coefficients.reshape(len(a), *self.source)
        return NonlinearBound(row_sums(constant), magnitude, (coefficients,))


@dataclass(frozen=True)
class ProductRelaxation:
    """x y = x' y' + y' (x - x') + x' (y - y') + (x - x') (y - y'), the last at most r s for middles
    x', y' and half widths r, s of the intervals: the mean of McCormick's two planes."""

    x: Tensor
    y: Tensor
    rest: Tensor

    @classmethod
    def of(cls, node: ElementwiseProduct, x: Interval, y: Interval) -> "ProductRelaxation":
        rest = (x[1] - x[0]) / 2 * ((y[1] - y[0]) / 2)
        return cls((x[0] + x[1]) / 2, (y[0] + y[1]) / 2, rest)

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound:
        x, y = self.x[rows], self.y[rows]
        terms, rest = a * x * y, a.abs() * self.rest[rows]
        magnitude = row_sums(terms.abs() + rest)
        return NonlinearBound(row_sums(rest - terms), magnitude, (a * y, a * x))


@dataclass(frozen=True)
class MatrixProductRelaxation:
    """The same for a product of matrices."""

    x: Tensor
    y: Tensor
    center: Tensor
    size: Tensor
    rest: Tensor

    @classmethod
    def of(cls, node: MatrixProduct, x: Interval, y: Interval) -> "MatrixProductRelaxation":
        xm, ym = (x[0] + x[1]) / 2, (y[0] + y[1]) / 2
        rest = (x[1] - x[0]) / 2 @ ((y[1] - y[0]) / 2)
        return cls(xm, ym, xm @ ym, xm.abs() @ ym.abs(), rest)

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound:
        rest = a.abs() * self.rest[rows]
        constant = row_sums(rest - a * self.center[rows])
        magnitude = row_sums(rest + a.abs() * self.size[rows])
        coefficients = (a @ self.y[rows].mT, self.x[rows].mT @ a)
        return NonlinearBound(constant, magnitude, coefficients)


@dataclass(frozen=True)
class LogSoftmaxRelaxation:
    """<a, x> - (sum of a) L(x) with L = log sum exp, which is convex.

    Below L: its tangent in the middle of the intervals. Above: each exponential by its chord, and
    the logarithm of their sum by its tangent.
    """

    axis: int
    middle: Tensor
    weights: tuple[Tensor, Tensor]
    """Slopes of the lines below and above L."""
    heights: tuple[Tensor, Tensor]
    """Their values in the middle."""

    @classmethod
    def of(cls, node: LogSoftmax, interval: Interval) -> "LogSoftmaxRelaxation":
        (low, high), axis = interval, node.axis
        middle, width = (low + high) / 2, high - low
        shift = high.amax(axis, keepdim=True)
        at_low, at_high = torch.exp(low - shift), torch.exp(high - shift)
        narrow = width <= torch.finfo(low.dtype).eps ** 0.5
        rates = (at_high - at_low) / torch.where(narrow, 1.0, width)
        # On a narrow interval the right end's slope is above the chord's, the left end aside.
        rates = torch.where(narrow, at_high, rates)
        chords = at_low + rates * width / 2
        total = chords.sum(axis, keepdim=True)
        heights = middle.logsumexp(axis, keepdim=True), shift + total.log()
        unit = 8 * low.shape[axis] * torch.finfo(low.dtype).eps
        slack = unit * (1 + middle.abs().amax(axis, keepdim=True) + shift.abs())
        return cls(
            axis, middle, (middle.softmax(axis), rates / total),
            (heights[0] - slack, heights[1] + slack),
        )  # fmt: skip

    def bound(self, a: Tensor, rows: Tensor) -> NonlinearBound:
        total, middle = a.sum(self.axis, keepdim=True), self.middle[rows]
        coefficients, constant, magnitude = a, total * 0, total * 0
        parts = (total.clamp(min=0), total.clamp(max=0))
        for part, weight, height in zip(parts, self.weights, self.heights, strict=True):
            weight, height = weight[rows], height[rows]
            coefficients = coefficients - part * weight
            pull = (weight * middle).sum(self.axis, keepdim=True)
            constant = constant - part * (height - pull)
            size = height.abs() + (weight * middle.abs()).sum(self.axis, keepdim=True)
            magnitude = magnitude + part.abs() * size
        return NonlinearBound(row_sums(constant), row_sums(magnitude), (coefficients,))


RELAXATIONS: dict[type[Nonlinear], Callable[..., NodeRelaxation]] = {
    Relu: ReluRelaxation.of,
    Elementwise: LineRelaxation.of,
    Maximum: MaximumRelaxation.of,
    ElementwiseProduct: ProductRelaxation.of,
    MatrixProduct: MatrixProductRelaxation.of,
    LogSoftmax: LogSoftmaxRelaxation.of,
}
"""The relaxation of each kind of operation, made from the node and the intervals of its inputs."""


def linear_relaxation(graph: Graph, intervals: list[Interval]) -> Relaxation:
    """The linear relaxation of every nonlinear operation, made from the intervals of its inputs.

    Each is made when it is first needed, so the list may still grow.
    """
    known: dict[int, NodeRelaxation] = {}

    def relaxation(k: int, a: Tensor, rows: Tensor) -> NonlinearBound:
        if k not in known:
            node = graph.nodes[k]
            make = next(RELAXATIONS[kind] for kind in type(node).__mro__ if kind in RELAXATIONS)
            known[k] = make(node, *(intervals[i] for i in node.inputs))
        return known[k].bound(a, rows)

    return relaxation


def interval_relaxation(intervals: list[Interval]) -> Relaxation:
    """Interval bounds as a relaxation: each value at whichever end of its interval is worse."""

    def relaxation(k: int, a: Tensor, rows: Tensor) -> NonlinearBound:
        low, high = (end[rows] for end in intervals[k])
        magnitude = row_sums(a.abs() * torch.maximum(low.abs(), high.abs()))
        return NonlinearBound(row_sums(a * torch.where(a > 0, high, low)), magnitude)

    return relaxation
