"""Robust interpolation in l2 by square networks, O(d log + nd) parameters.

Inputs are moved to t in [0, 1]^d, and |x - x_i|^2 = w^2 (sum_j t_j^2 - 2 t.t_i + |t_i|^2) with w
the width of the box. One square network per coordinate serves all n points; their error adds up to
e1 = w^2 d 2^{-2k-2}, always upwards. A soft indicator of two ReLUs is 1 up to delta^2 + e1 and 0
from (separation - delta)^2 on, which needs e1 < separation (separation - 2 delta).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .....core.checks import Array, Scalar, length, points_of, signs, whole
from .....core.errors import AdvlabError
from .....theory.relu_calculus import (
    Network,
    across,
    affine,
    chain,
    least_square_depth,
    rectified,
    soft_indicator,
    squared_distance_error,
    squared_distances,
)
from .....theory.separation import require_separated


@dataclass(frozen=True)
class RobustL2:
    """The network, the depth k of its square networks, and the error of its squared distances."""

    network: Network
    depth: int
    error: float
    """e1: squared distances come out too large, by at most this, within delta of the data."""
    room: float
    """separation (separation - 2 delta): what the error must stay below."""

    @property
    def parameters(self) -> int:
        """d (22k - 6) + n (d + 8) + 2."""
        return self.network.parameters

    def __call__(self, x: Any) -> Array:
        return self.network(x)


def robust_l2(points: Any, labels: Any, delta: Scalar, depth: int | None = None) -> RobustL2:
    """sum_i y_i I(|x - x_i|^2) as a ReLU network: y f >= 1 on the ball around each point.

    f = y where balls of equal labels are as far apart as those of different ones.

    Args:
        points: rows (n, d).
        labels: +1 or -1.
        delta: the radius of the balls.
        depth: k of the square networks, by default the least whose error fills at most half of its
            room.
    """
    radius, found = length("delta", delta), require_separated(points, labels, delta, "l2")
    rows = points_of(points)
    y = signs(labels, len(rows))
    low = rows.min() - radius
    box = rows.max() + radius - low
    # With one label only, any distance separates: the indicators need not fall at all.
    apart = min(found.distance, 2 * radius + 2 * box * np.sqrt(rows.shape[1]))
    room = apart * (apart - 2 * radius)
    d, scale = rows.shape[1], box**2 * rows.shape[1]
    k = least_square_depth(scale, room) if depth is None else whole("depth", depth, 1)
    error = squared_distance_error(d, k, box)
    if not error < room:
        raise AdvlabError(
            f"square networks with an error below separation (separation - 2 delta) = {room:.3g}",
            f"error {error:.3g} at depth {k}",
            f"use depth {least_square_depth(scale, room)}",
        )
    inside = soft_indicator(radius**2 + error, (apart - radius) ** 2)
    votes = chain(across(inside, len(rows)), affine(y[None]))
    network = rectified(squared_distances(rows, k, low, box), votes)
    return RobustL2(network, k, error, room)
