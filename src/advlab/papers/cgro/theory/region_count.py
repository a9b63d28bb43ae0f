"""Linear regions of a ReLU network (Proposition D.5), counted exactly.

A region is a set of inputs with one sign for every pre-activation, with inner points. The function
is linear on each, so it has no more linear regions than these; n hidden units have 2^n signs. With
one hidden layer the regions are the cells that n hyperplanes cut R^D into, at most
sum_{i <= D} C(n, i) (Zaslavsky 1975), which hyperplanes in general position attain.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog

from ....core.checks import Array
from ....core.errors import AdvlabError

INNER = 1e-9
"""The least radius of a ball inside a region."""


@dataclass(frozen=True)
class LinearRegion:
    """{x: A x <= b}, on which the network is slope'x + offset."""

    A: Float[np.ndarray, "k d"]
    b: Float[np.ndarray, " k"]
    slope: Float[np.ndarray, " d"]
    offset: float

    def has_zero(self) -> bool:
        """Whether the network changes its sign inside; the region must be bounded."""
        ends = [
            linprog(sign * self.slope, A_ub=self.A, b_ub=self.b, bounds=(None, None)).fun * sign
            for sign in (1, -1)
        ]
        return ends[0] + self.offset < -INNER and ends[1] + self.offset > INNER


def most_cells(n: int, d: int) -> int:
    """sum_{i <= d} C(n, i), the most cells of n hyperplanes in R^d.

    Args:
        n: hyperplanes.
        d: the dimension.
    """
    return sum(comb(n, i) for i in range(min(n, d) + 1))


def linear_regions(
    layers: Sequence[tuple[Array, Array]], half_width: float | None = None
) -> list[LinearRegion]:
    """The regions of a ReLU network of one output, each once.

    Args:
        layers: weights (out, in) and biases (out,) of the layers, the last without ReLU.
        half_width: if given, only inside the cube [-half_width, half_width]^d.

    Example:
        >>> import numpy as np
        >>> from advlab.papers.cgro.theory import linear_regions
        >>> one = [(np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))]
        >>> len(linear_regions(one))
        4
    """
    d = layers[0][0].shape[1]
    if layers[-1][0].shape[0] != 1:
        raise AdvlabError("a network of one output", f"{layers[-1][0].shape[0]} outputs",
                          "count the regions of one output")  # fmt: skip
    A, b = np.zeros((0, d)), np.zeros(0)
    if half_width is not None:
        A, b = np.vstack([np.eye(d), -np.eye(d)]), np.full(2 * d, float(half_width))
    return list(_split(A, b, np.eye(d), np.zeros(d), layers))


def _split(
    A: Array, b: Array, slopes: Array, offsets: Array, layers: Sequence[tuple[Array, Array]]
) -> Iterator[LinearRegion]:
    """The regions inside {A x <= b}, where the present layer sees slopes x + offsets."""
    (weight, bias), *later = layers
    slopes, offsets = weight @ slopes, weight @ offsets + bias
    if not later:
        yield LinearRegion(A, b, slopes[0], float(offsets[0]))
        return
    for on, A_in, b_in in _signs(A, b, slopes, offsets):
        yield from _split(A_in, b_in, on[:, None] * slopes, on * offsets, later)


def _signs(
    A: Array, b: Array, slopes: Array, offsets: Array
) -> Iterator[tuple[Array, Array, Array]]:
    """The patterns of a layer inside {A x <= b}, with what each adds to A and b."""
    cells = [(np.zeros(0), A, b)]
    for slope, offset in zip(slopes, offsets, strict=True):
        found = []
        for on, A_in, b_in in cells:
            if not np.abs(slope).any():  # the same everywhere
                found.append((np.append(on, float(offset > 0)), A_in, b_in))
                continue
            for side in (1.0, 0.0):
                sign = 1.0 - 2.0 * side  # on: -slope x <= offset
                A_new, b_new = np.vstack([A_in, sign * slope]), np.append(b_in, -sign * offset)
                if _has_inside(A_new, b_new):
                    found.append((np.append(on, side), A_new, b_new))
        cells = found
    yield from cells


def _has_inside(A: Array, b: Array) -> bool:
    """Whether {A x <= b} holds a ball; its radius is looked for up to 1."""
    d = A.shape[1]
    lengths = np.linalg.norm(A, axis=1)
    best = linprog(
        np.append(np.zeros(d), -1.0), A_ub=np.column_stack([A, lengths]), b_ub=b,
        bounds=[(None, None)] * d + [(None, 1.0)],
    )  # fmt: skip
    return bool(best.status == 0 and -best.fun > INNER)
