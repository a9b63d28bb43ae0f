"""Risks of a linear model under attack, in closed form (eqs. 5 and 9 of Xing et al.).

Data are y = theta0'x + u with x ~ N(0, cov) and u ~ N(0, sigma2). The residual of theta is then
N(0, s^2) with s^2 = ||theta - theta0||_cov^2 + sigma2, and an attack in a ball adds
radius * (dual norm of theta) to its absolute value.
"""

import numpy as np

from ..core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    covariance,
    nonnegative,
    scalar,
    stack,
    together,
    vector,
)
from ..threats.norms import dual_order, order_of
from .inputs import C0, HasBall, ball_of


def length(theta: Array, order: float) -> Numbers:
    """The norm of this order along the last axis."""
    return np.linalg.norm(theta, ord=order, axis=-1)


def dual_length(theta: Array, norm: str) -> Numbers:
    """max of <theta, z> over the unit ball of the norm, along the last axis of theta."""
    return length(theta, dual_order(order_of(norm)))


def squared_distance(difference: Array, cov: Array | None) -> Numbers:
    """||difference||_cov^2 along the last axis."""
    image = difference if cov is None else difference @ cov
    return np.einsum("...i,...i->...", image, difference)


def closed_form(s: Numbers, q: Numbers, radius: Numbers) -> Numbers:
    """E(|r| + radius q)^2 for r ~ N(0, s^2): the right-hand side of eqs. 5 and 9."""
    return s**2 + radius**2 * q**2 + 2 * C0 * radius * q * s


def residual_std(
    theta: ArrayLike, theta0: ArrayLike, sigma2: Scalar, cov: ArrayLike | None = None
) -> Numbers:
    """s(theta), the standard deviation of the residual theta'x - y; see `standard_risk`."""
    return np.sqrt(standard_risk(theta, theta0, sigma2, cov))


def standard_risk(
    theta: ArrayLike, theta0: ArrayLike, sigma2: Scalar, cov: ArrayLike | None = None
) -> Numbers:
    """E(theta'x - y)^2 = ||theta - theta0||_cov^2 + sigma2.

    Args:
        theta: models (..., d).
        theta0: the true model (d,).
        sigma2: the variance of the noise.
        cov: the covariance of x (d, d); None is the identity.

    Returns:
        One value per row of theta.
    """
    truth = vector("theta0", theta0)
    model = stack("theta", theta, len(truth))
    noise = scalar("sigma2", sigma2)
    return squared_distance(model - truth, covariance(cov, len(truth))) + noise


def total_variance(theta0: ArrayLike, sigma2: Scalar, cov: ArrayLike | None = None) -> float:
    """v^2 = ||theta0||_cov^2 + sigma2 = Var(y), the risk of the zero model at every radius."""
    truth = vector("theta0", theta0)
    return float(standard_risk(np.zeros_like(truth), truth, sigma2, cov))


def adversarial_risk(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    ball: HasBall,
    cov: ArrayLike | None = None,
) -> Numbers:
    """E max over z in the ball of (theta'(x + z) - y)^2.

    s^2 + radius^2 q^2 + 2 radius sqrt(2/pi) q s with q the dual norm of theta: eq. 5 for l2 balls,
    eq. 9 for linf balls; for l1 balls the same argument gives q = ||theta||_inf (derived here).

    Args:
        theta: models (..., d).
        theta0: the true model (d,).
        sigma2: the variance of the noise.
        ball: a ball without a box.
        cov: the covariance of x (d, d); None is the identity.

    Returns:
        One value per row of theta.

    Example:
        from advlab.linear import adversarial_risk
        from advlab.threats import Ball
        adversarial_risk([0.5, 0.5], [1.0, 1.0], 1.0, Ball(norm="l2", radius=0.1))
    """
    norm, radius = ball_of(ball)
    return adversarial_risks(theta, theta0, sigma2, radius, norm, cov)


def adversarial_risks(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    radii: ArrayLike,
    norm: str = "l2",
    cov: ArrayLike | None = None,
) -> Numbers:
    """`adversarial_risk` for many radii; they broadcast with the batch axes of theta (..., d)."""
    s = residual_std(theta, theta0, sigma2, cov)
    q = dual_length(np.asarray(theta, dtype=np.float64), norm)
    radius = nonnegative("radii", radii)
    together(theta=np.asarray(s), radii=radius)
    return closed_form(s, q, radius[()])
