"""A network with one hidden layer written out, in float64."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...threats import Threat
from .backward import LinearBound, propagate_backward, unit_vectors
from .graph import Graph
from .input_sets import InputSets
from .nonlinear import Relu

Vector = Float[np.ndarray, " d"]
Units = Float[np.ndarray, " m"]


@dataclass(frozen=True)
class ExampleSet:
    """The threat set of one example: {low <= x <= high} and {||x - center||_2 <= radius}."""

    threat: Threat
    center: Vector
    interval: tuple[Vector, Vector] | None
    radius: float | None

    def support(self, g: Vector) -> float:
        """max of <g, x> over the set."""
        if self.interval is None and self.radius is not None:
            return float(g @ self.center + self.radius * np.linalg.norm(g))
        if self.radius is None and self.interval is not None:
            low, high = self.interval
            return float(np.maximum(g * low, g * high).sum())
        return float(g @ self.maximiser(g))

    def maximiser(self, g: Vector) -> Vector:
        """The point of the set where <g, x> is largest."""
        rows = (torch.from_numpy(value)[None] for value in (g, self.center))
        return self.threat.maximiser(*rows)[0].numpy()

    def project(self, point: Vector) -> Vector:
        """The point of the set nearest to `point`."""
        rows = (torch.from_numpy(value)[None] for value in (point, self.center))
        return self.threat.project(*rows)[0].numpy()


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
    """For the rounding of the network's own dtype, see `margin_bounds.upper_bound`."""

    def value(self, x: Vector) -> float:
        """The margin at one point."""
        hidden = np.maximum(self.rows @ x + self.shift, 0)
        return float(self.weights @ hidden + self.slope @ x + self.constant)


@dataclass(frozen=True)
class OneHiddenLayer:
    """The hidden layer, and the threat sets of all examples."""

    places: list[int]
    negative_slopes: Units
    """Of leaky ReLU; zero for ReLU."""
    rows: Float[np.ndarray, "m d"]
    shift: Units
    low: Float[np.ndarray, "n m"]
    high: Float[np.ndarray, "n m"]
    sets: InputSets

    @classmethod
    def of(cls, graph: Graph, sets: InputSets) -> "OneHiddenLayer":
        """The layer of a network that has no other nonlinear operation than its ReLUs."""
        none = sets.center.flatten(1)[:0, 0]
        rows, shift, slopes = [sets.center[:0].flatten(1)], [none], [none]
        for k in graph.nonlinear():
            node = graph.nodes[k]
            numbers = int(np.prod(node.shape))
            every = torch.arange(numbers, device=sets.center.device)
            a = unit_vectors(every, node.shape, sets.center)
            start = LinearBound.of(node.inputs[0], a)
            back = propagate_backward(graph, start, every[:0], None)
            rows.append(back.coefficients[0].flatten(1))
            shift.append(back.constant)
            slope = node.slope if isinstance(node, Relu) else 0.0
            slopes.append(torch.full_like(back.constant, slope))
        wide = InputSets(sets.center.cpu().double(), sets.threat)
        w, b, left = (torch.cat(parts).cpu().double() for parts in (rows, shift, slopes))
        low, high = (_numpy(end) for end in _preactivation_bounds(wide, w, b))
        weights = (_numpy(left), _numpy(w), _numpy(b))
        return cls(graph.nonlinear(), *weights, low, high, wide)

    def example_sets(self) -> list[ExampleSet]:
        """The threat set of each example, as a box and a Euclidean ball."""
        threat, centers = self.sets.threat, _numpy(self.sets.center.flatten(1))
        parts = threat.box_and_ball(self.sets.center)
        if parts is None:
            raise TypeError(f"{threat} is not a box and a Euclidean ball")
        interval, radius = parts
        if interval is None:
            return [ExampleSet(threat, center, None, radius) for center in centers]
        low, high = (_numpy(end.flatten(1)) for end in interval)
        ends = zip(centers, low, high, strict=True)
        return [ExampleSet(threat, c, (a, b), radius) for c, a, b in ends]

    def scores(self, graph: Graph, a: Tensor, rows: Tensor) -> Iterator[Score]:
        """What <a, outputs> is as a function of the input, leaks moved to the linear part."""
        back = propagate_backward(graph, LinearBound.of(graph.output, a), rows, None)
        none = a.new_zeros(len(a), 0)
        found = back.coefficients
        tops = [found[k].reshape(len(a), -1) for k in self.places if k in found]
        weights = _numpy(torch.cat([none, *tops], 1)).astype(np.float64)
        direct = found.get(0, torch.zeros(len(a), *self.sets.center.shape[1:])).cpu()
        slopes, constants = _numpy(direct.double().flatten(1)), _numpy(back.constant.cpu().double())
        unit = torch.finfo(a.dtype).eps * graph.rounding
        center = self.sets.center
        terms = self.sets.magnitude(direct.to(center), rows.to(center.device))
        for i, row in enumerate(rows.tolist()):
            leaking = weights[i] * self.negative_slopes
            low, high = self.low[row], self.high[row]
            size = np.abs(weights[i]) @ np.maximum(np.abs(low), np.abs(high))
            size += float(back.magnitude[i])
            size += float(terms[i])
            yield Score(
                self.rows, self.shift, low, high, weights[i] - leaking,
                slopes[i] + leaking @ self.rows, constants[i] + leaking @ self.shift, unit * size,
            )  # fmt: skip


def _preactivation_bounds(sets: InputSets, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The least and largest w x + b of each example and unit, exact also where a box cuts."""
    n, m = len(sets), len(w)
    index = torch.arange(n).repeat_interleave(m)
    a = w.repeat(n, 1).reshape(n * m, *sets.center.shape[1:])
    high = sets.upper_bound(a, index, exact=True)[0].reshape(n, m) + b
    low = b - sets.upper_bound(-a, index, exact=True)[0].reshape(n, m)
    return low, high


def _numpy(values: Tensor) -> np.ndarray:
    return values.detach().cpu().numpy()
