"""The interpolator of least l1 norm: basis pursuit, solved to a certificate."""

from typing import Any

import numpy as np

from ..core.checks import Array, ArrayLike
from ..core.errors import AdvlabError
from .solve import _interpolation, prepare, solve_linear


def min_norm_l1(x: Any, y: ArrayLike) -> Array:
    """argmin ||theta||_1 subject to X theta = y.

    It is what linf attacks of any radius up to the interpolation threshold leave; `min_norm` is its
    companion for l2 attacks.

    Args:
        x, y: samples (n, d) and (n,), with d >= n and rows that are linearly independent.

    Returns:
        theta (d,), with exact zeros.

    Example:
        import numpy as np
        from advlab.linear import min_norm_l1
        np.abs(min_norm_l1(x, y)).sum()
    """
    edge = _interpolation(prepare(x, y, fit_intercept=False))
    if edge == 0:
        raise AdvlabError(
            "samples that a linear model can fit: at least as many features as samples",
            f"shape {np.shape(x)}",
        )
    eps = 0.5 * edge if np.isfinite(edge) else 1.0
    return solve_linear(x, y, eps, loss="absolute", fit_intercept=False).coef
