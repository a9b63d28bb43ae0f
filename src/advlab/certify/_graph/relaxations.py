"""What may be put in place of a nonlinear operation once its input is known to within bounds."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .backward import Crossing, total
from .graph import MaxPool, Relu

Interval = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class ReluLines:
    """Two lines with lower z <= relu(z) <= upper z + shift on [low, high] (Zhang et al. 2018).

    Above: the chord. Below: slope 1 or that of the left branch, whichever leaves less area.
    """

    upper: Tensor
    shift: Tensor
    lower: Tensor

    @classmethod
    def of(cls, node: Relu, box: Interval) -> "ReluLines":
        low, high = box
        width = (high - low).clamp(min=torch.finfo(low.dtype).tiny)
        chord = (high - node.slope * low) / width
        on, off = low >= 0, high <= 0
        ones = torch.ones_like(low)
        left = ones * node.slope
        upper = torch.where(on, ones, torch.where(off, left, chord))
        shift = torch.where(on | off, 0.0, (1 - chord) * high)
        lower = torch.where(on | (~off & (high > -low)), ones, left)
        return cls(upper, shift, lower)

    def cross(self, a: Tensor, rows: Tensor) -> Crossing:
        positive = a > 0
        through = a * torch.where(positive, self.upper[rows], self.lower[rows])
        constant = total(a.clamp(min=0) * self.shift[rows])
        return Crossing(constant, constant.abs(), through)


@dataclass(frozen=True)
class PoolLines:
    """The number of each window with the highest lower bound is below the maximum, and is the
    maximum where that bound is above all others' upper bounds; else the largest upper bound is
    above it."""

    winner: Tensor
    """Its place in the flattened image, (n, c, windows)."""
    settled: Tensor
    ceiling: Tensor
    source: tuple[int, ...]

    @classmethod
    def of(cls, node: MaxPool, box: Interval) -> "PoolLines":
        low, high = node.windows(box[0]), node.windows(box[1])
        best, which = low.max(-1)
        others = high.scatter(-1, which[..., None], -torch.inf)
        c, h, w = node.source
        place = torch.arange(h * w, dtype=low.dtype).reshape(1, 1, h, w).expand(1, c, h, w)
        places = node.windows(place).long().clamp(min=0).expand(len(low), *which.shape[1:], -1)
        winner = places.gather(-1, which[..., None])[..., 0]
        return cls(winner.flatten(2), best >= others.amax(-1), high.amax(-1), node.source)

    def cross(self, a: Tensor, rows: Tensor) -> Crossing:
        settled = self.settled[rows] | (a <= 0)
        constant = torch.where(settled, 0.0, a * self.ceiling[rows])
        linear = torch.where(settled, a, 0.0).flatten(2)
        c, h, w = self.source
        through = torch.zeros(len(a), c, h * w, dtype=a.dtype)
        through = through.scatter_add(2, self.winner[rows].expand(len(a), -1, -1), linear)
        size = total(constant.abs())
        return Crossing(total(constant), size, through.reshape(len(a), c, h, w))


def lines(node: object, box: Interval) -> ReluLines | PoolLines:
    if isinstance(node, Relu):
        return ReluLines.of(node, box)
    if isinstance(node, MaxPool):
        return PoolLines.of(node, box)
    raise TypeError(type(node).__name__)
