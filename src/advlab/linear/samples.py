"""Adversarial least squares on given samples: the training risk and its minimiser."""

import numpy as np
from scipy.optimize import minimize

from ..core.checks import Array, ArrayLike, Numbers, Scalar, nonnegative, scalar, stack
from .inputs import HasBall, ball_of
from .interpolation import check_samples
from .risks import dual_length


def empirical_risk(theta: ArrayLike, x: ArrayLike, y: ArrayLike, ball: HasBall) -> Numbers:
    """The adversarial training risk, mean_i (|theta'x_i - y_i| + radius q)^2, q the dual norm.

    Args:
        theta: models (..., d).
        x, y: samples (n, d) and (n,).
        ball: a ball without a box.

    Returns:
        One value per row of theta.
    """
    norm, radius = ball_of(ball)
    design, target = check_samples(x, y)
    model = stack("theta", theta, design.shape[1])
    residual = np.abs(model @ design.T - target)
    q = np.asarray(dual_length(model, norm))
    return ((residual + radius * q[..., None]) ** 2).mean(axis=-1)


def smoothed_risk(
    theta: Array, x: Array, y: Array, eps: float, smoothing: Scalar
) -> tuple[float, Array]:
    """mean_i r_i^2 + 2 eps sqrt(r_i^2 a^2 + smoothing^2) + eps^2 a^2, and its gradient in theta.

    r = x theta - y and a = ||theta||_2. At smoothing 0 this is the l2 adversarial training risk;
    above 0 it is smooth and convex.

    Args:
        theta: one model (d,).
        x, y: samples (n, d) and (n,).
        eps: the l2 radius.
        smoothing: 0 or more.

    Returns:
        The value and the gradient (d,).
    """
    r = x @ theta - y
    a2 = float(theta @ theta)
    w = np.sqrt(r**2 * a2 + smoothing**2)
    ratio = np.divide(r, w, out=np.zeros_like(r), where=w > 0)
    value = float((r**2 + 2 * eps * w).mean()) + eps**2 * a2
    pulled = 2 * theta * (eps * float((r * ratio).mean()) + eps**2)
    return value, 2 * x.T @ (r + eps * a2 * ratio) / len(y) + pulled


def empirical_minimiser(x: ArrayLike, y: ArrayLike, radius: Scalar) -> Array:
    """The minimiser of `empirical_risk` in an l2 ball.

    L-BFGS on `smoothed_risk` with smoothing from 1e-1 to 1e-4 of the variance of y, each from the
    one before.

    Args:
        x, y: samples (n, d) and (n,).
        radius: the l2 radius.

    Returns:
        theta (d,).
    """
    design, target = check_samples(x, y)
    eps = scalar("radius", radius)
    theta = np.zeros(design.shape[1])
    for xi in 10.0 ** -np.arange(1, 5) * max(float(target.var()), 1e-12):
        found = minimize(
            smoothed_risk,
            theta,
            args=(design, target, eps, xi),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10},
        )
        theta = found.x
    return theta


def soft_threshold(theta: ArrayLike, cut: ArrayLike) -> Array:
    """sign(theta) max(|theta| - cut, 0): the proximal map of cut ||.||_1, entry by entry."""
    model = np.asarray(theta, dtype=np.float64)
    return np.sign(model) * np.maximum(np.abs(model) - nonnegative("cut", cut), 0.0)
