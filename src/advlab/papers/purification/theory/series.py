"""Taylor series of the smoothed step, for the NTK lower bound (Claim G.6).

Claim G.6 as printed has a wrong sign and lacks the 2^-i; these are the right coefficients.
"""

import numpy as np
from scipy.special import factorial

from ....core.checks import Array, ArrayLike, Numbers, Scalar, finite, length, whole


def density_coefficients(terms: int) -> Array:
    """c_{2i} = (-1)^i/(sqrt(2 pi) 2^i i!) for i < terms: E[rho 1(rho + x >= 0)] = s phi(x/s) =
    s sum_i c_{2i} (x/s)^(2i), rho ~ N(0, s^2)."""
    i = np.arange(whole("terms", terms, 1))
    return (-1.0) ** i / (np.sqrt(2 * np.pi) * 2.0**i * factorial(i))


def step_coefficients(terms: int) -> Array:
    """c'_{2i+1} = c_{2i}/(2i + 1) for i < terms: P(rho + x >= 0) = 1/2 + sum_i c'_{2i+1}
    (x/s)^(2i+1)."""
    return density_coefficients(terms) / (2 * np.arange(terms) + 1)


def density_series(x: ArrayLike, s: Scalar, terms: int) -> Numbers:
    """The partial sum of s phi(x/s); the first term left out bounds its error, at every x."""
    v = finite("x", x) / length("s", s)
    return (length("s", s) * np.polynomial.polynomial.polyval(v**2, density_coefficients(terms)))[
        ()
    ]


def step_series(x: ArrayLike, s: Scalar, terms: int) -> Numbers:
    """The partial sum of P(rho + x >= 0); the first term left out bounds its error, at every x."""
    v = finite("x", x) / length("s", s)
    odd = v * np.polynomial.polynomial.polyval(v**2, step_coefficients(terms))
    return (0.5 + odd)[()]


def relu_series(x: ArrayLike, s: Scalar, terms: int) -> Numbers:
    """The partial sum of E ReLU(x + rho) = x P(rho + x >= 0) + E[rho 1(rho + x >= 0)]."""
    return finite("x", x) * step_series(x, s, terms) + density_series(x, s, terms)
