"""Which functions a tangent kernel's RKHS holds: even, odd, or all (universality).

K(c) = sum_k h_k^2 c^(k+1), so degree k + 1 is there if and only if h_k != 0. K is universal on the
sphere if and only if infinitely many even and infinitely many odd degrees are. Otherwise the RKHS
sees one parity and finitely many polynomials of the other, and antipodal points can conflict.
The paper's appendix C.2 says that quadratic ReLU holds even functions; it holds odd functions and
quadratic forms (derived here, and measured by `parity_ranks`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, positive, whole
from ....core.errors import AdvlabError
from .activations import KernelActivation
from .inputs import on_sphere
from .kernels import gram
from .quadrature import hermite_coefficients

SHARP = 1e-3
"""A polynomial ends with a coefficient of at least this times the length of all; others fade."""


@dataclass(frozen=True)
class Parity:
    """The largest degree of even and of odd polynomials: inf without end, None if there are none.

    Decided from finitely many coefficients: "without end" means up to the last ones computed. Where
    they fade below the tolerance bit by bit, as those of exp(z/2) do, nobody can tell from them
    whether they end, and the degree is not a number (NaN): unknown.
    """

    even: float | None
    odd: float | None
    coefficients: Array

    @property
    def universal(self) -> bool | None:
        """Whether both parities are there without end; None if that is unknown."""
        ends = self.even, self.odd
        if any(end is None or np.isfinite(end) for end in ends):
            return False
        return None if any(np.isnan(end) for end in ends if end is not None) else True


class Ranks(NamedTuple):
    """Ranks of the even and the odd part of a Gram matrix, of so many points."""

    even: int
    odd: int
    points: int


def parity(
    activation: str | KernelActivation | Callable,
    degree: int = 20,
    tolerance: Scalar = 1e-11,
    breaks: Sequence[Scalar] = (),
) -> Parity:
    """The parities of an activation.

    Args:
        activation: a name, one's own, or a slope sigma' as a function.
        degree: the last Hermite coefficient that is looked at.
        tolerance: a coefficient is not told from zero below this times the length of all.
        breaks: where sigma' jumps or bends, if it is a function.
    """
    last, cut = whole("degree", degree, 8), float(positive("tolerance", tolerance))
    h = hermite_coefficients(activation, last, breaks)
    size = float(np.linalg.norm(h))
    if size == 0:
        raise AdvlabError("a slope that is not zero everywhere")
    held = [int(k) + 1 for k in np.flatnonzero(np.abs(h) > cut * size)]
    large = {int(k) + 1 for k in np.flatnonzero(np.abs(h) > SHARP * size)}
    even, odd = (_largest([k for k in held if k % 2 == p], large, last) for p in (0, 1))
    return Parity(even, odd, h)


def parity_ranks(
    activation: str | KernelActivation, x: ArrayLike, tolerance: Scalar = 1e-9
) -> Ranks:
    """Ranks of (K(x, y) + K(x, -y))/2 and (K(x, y) - K(x, -y))/2 on points.

    Args:
        activation: a name, or one's own.
        x: the points, unit vectors as rows.
        tolerance: eigenvalues below this times the largest of both parts count as zero.
    """
    rows, cut = on_sphere("x", x), float(positive("tolerance", tolerance))
    same, other = gram(activation, rows), gram(activation, rows, -rows)
    values = [np.linalg.eigvalsh(part) for part in ((same + other) / 2, (same - other) / 2)]
    floor = cut * max(one.max() for one in values)
    even, odd = (int((one > floor).sum()) for one in values)
    return Ranks(even, odd, len(rows))


def lifted(x: ArrayLike) -> Array:
    """x -> (x, 1)/sqrt(2): no two lifted points are antipodal. (Footnote 14 forgets the root.)

    Args:
        x: unit vectors as rows.
    """
    rows = on_sphere("x", x)
    return np.column_stack([rows, np.ones(len(rows))]) / np.sqrt(2)


def _largest(degrees: list[int], large: set[int], last: int) -> float | None:
    """Without end if the parity's last degree up to last + 1, and the one before, are there; a
    number if the last that is there is large, so that the next falls to nothing at once."""
    if not degrees:
        return None
    top = last + 1 - (last + 1 - degrees[-1]) % 2
    if {top, top - 2} <= set(degrees):
        return np.inf
    return float(degrees[-1]) if degrees[-1] in large else np.nan
