"""Robust interpolation in linf with n (6d + 1) + n + 1 parameters, exact."""

from typing import Any

from .....core.checks import Scalar, length, points_of, signs
from .....theory.relu_calculus import Network, affine, linf_indicators, rectified
from .....theory.separation import require_separated


def robust_linf(points: Any, labels: Any, delta: Scalar) -> Network:
    """sum_i y_i relu(1 - sum_j [relu((x_j - x_ij - delta)/D) + relu((x_ij - x_j - delta)/D)]).

    With D the separation less 2 delta, term i is 1 on the closed ball of radius delta around x_i,
    and 0 on the balls of the other label. So y f >= 1 on every ball, and f = y where balls of equal
    labels are as far apart.

    Args:
        points: rows (n, d).
        labels: +1 or -1.
        delta: the radius of the balls.
    """
    found = require_separated(points, labels, delta, "linf")
    rows, radius = points_of(points), length("delta", delta)
    y = signs(labels, len(rows))
    return rectified(linf_indicators(rows, radius, found.slack(radius)), affine(y[None]))
