"""Robust interpolation in linf with n (6d + 1) + n + 1 parameters, exact (section 2.11)."""

from typing import Any

import numpy as np
from scipy import sparse

from ..linear.inputs import Scalar
from .inputs import length, points_of, signs
from .networks import Layer, Network, copies
from .separation import require_separated


def robust_linf(points: Any, labels: Any, delta: Scalar) -> Network:
    """sum_i y_i relu(1 - sum_j [relu((x_j - x_ij - delta)/D) + relu((x_ij - x_j - delta)/D)]).

    With D the separation less 2 delta, term i is 1 on the closed ball of radius delta around x_i,
    and 0 on the balls of the other label. So y f >= 1 on every ball, and f = y where balls of equal
    labels are as far apart.
    """
    found = require_separated(points, labels, delta, "linf")
    rows, radius = points_of(points), length("delta", delta)
    n, d = rows.shape
    y, slope = signs(labels, n), 1 / found.slack(radius)
    # Unit 2 (i d + j) looks above x_ij, the next one below: each sees one coordinate.
    sides = np.tile([slope, -slope], n * d)
    columns = np.tile(np.repeat(np.arange(d), 2), n)
    first = sparse.csr_array((sides, (np.arange(2 * n * d), columns)), shape=(2 * n * d, d))
    offsets = -sides * np.repeat(rows.ravel(), 2) - slope * radius
    sums = copies(-np.ones((1, 2 * d)), n)
    return Network((Layer(first, offsets), Layer(sums, np.ones(n)), Layer(y[None], np.zeros(1))))
