"""Upper bounds of margins over parts of the threat set in which signs of neurons are decided."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from .backward import LinearBound, NonlinearBound, Relaxation, propagate_backward, row_sums
from .graph import Graph, Interval
from .input_sets import InputSets
from .leaf_program import leaf_bound
from .margin_bounds import upper_bound
from .nonlinear import Relu
from .rounding import rounding_errors

RATE, DECAY = 0.3, 0.9
"""The first step of gradient descent, and how it shrinks."""


@dataclass(eq=False)
class SplitPart:
    """One rival class of one example, with the signs of some neurons decided."""

    row: int
    a: Tensor
    """The specification: which combination of outputs is bounded."""
    signs: dict[int, dict[int, int]]
    """+1 or -1 by place of the ReLU and number of the neuron."""
    start: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Slopes and multipliers that were best for the parent."""
    bound: float = float("inf")
    value: float = -float("inf")
    """The margin at some point of the threat set."""
    split: tuple[int, int] | None = None
    """The neuron at which to split: place and number; None where nothing is left to split."""

    @classmethod
    def root(cls, row: int, a: Tensor, places: list[int]) -> "SplitPart":
        return cls(row, a, {k: {} for k in places})

    def halves(self) -> "list[SplitPart]":
        if self.split is None:
            return []
        k, i = self.split
        return [
            replace(self, signs={**self.signs, k: {**self.signs[k], i: sign}}, split=None)
            for sign in (1, -1)
        ]


class SplitBounds:
    """Bounds parts by CROWN with optimised slopes and multipliers, many parts at once."""

    def __init__(self, graph: Graph, sets: InputSets, intervals: list[Interval], steps: int):
        self.graph, self.sets, self.intervals, self.steps = graph, sets, intervals, steps
        self.places = graph.nonlinear()
        self.errors = rounding_errors(graph, intervals)

    def solve(self, parts: list[SplitPart]) -> list[SplitPart]:
        """The same parts with bounds that are at most their parents', points and next splits."""
        rows = torch.tensor([part.row for part in parts], device=self.sets.center.device)
        a = torch.stack([part.a for part in parts])
        layers = {k: _Layer.of(self, k, rows, parts) for k in self.places}
        with torch.enable_grad():
            self._descend(a, rows, layers)
        bound = upper_bound(
            self.graph, LinearBound.of(self.graph.output, a), rows, self.sets,
            _relaxation(layers), True, self.errors,
        )  # fmt: skip
        bound = torch.where(bound.isnan(), torch.inf, bound)
        values = self._values(a, rows, layers)
        splits = _next_splits(layers, len(parts))
        for i, part in enumerate(parts):
            part.bound = min(part.bound, float(bound[i]))
            part.value, part.split = float(values[i]), splits[i]
            part.start = {k: layer.row(i) for k, layer in layers.items()}
            if part.split is None and any(part.signs.values()):
                exact, point = leaf_bound(self, part, layers, i)
                part.bound = min(part.bound, exact)
                if point is not None:
                    part.value = max(part.value, self._value(part, point))
        return parts

    def _descend(self, a: Tensor, rows: Tensor, layers: "dict[int, _Layer]") -> None:
        """Signed gradient steps in slopes and multipliers; each part keeps its best."""
        best, rate = torch.full_like(rows, torch.inf, dtype=a.dtype), RATE
        kept = {k: (layer.slopes, layer.multipliers) for k, layer in layers.items()}
        for _ in range(self.steps):
            free = [t for layer in layers.values() for t in layer.leaves()]
            back = propagate_backward(
                self.graph, LinearBound.of(self.graph.output, a), rows, _relaxation(layers)
            )
            bound = back.constant
            if 0 in back.coefficients:
                w = back.coefficients[0]
                point = self.sets.threat.maximiser(w.detach(), self.sets.center[rows])
                # The support function's gradient is where it is attained.
                bound = bound + row_sums(w * point)
            better = bound.detach() < best
            best = torch.where(better, bound.detach(), best)
            for k, layer in layers.items():
                keep = better.reshape(-1, *[1] * (layer.slopes.ndim - 1))
                kept[k] = (torch.where(keep, layer.slopes.detach(), kept[k][0]),
                           torch.where(keep, layer.multipliers.detach(), kept[k][1]))  # fmt: skip
            if not bound.requires_grad:
                break
            grads = torch.autograd.grad(bound.sum(), free, materialize_grads=True)
            for layer, slope, multiplier in zip(
                layers.values(), grads[::2], grads[1::2], strict=True
            ):
                layer.step(slope, multiplier, rate)
            rate *= DECAY
        for k, layer in layers.items():
            layer.slopes, layer.multipliers = (value.detach() for value in kept[k])

    def _values(self, a: Tensor, rows: Tensor, layers: "dict[int, _Layer]") -> Tensor:
        """The margin where the bound's linear function is largest."""
        back = propagate_backward(
            self.graph, LinearBound.of(self.graph.output, a), rows, _relaxation(layers)
        )
        center = self.sets.center[rows]
        w = back.coefficients.get(0, torch.zeros_like(center))
        outputs = self.graph.values(self.sets.threat.maximiser(w, center))[-1]
        return row_sums(a * outputs)

    def _value(self, part: SplitPart, point: Tensor) -> float:
        outputs = self.graph.values(point.reshape(1, *self.sets.center.shape[1:]))[-1]
        return float((part.a * outputs[0]).sum())


@dataclass
class _Layer:
    """One ReLU of all parts: its intervals as decided, the free slopes and the multipliers."""

    leak: float
    low: Tensor
    high: Tensor
    signs: Tensor
    slopes: Tensor
    """Of the line below each undecided neuron."""
    multipliers: Tensor
    """Of each decided sign, at least 0."""
    last: Tensor | None = None
    """The coefficients that last came back to this layer."""

    @classmethod
    def of(cls, bounds: SplitBounds, k: int, rows: Tensor, parts: list[SplitPart]) -> "_Layer":
        node = bounds.graph.nodes[k]
        leak = node.slope if isinstance(node, Relu) else 0.0
        low, high = (end[rows] for end in bounds.intervals[node.inputs[0]])
        signs = torch.zeros_like(low)
        flat = signs.reshape(len(parts), -1)
        for i, part in enumerate(parts):
            for neuron, sign in part.signs[k].items():
                flat[i, neuron] = sign
        low = torch.where(signs > 0, low.clamp(min=0), low)
        high = torch.where(signs < 0, high.clamp(max=0), high)
        if parts[0].start:
            slopes, multipliers = (
                torch.stack([part.start[k][j] for part in parts]) for j in (0, 1)
            )
        else:
            slopes = torch.where(high > -low, 1.0, leak).to(low.dtype)
            multipliers = torch.zeros_like(low)
        return cls(leak, low, high, signs, slopes, multipliers)

    @property
    def undecided(self) -> Tensor:
        return (self.low < 0) & (self.high > 0) & (self.signs == 0)

    def leaves(self) -> tuple[Tensor, Tensor]:
        self.slopes = self.slopes.detach().requires_grad_()
        self.multipliers = self.multipliers.detach().requires_grad_()
        return self.slopes, self.multipliers

    def step(self, slope: Tensor, multiplier: Tensor, rate: float) -> None:
        slopes = self.slopes.detach() - rate * slope.sign() * self.undecided
        self.slopes = slopes.clamp(self.leak, 1.0)
        # Multipliers are as large as the coefficients that they are added to.
        scale = 0.0 if self.last is None else self.last.abs().amax()
        moved = self.multipliers.detach() - rate * scale * multiplier.sign()
        self.multipliers = moved.clamp(min=0) * (self.signs != 0)

    def bound(self, a: Tensor) -> NonlinearBound:
        self.last = a.detach()
        active = (self.signs > 0) | ((self.signs == 0) & (self.low >= 0))
        width = (self.high - self.low).clamp(min=torch.finfo(a.dtype).tiny)
        chord = (self.high - self.leak * self.low) / width
        free = self.undecided
        upper = torch.where(free, chord, torch.where(active, 1.0, self.leak))
        lower = torch.where(free, self.slopes, torch.where(active, 1.0, self.leak))
        intercept = torch.where(free, (1 - chord) * self.high, 0.0)
        coefficients = a * torch.where(a > 0, upper, lower) + self.signs * self.multipliers
        constant = row_sums(a.clamp(min=0) * intercept)
        return NonlinearBound(constant, constant.abs(), (coefficients,))

    def row(self, i: int) -> tuple[Tensor, Tensor]:
        return self.slopes[i], self.multipliers[i]

    def rates(self, i: int) -> Tensor:
        """The slope of each neuron of part i, all of which are decided."""
        active = (self.signs[i] > 0) | ((self.signs[i] == 0) & (self.low[i] >= 0))
        return torch.where(active, 1.0, self.leak).to(self.low.dtype)

    def cost(self) -> Tensor:
        """What the relaxation of each undecided neuron costs at most."""
        if self.last is None:
            return torch.zeros_like(self.low)
        width = (self.high - self.low).clamp(min=torch.finfo(self.low.dtype).tiny)
        gap = -self.low * self.high / width * (1 - self.leak)
        # What does not matter to the bound is still split, last of all.
        return torch.where(self.undecided, (self.last.abs() + 1e-12) * gap, 0.0)


def _relaxation(layers: dict[int, _Layer]) -> Relaxation:
    return lambda k, a, rows: layers[k].bound(a)


def _next_splits(layers: dict[int, _Layer], n: int) -> list[tuple[int, int] | None]:
    costs = {k: layer.cost().reshape(n, -1).max(1) for k, layer in layers.items()}
    found: list[tuple[int, int] | None] = []
    for i in range(n):
        cost, k = max(((float(c.values[i]), k) for k, c in costs.items()), default=(0.0, -1))
        found.append((k, int(costs[k].indices[i])) if cost > 0 else None)
    return found
