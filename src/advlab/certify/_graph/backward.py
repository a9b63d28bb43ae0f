"""Pulls linear functions of a network's outputs back to its inputs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .graph import NONLINEAR, Graph, Map, Sum

ELEMENTS = 2**20
"""Coefficients held at once; more are done in turns, so that memory does not grow with the work."""


@dataclass(frozen=True)
class Crossing:
    """What <a, value> of a nonlinear operation is at most: <through, its input> + constant."""

    constant: Tensor
    size: Tensor
    """At least the absolute values that were summed, for the rounding."""
    through: Tensor | None = None


Cross = Callable[[int, Tensor, Tensor], Crossing]
"""The operation's place, coefficients of its value (pairs, ...) and the row of each pair, or one
row for all of them."""


@dataclass(frozen=True)
class Pulled:
    """<a, value> <= sum over places of <waiting, value there> + constant, a row at a time."""

    waiting: dict[int, Tensor]
    """By the end only the input's, place 0, if anything reached it."""
    constant: Tensor
    size: Tensor
    """At least the absolute values that were summed, for the rounding."""

    @classmethod
    def start(cls, target: int, a: Tensor) -> "Pulled":
        zero = torch.zeros(len(a), dtype=a.dtype, device=a.device)
        return cls({target: a}, zero, zero)

    def rows(self, index: Tensor, sign: float = 1.0) -> "Pulled":
        """Rows by their numbers, as often as wanted, or their opposites."""
        waiting = {place: a[index].mul_(sign) for place, a in self.waiting.items()}
        return Pulled(waiting, sign * self.constant[index], self.size[index])


def pull(graph: Graph, start: Pulled, rows: Tensor, cross: Cross | None) -> Pulled:
    """Bound by linear functions of ever earlier values, in the end of the input alone.

    Linear operations are passed exactly, by their adjoints; `cross` decides at nonlinear ones, and
    without it they are where the pulling stops.
    """
    waiting, constant, size = dict(start.waiting), start.constant, start.size
    for k in range(max(waiting), 0, -1):
        node = graph.nodes[k]
        if k not in waiting or (cross is None and isinstance(node, NONLINEAR)):
            continue
        here = waiting.pop(k)
        if isinstance(node, Map):
            if node.bias is not None:
                terms = here * node.bias
                constant, size = constant + total(terms), size + total(terms.abs())
            back = [node.adjoint(here)]
        elif isinstance(node, Sum):
            back = [weight * here for weight in node.weights]
        elif cross is not None:
            crossing = cross(k, here, rows)
            constant, size = constant + crossing.constant, size + crossing.size
            back = [] if crossing.through is None else [crossing.through]
        for place, part in zip(node.inputs, back, strict=False):
            waiting[place] = waiting[place] + part if place in waiting else part
    return Pulled(waiting, constant, size)


def turns(pairs: int, width: int) -> Iterator[slice]:
    """Slices of the pairs that keep `width` coefficients each within memory."""
    step = max(1, ELEMENTS // max(1, width))
    return (slice(first, first + step) for first in range(0, pairs, step))


def units(places: Tensor, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """The unit vectors of these numbers of a value."""
    a = torch.zeros(len(places), math.prod(shape), dtype=like.dtype, device=like.device)
    a[torch.arange(len(places)), places] = 1
    return a.reshape(-1, *shape)


def total(terms: Tensor) -> Tensor:
    """The sum of each row's numbers, however they are arranged."""
    return terms.reshape(len(terms), math.prod(terms.shape[1:])).sum(1)
