"""A network as a short list of operations: linear maps, sums and nonlinear operations."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from .spectral import convolution_norm, largest_singular_value

Shape = tuple[int, ...]
Interval = tuple[Tensor, Tensor]
FEW = 4
"""Channels up to which a product and a fold are faster than a transposed convolution."""


@dataclass(frozen=True, eq=False)
class Node:
    """One operation; `inputs` are places in the list, shapes are those of one example."""

    inputs: tuple[int, ...]
    shape: Shape

    def apply(self, *values: Tensor) -> Tensor:
        raise NotImplementedError


class Input(Node):
    """The example itself, always the first of the list."""


@dataclass(frozen=True, eq=False)
class Affine(Node):
    """x -> M x + bias for a matrix M that is never written out."""

    source: Shape
    """The shape of one example before."""
    bias: Tensor | None

    fan_in = 1
    """How many numbers are summed for one output."""

    @property
    def multiplications(self) -> int:
        """Multiplications per example."""
        return math.prod(self.shape) * self.fan_in

    def apply(self, *values: Tensor) -> Tensor:
        out = self.matrix(values[0])
        return out if self.bias is None else out + self.bias

    def matrix(self, x: Tensor) -> Tensor:
        """M x."""
        raise NotImplementedError

    def adjoint(self, a: Tensor) -> Tensor:
        """M' a."""
        raise NotImplementedError

    def magnitude(self) -> "Affine":
        """The map with |M|, entry by entry, and no bias."""
        raise NotImplementedError

    @cached_property
    def absolute(self) -> "Affine":
        """`magnitude`, made once."""
        return self.magnitude()

    def operator_norm(self, order: float, like: Tensor) -> float:
        """At least max ||M x|| / ||x|| in l1, l2 or linf; exact for l1 and linf.

        In l2 the default is Schur's test, ||M||_2^2 <= ||M||_1 ||M||_inf.
        """
        if order == 2:
            return math.sqrt(self.operator_norm(1, like) * self.operator_norm(math.inf, like))
        size = self.absolute
        shape = self.shape if order == 1 else self.source
        ones = like.new_ones(1, *shape)
        return float((size.adjoint(ones) if order == 1 else size.matrix(ones)).max())


@dataclass(frozen=True, eq=False)
class Dense(Affine):
    weight: Tensor

    @property
    def fan_in(self) -> int:  # type: ignore[override]
        return self.weight.shape[1]

    def matrix(self, x: Tensor) -> Tensor:
        return x @ self.weight.T

    def adjoint(self, a: Tensor) -> Tensor:
        return a @ self.weight

    def magnitude(self) -> "Dense":
        return Dense(self.inputs, self.shape, self.source, None, self.weight.abs())

    def operator_norm(self, order: float, like: Tensor) -> float:
        if order != 2:
            return super().operator_norm(order, like)
        return largest_singular_value(self.weight)


@dataclass(frozen=True, eq=False)
class Convolution(Affine):
    weight: Tensor
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int

    @property
    def fan_in(self) -> int:  # type: ignore[override]
        return self.weight[0].numel()

    def matrix(self, x: Tensor) -> Tensor:
        zero = [0] * len(self.stride)
        return torch.convolution(
            x, self.weight, None, self.stride, self.padding, self.dilation, False, zero, self.groups
        )

    def adjoint(self, a: Tensor) -> Tensor:
        if self.groups == 1 and len(self.stride) == 2 and self.source[0] <= FEW:
            taps = self.weight.flatten(1).T @ a.flatten(2)
            size, kernel = self.source[1:], self.weight.shape[2:]
            steps = (tuple(s) for s in (self.dilation, self.padding, self.stride))
            return F.fold(taps, size, kernel, *steps)
        # What a stride leaves over at the far edge is what output padding puts back.
        spans = zip(
            self.source[1:], self.shape[1:], self.weight.shape[2:],
            self.stride, self.padding, self.dilation, strict=True,
        )  # fmt: skip
        left = [n - ((m - 1) * s - 2 * p + d * (k - 1) + 1) for n, m, k, s, p, d in spans]
        return torch.convolution(
            a, self.weight, None, self.stride, self.padding, self.dilation, True, left, self.groups
        )

    def magnitude(self) -> "Convolution":
        return Convolution(
            self.inputs, self.shape, self.source, None, self.weight.abs(),
            self.stride, self.padding, self.dilation, self.groups,
        )  # fmt: skip

    def operator_norm(self, order: float, like: Tensor) -> float:
        general = super().operator_norm(order, like)
        if order != 2:
            return general
        torus = convolution_norm(self.weight, self.source[1:], self.dilation, self.groups)
        return general if torus is None else min(general, torus)


@dataclass(frozen=True, eq=False)
class Scale(Affine):
    """Number by number: factor x + bias. Batch norm in eval mode is one of these."""

    factor: Tensor

    def matrix(self, x: Tensor) -> Tensor:
        return x * self.factor

    def adjoint(self, a: Tensor) -> Tensor:
        return a * self.factor

    def magnitude(self) -> "Scale":
        return Scale(self.inputs, self.shape, self.source, None, self.factor.abs())

    def operator_norm(self, order: float, like: Tensor) -> float:
        return float(self.factor.abs().max())


@dataclass(frozen=True, eq=False)
class Rearrange(Affine):
    """Moves, drops, sums or averages: any linear function whose matrix has no negative entry."""

    function: Callable[[Tensor], Tensor]
    terms: int = 1
    """How many numbers are summed for one output, at most."""
    transpose: Callable[[Tensor], Tensor] | None = None
    """The adjoint, where it is known; otherwise it is found by differentiation."""

    @property
    def fan_in(self) -> int:  # type: ignore[override]
        return self.terms

    def matrix(self, x: Tensor) -> Tensor:
        return self.function(x)

    def adjoint(self, a: Tensor) -> Tensor:
        if self.transpose is not None:
            return self.transpose(a)
        start = torch.zeros(1, dtype=a.dtype, device=a.device).expand(len(a), *self.source)
        return torch.func.vjp(self.function, start)[1](a)[0]

    def magnitude(self) -> "Rearrange":
        return self


@dataclass(frozen=True, eq=False)
class AddMean(Affine):
    """own x + mean(x) times `mean`, the mean over some axes of an example; (1, -1) centers x."""

    axes: tuple[int, ...]
    """Counted with the batch, from the end."""
    own: float
    mean: float

    @property
    def fan_in(self) -> int:  # type: ignore[override]
        return math.prod(self.shape[axis] for axis in self.axes)

    def matrix(self, x: Tensor) -> Tensor:
        return self.own * x + self.mean * x.mean(self.axes, keepdim=True)

    def adjoint(self, a: Tensor) -> Tensor:
        return self.matrix(a)

    def magnitude(self) -> "AddMean":
        """Of a diagonal own + mean / k with mean / k beside it."""
        share = self.mean / self.fan_in
        own = abs(self.own + share) - abs(share)
        return AddMean(
            self.inputs, self.shape, self.source, None, self.axes, own, abs(self.mean)
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sum(Node):
    """A weighted sum of earlier values: the residual connection."""

    weights: tuple[float, ...]

    def apply(self, *values: Tensor) -> Tensor:
        return sum(w * v for w, v in zip(self.weights, values, strict=True))  # type: ignore[return-value]


class Nonlinear(Node):
    """What linear bounds must be relaxed at; all such nodes are in `nonlinear.py`."""

    by_sign: ClassVar[bool] = False
    """Whether it matters only to know better where an input may have either sign."""

    def image(self, *boxes: Interval) -> Interval:
        """What the value is between, given that for its inputs."""
        raise NotImplementedError

    def lipschitz(self, order: float) -> float | None:
        """max ||f(u) - f(v)|| / ||u - v|| in l1, l2 or linf from above, if there is a bound."""
        return None


class Graph:
    """The operations in the order in which they run; the last is the output."""

    def __init__(self, nodes: list[Node]):
        self.nodes = nodes

    @property
    def output(self) -> int:
        return len(self.nodes) - 1

    @cached_property
    def nonlinear_ancestors(self) -> list[frozenset[int]]:
        """The nonlinear operations that each value is computed from, its own included."""
        ancestors: list[frozenset[int]] = []
        for k, node in enumerate(self.nodes):
            own = frozenset({k}) if isinstance(node, Nonlinear) else frozenset()
            ancestors.append(own.union(*(ancestors[i] for i in node.inputs)))
        return ancestors

    @cached_property
    def rounding(self) -> float:
        """How many roundings may pile up: sums of random signs grow with the root of their length.

        16 is what a point may stray from its set (`Ball.contains`).
        """
        maps = [node for node in self.nodes if isinstance(node, Affine)]
        return 16 + sum(math.sqrt(node.fan_in) for node in maps)

    def nonlinear(self) -> list[int]:
        """The places of the nonlinear operations."""
        return [k for k, node in enumerate(self.nodes) if isinstance(node, Nonlinear)]

    def ancestors(self, target: int) -> set[int]:
        """All places that the value at `target` is computed from, itself included."""
        found = {target}
        for k in range(target, 0, -1):
            if k in found:
                found.update(self.nodes[k].inputs)
        return found

    def multiplications(self, target: int) -> int:
        """Multiplications of a value, or of one row of coefficients propagated back from it."""
        nodes = [self.nodes[k] for k in self.ancestors(target)]
        affine = sum(node.multiplications for node in nodes if isinstance(node, Affine))
        return affine + sum(math.prod(n.shape) for n in nodes if not isinstance(n, Affine))

    def max_width(self, target: int) -> int:
        """The most numbers that any value has on the way to the target."""
        return max(math.prod(self.nodes[k].shape) for k in self.ancestors(target))

    def values(self, x: Tensor) -> list[Tensor]:
        """Every value at these inputs."""
        found = [x]
        for node in self.nodes[1:]:
            found.append(node.apply(*(found[i] for i in node.inputs)))
        return found
