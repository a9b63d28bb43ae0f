"""Plain interpolation: n points in any dimension take d + 2n parameters (section 6).

f(x) = sum_k c_k relu(u.x - b_k), with u a random direction. It fits every point, and is a function
of u.x only: other points are as near in u.x as chance has it, so it is seldom robust.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from .....core.checks import Array, Scalar, finite, points_of, scalar, stack
from .....core.errors import AdvlabError
from .....theory.separation import require_distinct


@dataclass(frozen=True)
class RidgeSpline:
    """f(x) = sum_k c_k relu(u.x - b_k): two layers whose first has equal rows u."""

    direction: Array
    knots: Array
    coefficients: Array

    @property
    def parameters(self) -> int:
        """u, b and c: d + 2n."""
        return self.direction.size + self.knots.size + self.coefficients.size

    def __call__(self, x: Any) -> Array:
        return self._at(stack("x", x, self.direction.size) @ self.direction)

    def extremes(self, x: Any, radius: Scalar) -> tuple[Array, Array]:
        """The least and the largest f over the l2 ball around each x, exactly.

        u.x takes every value within radius |u|; a piecewise linear function is extreme at the ends
        or at a knot.

        Args:
            x: centres as rows.
            radius: of the balls.
        """
        reach = scalar("radius", radius) * float(np.linalg.norm(self.direction))
        t = (stack("x", x, self.direction.size) @ self.direction)[..., None]
        ends = np.concatenate([t - reach, t + reach], axis=-1)
        values = self._at(np.concatenate([ends, np.clip(self.knots, t - reach, t + reach)], -1))
        return values.min(axis=-1), values.max(axis=-1)

    def _at(self, t: Array) -> Array:
        return np.maximum(t[..., None] - self.knots, 0.0) @ self.coefficients


def plain_interpolator(points: Any, values: Any, rng: np.random.Generator) -> RidgeSpline:
    """f(x_i) = values_i, by a triangular solve along a random unit direction.

    Knots: b_1 one mean gap below the least t_i = u.x_i, then b_k = t_{k-1} in their order.

    Args:
        points: rows (n, d).
        values: what f is there.
        rng: for the direction.
    """
    rows = points_of(points)
    target = finite("values", values)
    if target.shape != (len(rows),):
        raise AdvlabError(f"one value for each of {len(rows)} points", f"shape {target.shape}")
    require_distinct(rows)
    u = rng.standard_normal(rows.shape[1])
    u /= np.linalg.norm(u)
    t = rows @ u
    order = np.argsort(t)
    t = t[order]
    if (np.diff(t) <= 0).any():
        raise AdvlabError("points that differ by more than rounding", "two with one u.x")
    below = (t[-1] - t[0]) / (len(t) - 1) if len(t) > 1 else 1.0
    knots = np.r_[t[0] - below, t[:-1]]
    steps = np.maximum(t[:, None] - knots, 0.0)
    return RidgeSpline(u, knots, solve_triangular(steps, target[order], lower=True))
