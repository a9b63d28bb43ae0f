"""Backward propagation of linear bounds, from a network's outputs to its inputs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .graph import Affine, Graph, Nonlinear, Sum

ELEMENTS = 2**20
"""Coefficients held at once; more are done in chunks, so that memory stays flat."""


@dataclass(frozen=True)
class NonlinearBound:
    """<a, value> of a nonlinear operation is at most <coefficients, its inputs> + constant."""

    constant: Tensor
    magnitude: Tensor
    """At least the absolute values that were summed, for the rounding."""
    coefficients: tuple[Tensor, ...] = ()
    """One for each input; none where the bound is a constant."""


Relaxation = Callable[[int, Tensor, Tensor], NonlinearBound]
"""Bounds <a, value> of a nonlinear operation: called with the operation's place in the graph, the
coefficients a (pairs, ...) and the row of each pair, or one row for all of them."""


@dataclass(frozen=True)
class LinearBound:
    """<a, value> <= sum over places of <coefficients, value there> + constant, row by row."""

    coefficients: dict[int, Tensor]
    """By place; by the end only the input's, place 0, if anything reached it."""
    constant: Tensor
    magnitude: Tensor
    """At least the absolute values that were summed, for the rounding."""
    variance: Tensor
    """The sum of squares of coefficients times rounding errors, where these were given."""

    @classmethod
    def of(cls, target: int, a: Tensor) -> "LinearBound":
        """<a, value at the target> itself."""
        zero = torch.zeros(len(a), dtype=a.dtype, device=a.device)
        return cls({target: a}, zero, zero, zero)

    def rows(self, index: Tensor, sign: float = 1.0) -> "LinearBound":
        """Rows by their numbers, as often as wanted, or their opposites."""
        coefficients = {place: a[index].mul_(sign) for place, a in self.coefficients.items()}
        constant, magnitude = sign * self.constant[index], self.magnitude[index]
        return LinearBound(coefficients, constant, magnitude, self.variance[index])


def propagate_backward(
    graph: Graph,
    start: LinearBound,
    rows: Tensor,
    relaxation: Relaxation | None,
    errors: list[Tensor | None] | None = None,
) -> LinearBound:
    """Bound by linear functions of ever earlier values, in the end of the input alone.

    Args:
        graph: The network.
        start: The linear functions, and where they stand.
        rows: The example of each.
        relaxation: Bounds nonlinear operations. Without it the propagation stops at them, and what
            is returned is exact.
        errors: The rounding errors of every value (`rounding.py`), for the bound's variance.

    Returns:
        The same functions, bounded in terms of the input (or of the nonlinear operations). Affine
        operations are passed exactly, by their adjoints.
    """
    pending, constant, magnitude = dict(start.coefficients), start.constant, start.magnitude
    variance = start.variance
    for k in range(max(pending), 0, -1):
        node = graph.nodes[k]
        if k not in pending or (relaxation is None and isinstance(node, Nonlinear)):
            continue
        here = pending.pop(k)
        if errors is not None and (error := errors[k]) is not None:
            moves = (here * error[rows]).reshape(len(here), -1)
            variance = variance + torch.linalg.vector_norm(moves, dim=1) ** 2
        if isinstance(node, Affine):
            if node.bias is not None:
                terms = here * node.bias
                constant = constant + row_sums(terms)
                magnitude = magnitude + row_sums(terms.abs())
            back = [node.adjoint(here)]
        elif isinstance(node, Sum):
            back = [weight * here for weight in node.weights]
        elif relaxation is not None:
            bound = relaxation(k, here, rows)
            constant, magnitude = constant + bound.constant, magnitude + bound.magnitude
            back = list(bound.coefficients)
        for place, part in zip(node.inputs, back, strict=False):
            pending[place] = pending[place] + part if place in pending else part
    return LinearBound(pending, constant, magnitude, variance)


def chunks(pairs: int, width: int) -> Iterator[slice]:
    """Slices of the pairs that keep `width` coefficients each within memory."""
    step = max(1, ELEMENTS // max(1, width))
    return (slice(first, first + step) for first in range(0, pairs, step))


def unit_vectors(indices: Tensor, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """The unit vectors of these entries of a value."""
    a = like.new_zeros(len(indices), math.prod(shape))
    return a.scatter(1, indices[:, None], 1.0).reshape(-1, *shape)


def row_sums(terms: Tensor) -> Tensor:
    """The sum of each row's numbers, however they are arranged."""
    return terms.reshape(len(terms), math.prod(terms.shape[1:])).sum(1)
