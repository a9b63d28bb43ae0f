"""Gaussian integrals behind the surrogate attack, in closed form (derived here).

Z is standard normal and c >= 0 is xi_eff / (||theta|| s). Each is checked against quadrature.
"""

import numpy as np
from scipy.special import erfcx, factorial2, k0e, k1e

from ....core.checks import Array, Numbers
from ....linear.inputs import C0

_FAR = 50.0
"""Beyond this the closed forms cancel and the series in 1/c^2 is exact to rounding."""
_NEAR = 1e-100
_ORDER = np.arange(8)
_ODD_MOMENTS = factorial2(2 * _ORDER + 1, exact=True).astype(float)
_ROOT_SERIES = np.cumprod(np.r_[1.0, -(2 * _ORDER[1:] - 1) / (2 * _ORDER[1:])]) * _ODD_MOMENTS
_SQUARE_SERIES = (-1.0) ** _ORDER * _ODD_MOMENTS


def root(c: Numbers) -> Numbers:
    """E sqrt(Z^2 + c^2) = b (K0e(b/4) + K1e(b/4)) / (2 sqrt(2 pi)) with b = c^2."""
    b = np.clip(c, _NEAR, 1e100) ** 2
    return np.where(c < _NEAR, C0, b * (k0e(b / 4) + k1e(b / 4)) / np.sqrt(8 * np.pi))


def scaled_shrunk(c: Numbers) -> Numbers:
    """c E[Z^2 / sqrt(Z^2 + c^2)]: c sqrt(2/pi) near 0, tends to 1."""
    b = np.clip(c, _NEAR, _FAR) ** 2
    near = np.where(c < _NEAR, C0, b * (k1e(b / 4) - k0e(b / 4)) / np.sqrt(8 * np.pi))
    return np.where(c < _FAR, np.minimum(c, _FAR) * near, _series(_ROOT_SERIES, c))


def squared_shrunk(c: Numbers) -> Numbers:
    """E[Z^2 / (Z^2 + c^2)] = 1 - c sqrt(pi/2) erfcx(c / sqrt 2): 1 at c = 0, like 1/c^2 far out."""
    near = np.minimum(c, _FAR)
    far = np.maximum(c, _FAR)
    exact = 1 - near * np.sqrt(np.pi / 2) * erfcx(near / np.sqrt(2))
    return np.where(c < _FAR, exact, _series(_SQUARE_SERIES, c) / far / far)


def _series(coefficients: Array, c: Numbers) -> Numbers:
    return np.polynomial.polynomial.polyval(np.maximum(c, _FAR) ** -2.0, coefficients)
