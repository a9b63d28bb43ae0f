"""Adversarial least squares on given samples: losses, reference solutions, LASSO (Theorem 9).

l2 attacks throughout. The reference solvers minimise the empirical potential, which is convex and
smooth for xi > 0, so what they return does not depend on where they start.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ..core.checks import Array, ArrayLike, Numbers, Scalar, nonnegative, scalar, stack, vector
from ..core.errors import AdvlabError
from ..papers.generalization.theory.surrogate import xi_eff
from .inputs import HasBall, ball_of
from .interpolation import check_samples
from .risks import dual_length


def empirical_risk(theta: ArrayLike, x: ArrayLike, y: ArrayLike, ball: HasBall) -> Numbers:
    """mean (|theta'x_i - y_i| + radius * dual norm of theta)^2 for each row of theta (..., d)."""
    norm, radius = ball_of(ball)
    design, target = check_samples(x, y)
    model = stack("theta", theta, design.shape[1])
    residual = np.abs(model @ design.T - target)
    q = np.asarray(dual_length(model, norm))
    return ((residual + radius * q[..., None]) ** 2).mean(axis=-1)


def empirical_potential(
    theta: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    xi: Scalar,
    convention: str = "definition",
) -> tuple[float, Array]:
    """(value, gradient) of mean r^2 + 2 radius sqrt(r^2 a^2 + xi_eff^2) + radius^2 a^2."""
    design, target = check_samples(x, y)
    model = stack("theta", vector("theta", theta), design.shape[1])
    smoothing = float(xi_eff(scalar("xi", xi), convention))
    return _potential(model, design, target, scalar("radius", radius), smoothing)


def _potential(theta: Array, x: Array, y: Array, eps: float, xi: Scalar) -> tuple[float, Array]:
    r = x @ theta - y
    a2 = float(theta @ theta)
    w = np.sqrt(r**2 * a2 + xi**2)
    ratio = np.divide(r, w, out=np.zeros_like(r), where=w > 0)
    value = float((r**2 + 2 * eps * w).mean()) + eps**2 * a2
    pulled = 2 * theta * (eps * float((r * ratio).mean()) + eps**2)
    return value, 2 * x.T @ (r + eps * a2 * ratio) / len(y) + pulled


def empirical_minimiser(x: ArrayLike, y: ArrayLike, radius: Scalar) -> Array:
    """The minimiser of the l2 empirical adversarial risk, to about 1e-4 of its smoothing.

    L-BFGS on the potential with xi_eff taken down from 1e-1 to 1e-4, each from the one before.
    """
    design, target = check_samples(x, y)
    eps = scalar("radius", radius)
    theta = np.zeros(design.shape[1])
    for xi in 10.0 ** -np.arange(1, 5) * max(float(target.var()), 1e-12):
        found = minimize(
            _potential,
            theta,
            args=(design, target, eps, xi),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10},
        )
        theta = found.x
    return theta


def adversarial_lasso(
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    penalty: Scalar,
    xi: Scalar,
    convention: str = "definition",
    steps: int = 5000,
    tolerance: Scalar = 1e-10,
) -> Array:
    """argmin of the empirical potential + penalty * ||theta||_1 (the estimator of Theorem 9).

    FISTA from zero with backtracking and restarts; ends when a step moves theta by less than
    `tolerance` of its length. Zero if penalty >= max |gradient at zero|.
    """
    design, target = check_samples(x, y)
    eps, weight = scalar("radius", radius), scalar("penalty", penalty)
    smoothing = float(xi_eff(scalar("xi", xi), convention))
    if smoothing == 0 and eps > 0:
        raise AdvlabError("xi must be positive: the risk has a kink at zero", xi)
    theta = momentum = np.zeros(design.shape[1])
    bound, time = 2 * np.linalg.norm(design, 2) ** 2 / len(target) + 2 * eps**2, 1.0
    for _ in range(steps):
        value, gradient = _potential(momentum, design, target, eps, smoothing)
        while True:
            new = soft(momentum - gradient / bound, weight / bound)
            step = new - momentum
            model = value + gradient @ step + bound / 2 * step @ step
            if _potential(new, design, target, eps, smoothing)[0] <= model + 1e-12 * abs(model):
                break
            bound *= 2
        moved = new - theta
        later = (1 + np.sqrt(1 + 4 * time**2)) / 2
        # A step that goes against the momentum restarts it; otherwise FISTA circles the solution.
        uphill = (momentum - new) @ moved > 0
        momentum = new if uphill else new + (time - 1) / later * moved
        theta, time = new, 1.0 if uphill else later
        if np.linalg.norm(moved) <= tolerance * max(float(np.linalg.norm(theta)), 1e-300):
            break
    return theta


def soft(theta: ArrayLike, cut: ArrayLike) -> Array:
    """sign(theta) max(|theta| - cut, 0), the proximal step of the l1 norm."""
    model = np.asarray(theta, dtype=np.float64)
    return np.sign(model) * np.maximum(np.abs(model) - nonnegative("cut", cut), 0.0)


def _exact_gradients(theta: Array, x: Array, y: Array, eps: float) -> Array:
    """One gradient of (|r| + eps ||theta||)^2 a sample."""
    a = float(np.linalg.norm(theta))
    if a == 0:
        raise AdvlabError("the adversarial loss has no gradient at theta = 0", 0.0)
    r = x @ theta - y
    size = np.abs(r) + eps * a
    return 2 * size[:, None] * (np.sign(r)[:, None] * x + eps * theta / a)


@dataclass(frozen=True)
class Cone:
    """Quantities in the proof of Theorem 9 for an estimate near theta*."""

    noise: float
    """k = max |mean gradient at theta*|; the proof bounds it by c sqrt(s log d/n)."""
    ratio: float
    """||error off the support||_1 / ||error on it||_1."""
    bound: float
    """(lambda + k) / (lambda - k), which the ratio cannot exceed when lambda > k."""
    error: float
    """||theta - theta*||_1 / lambda: stays bounded."""
    curvature: float
    """[loss(theta) - loss(theta*) - error'gradient] / ||error||^2; compare `quadratic_growth`."""


def cone(
    theta: ArrayLike,
    theta_star: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    penalty: Scalar,
) -> Cone:
    """The cone condition and restricted curvature of Theorem 9 and Lemma 4, measured."""
    design, target = check_samples(x, y)
    star = stack("theta_star", vector("theta_star", theta_star), design.shape[1])
    model = stack("theta", vector("theta", theta), design.shape[1])
    eps, weight = scalar("radius", radius), scalar("penalty", penalty)
    error, support = model - star, star != 0
    if not error.any() or weight == 0:
        raise AdvlabError("the cone needs a positive penalty and theta other than theta_star")
    gradient = _exact_gradients(star, design, target, eps).mean(axis=0)
    noise = float(np.abs(gradient).max())
    inside, outside = (float(np.abs(error[part]).sum()) for part in (support, ~support))
    risks = [
        ((np.abs(design @ t - target) + eps * np.linalg.norm(t)) ** 2).mean() for t in (model, star)
    ]
    return Cone(
        noise=noise,
        ratio=outside / inside if inside else np.inf,
        bound=(weight + noise) / (weight - noise) if weight > noise else np.inf,
        error=(inside + outside) / weight,
        curvature=float((risks[0] - risks[1] - error @ gradient) / (error @ error)),
    )


def loss_increase_bound(
    theta: ArrayLike, theta_star: ArrayLike, x: ArrayLike, y: ArrayLike, radius: Scalar
) -> Array:
    """Lemma 5: an upper bound on l_eps(theta) - l_eps(theta*), one value a sample.

    With the sgn(r) that the paper misses on its fifth term.
    """
    design, target = check_samples(x, y)
    star = stack("theta_star", vector("theta_star", theta_star), design.shape[1])
    model = stack("theta", vector("theta", theta), design.shape[1])
    eps, error = scalar("radius", radius), model - star
    a, b = float(np.linalg.norm(model)), float(np.linalg.norm(star))
    linear = _exact_gradients(star, design, target, eps) @ error
    r, moved = design @ star - target, design @ error
    quadratic = moved**2 + eps**2 * float(error @ error) + 4 * eps * a * np.abs(moved)
    turned = 2 * eps * (a * b - float(model @ star)) / b * np.abs(r)
    return linear + quadratic + 2 * eps * (a - b) * moved * np.sign(r) + turned
