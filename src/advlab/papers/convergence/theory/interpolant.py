"""Assumption 5.2 as an algorithm: the least-norm function of the RKHS that fits whole caps.

min ||g||_H subject to |g(z) - y_i| <= eps for all z in cap(x_i, delta), by cutting planes: solve on
finitely many points, find the worst point of each cap by projected ascent, add it, repeat.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, fraction, positive, scalar, whole
from .activations import KernelActivation, get_activation
from .caps import ascend, require_disjoint_caps, sample
from .inputs import cap_radius, labels, on_sphere
from .kernels import gram, kernel_slope
from .quadratic_program import least_norm

Ending = Literal["fits", "rounds used up", "infeasible", "unsolved", "ridge"]


@dataclass(frozen=True)
class Expansion:
    """g = sum_t a_t K(z_t, .) with centres z_t on the sphere."""

    activation: KernelActivation
    centres: Array
    coefficients: Array

    def __call__(self, x: ArrayLike) -> Array:
        """g at the rows of x, points of the sphere."""
        return gram(self.activation, on_sphere("x", x, self.centres.shape[1]), self.centres) @ (
            self.coefficients
        )

    def gradient(self, x: ArrayLike) -> Array:
        """sum_t a_t K'(<x, z_t>) z_t: its part along the sphere is the gradient there."""
        c = np.clip(on_sphere("x", x, self.centres.shape[1]) @ self.centres.T, -1, 1)
        return (kernel_slope(self.activation, c) * self.coefficients) @ self.centres

    @property
    def norm(self) -> float:
        """||g||_H = sqrt(a'Ga)."""
        square = self.coefficients @ gram(self.activation, self.centres) @ self.coefficients
        return float(np.sqrt(max(square, 0.0)))


@dataclass(frozen=True)
class RobustFit:
    """g, its norm, the largest |g - y_i| and the least y_i g found over all caps, and the ending.

    "fits": the error is at most eps everywhere the ascent looked. "infeasible": no function of the
    RKHS fits the points visited, the norm is infinite and g is NaN. Else the sup error says how
    well it fits.
    """

    expansion: Expansion
    norm: float
    sup_error: float
    margin: float
    rounds: int
    status: Ending


def robust_interpolant(
    activation: str | KernelActivation,
    x: ArrayLike,
    y: ArrayLike,
    delta: Scalar,
    eps: Scalar,
    *,
    rng: np.random.Generator,
    samples: int = 30,
    rounds: int = 40,
    tolerance: Scalar = 0.01,
) -> RobustFit:
    """The least-norm g with |g - y_i| <= eps on cap(x_i, delta) for all i.

    Programs are solved at (1 - tolerance) eps, so that finitely many rounds reach eps itself; the
    norm is between the optima of the two.

    Args:
        activation: a name, or one's own.
        x: centres, unit vectors as rows.
        y: labels +1 or -1; those of caps that meet must agree.
        delta: the radius of the caps.
        eps: how far g may be from the labels.
        rng: for the points that programs and ascents start from.
        samples: such points per cap.
        rounds: of cutting planes, at most.
        tolerance: how much tighter programs are than eps.
    """
    own, rows = get_activation(activation), on_sphere("x", x)
    signs, radius, many = labels("y", y, len(rows)), cap_radius(delta), whole("samples", samples, 2)
    width = float(positive("eps", scalar("eps", eps)))
    inner = width * (1 - fraction("tolerance", tolerance))
    require_disjoint_caps(rows, signs, radius)
    points = sample(rows, radius, many, rng).reshape(-1, rows.shape[1])
    owner = np.repeat(np.arange(len(rows)), many)
    for used in range(1, whole("rounds", rounds) + 1):
        solved = least_norm(gram(own, points), signs[owner], inner)
        if solved.status != "solved":
            g = Expansion(own, points, solved.coefficients)
            return RobustFit(g, solved.norm, np.nan, np.nan, used, solved.status)
        held = solved.coefficients != 0
        g = Expansion(own, points[held], solved.coefficients[held])
        worst = _worst(g, rows, signs, radius, sample(rows, radius, many, rng))
        error, margin = float(worst.errors.max()), float(1 - worst.errors[0].max())
        if error <= width:
            return RobustFit(g, g.norm, error, margin, used, "fits")
        out = worst.errors > inner
        points = np.concatenate([points, worst.points[out]])
        owner = np.r_[owner, np.nonzero(out)[1]]
    return RobustFit(g, g.norm, error, margin, used, "rounds used up")


def ridge_interpolant(
    activation: str | KernelActivation,
    x: ArrayLike,
    y: ArrayLike,
    delta: Scalar,
    lam: Scalar,
    *,
    rng: np.random.Generator,
    samples: int = 30,
) -> RobustFit:
    """a = (G + lam I)^{-1} Y on samples of the caps, with its true sup error and margin.

    Takes labels that conflict, too: where caps of opposite labels meet, the error is at least 1.

    Args:
        lam: the ridge.
        activation, x, y, delta, rng, samples: as for `robust_interpolant`.
    """
    own, rows = get_activation(activation), on_sphere("x", x)
    signs, radius, many = labels("y", y, len(rows)), cap_radius(delta), whole("samples", samples, 2)
    ridge = float(positive("lam", scalar("lam", lam)))
    points = sample(rows, radius, many, rng).reshape(-1, rows.shape[1])
    matrix = gram(own, points) + ridge * np.eye(len(points))
    g = Expansion(own, points, np.linalg.solve(matrix, np.repeat(signs, many)))
    worst = _worst(g, rows, signs, radius, sample(rows, radius, many, rng))
    margin = float(1 - worst.errors[0].max())
    return RobustFit(g, g.norm, float(worst.errors.max()), margin, 1, "ridge")


@dataclass(frozen=True)
class _Worst:
    """Of each cap the largest 1 - y g and the largest y g - 1, shape (2, n), and where."""

    errors: Array
    points: Array


def _worst(g: Expansion, x: Array, y: Array, delta: float, starts: Array) -> _Worst:
    errors, points = [], []
    for side in (-1.0, 1.0):
        sign = side * y[:, None]

        def error(z: Array, sign: Array = sign, side: float = side) -> tuple[Array, Array]:
            flat = z.reshape(-1, z.shape[-1])
            value = g(flat).reshape(z.shape[:-1])
            return sign * value - side, sign[..., None] * g.gradient(flat).reshape(z.shape)

        ends, values = ascend(error, starts, x, delta)
        best = values.argmax(1)
        each = np.arange(len(x))
        errors.append(values[each, best])
        points.append(ends[each, best])
    return _Worst(np.array(errors), np.array(points))
