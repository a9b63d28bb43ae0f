"""A network with one hidden layer written out, in float64."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...threats import Ball
from .backward import Pulled, pull, units
from .graph import Graph, Relu
from .region import Region

Vector = Float[np.ndarray, " d"]
Units = Float[np.ndarray, " m"]


@dataclass(frozen=True)
class ThreatSet:
    """Ball and box around one example."""

    ball: Ball
    center: Vector
    low: Vector
    high: Vector

    def support(self, g: Vector) -> float:
        """max of <g, x> over the set."""
        if self.ball.norm == "linf":
            return float(np.maximum(g * self.low, g * self.high).sum())
        if self.ball.box is None:
            return float(g @ self.center + self.ball.radius * np.linalg.norm(g))
        return float(g @ self.highest(g))

    def highest(self, g: Vector) -> Vector:
        """The point of the set where <g, x> is largest."""
        rows = (torch.from_numpy(value)[None] for value in (g, self.center))
        return self.ball.maximiser(*rows)[0].numpy()

    def nearest(self, point: Vector) -> Vector:
        rows = (torch.from_numpy(value)[None] for value in (point, self.center))
        return self.ball.project(*rows)[0].numpy()


@dataclass(frozen=True)
class Score:
    """weights' relu(rows x + shift) + slope' x + constant: the margin against one rival."""

    rows: Float[np.ndarray, "m d"]
    shift: Units
    low: Units
    high: Units
    """What each rows x + shift is between, over the threat set."""
    weights: Units
    slope: Vector
    constant: float
    slack: float
    """For the rounding of the network's own dtype, see `bounds.highest`."""

    def value(self, x: Vector) -> float:
        hidden = np.maximum(self.rows @ x + self.shift, 0)
        return float(self.weights @ hidden + self.slope @ x + self.constant)


@dataclass(frozen=True)
class Hidden:
    """The hidden layer, and the threat sets of all examples."""

    places: list[int]
    leaks: Units
    rows: Float[np.ndarray, "m d"]
    shift: Units
    low: Float[np.ndarray, "n m"]
    high: Float[np.ndarray, "n m"]
    region: Region

    @classmethod
    def of(cls, graph: Graph, region: Region) -> "Hidden":
        rows, shift, leaks = [region.center[:0].flatten(1)], [region.size[:0]], [region.size[:0]]
        for k in graph.nonlinear():
            node = graph.nodes[k]
            numbers = int(np.prod(node.shape))
            a = units(torch.arange(numbers), node.shape, region.center)
            back = pull(graph, Pulled.start(node.inputs[0], a), torch.arange(0), None)
            rows.append(back.waiting[0].flatten(1))
            shift.append(back.constant)
            slope = node.slope if isinstance(node, Relu) else 0.0
            leaks.append(torch.full_like(back.constant, slope))
        wide = Region(region.center.double(), region.ball)
        w, b = torch.cat(rows).double(), torch.cat(shift).double()
        low, high = _ends(wide, w, b)
        joined = torch.cat(leaks).double()
        leaks_w_b = (_numpy(joined), _numpy(w), _numpy(b))
        return cls(graph.nonlinear(), *leaks_w_b, _numpy(low), _numpy(high), wide)

    def threat(self, row: int) -> ThreatSet:
        ends = (self.region.center, self.region.low, self.region.high)
        return ThreatSet(self.region.ball, *(_numpy(end[row].flatten()) for end in ends))

    def scores(self, graph: Graph, a: Tensor, rows: Tensor) -> Iterator[Score]:
        """What <a, outputs> is as a function of the input, leaks moved to the linear part."""
        back = pull(graph, Pulled.start(graph.output, a), rows, None)
        none = torch.zeros(len(a), 0, dtype=a.dtype)
        tops = [back.waiting[k].reshape(len(a), -1) for k in self.places if k in back.waiting]
        weights = _numpy(torch.cat([none, *tops], 1).double())
        direct = back.waiting.get(0, torch.zeros(len(a), *self.region.center.shape[1:]))
        slopes, constants = _numpy(direct.double().flatten(1)), _numpy(back.constant.double())
        unit = torch.finfo(a.dtype).eps * graph.rounding
        for i, row in enumerate(rows.tolist()):
            leaking = weights[i] * self.leaks
            low, high = self.low[row], self.high[row]
            size = np.abs(weights[i]) @ np.maximum(np.abs(low), np.abs(high)) + float(back.size[i])
            size += float(self.region.ball.dual_norm(direct[i].flatten()) * self.region.size[row])
            yield Score(
                self.rows, self.shift, low, high, weights[i] - leaking,
                slopes[i] + leaking @ self.rows, constants[i] + leaking @ self.shift, unit * size,
            )  # fmt: skip


def _ends(region: Region, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The least and largest w x + b of each example and unit, exact also where a box cuts."""
    n, m = len(region), len(w)
    index = torch.arange(n).repeat_interleave(m)
    a = w.repeat(n, 1).reshape(n * m, *region.center.shape[1:])
    high = region.highest(a, index, tight=True)[0].reshape(n, m) + b
    low = b - region.highest(-a, index, tight=True)[0].reshape(n, m)
    return low, high


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().numpy()
