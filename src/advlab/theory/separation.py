"""Points of different labels whose balls must not meet (the paper's compatibility)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from ..core.checks import Array, Scalar, length, points_of, signs
from ..core.errors import AdvlabError
from ..threats.norms import order_of

METRIC: dict[float, Any] = {2.0: "euclidean", np.inf: "chebyshev"}


@dataclass(frozen=True)
class Separation:
    """The nearest two points of different labels; without such a pair the distance is infinite."""

    distance: float
    pair: tuple[int, int] | None

    def slack(self, delta: float) -> float:
        """The gap that balls of radius delta leave between the labels: distance - 2 delta."""
        return self.distance - 2 * delta


def separation(points: Any, labels: Any, norm: str) -> Separation:
    """The least distance of two points with different labels, and which they are."""
    if order_of(norm) not in METRIC:
        raise AdvlabError("norm must be l2 or linf", repr(norm))
    rows = points_of(points)
    y = signs(labels, len(rows))
    apart = np.where(y[:, None] != y, cdist(rows, rows, METRIC[order_of(norm)]), np.inf)
    i, j = (int(one) for one in np.unravel_index(apart.argmin(), apart.shape))
    least = float(apart[i, j])
    return Separation(least, (i, j) if np.isfinite(least) else None)


def require_separated(points: Any, labels: Any, delta: Scalar, norm: str) -> Separation:
    """The separation, refused where closed balls of radius delta meet across labels."""
    radius, found = length("delta", delta), separation(points, labels, norm)
    slack = found.slack(radius)
    if slack <= 0:
        raise AdvlabError(
            f"points of different labels more than 2 delta = {2 * radius:.6g} apart in {norm}",
            f"points {found.pair} at distance {found.distance:.6g}, slack {slack:.3g}",
            f"use delta below {found.distance / 2:.6g}, or drop one of the two",
        )
    return found


def require_distinct(points: Array) -> None:
    """Refuse points that are repeated, and name the first pair."""
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse.ravel()] != np.arange(len(points)))
    if again.size:
        i = int(again[0])
        pair = (int(first[inverse.ravel()[i]]), i)
        raise AdvlabError("points that are all different", f"points {pair} are the same")
