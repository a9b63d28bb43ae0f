"""The adversarial LASSO of Theorem 9, and the quantities of its proof (Lemmas 4 and 5).

l2 attacks. The estimate minimises the sample version of the potential R~ of Theorem 2's proof,
which is convex and smooth for xi > 0, plus an l1 penalty.
"""

from dataclasses import dataclass

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, scalar, stack, vector
from ....core.errors import AdvlabError
from ....linear.interpolation import check_samples
from ....linear.samples import smoothed_risk, soft_threshold
from .surrogate import xi_eff


def empirical_potential(
    theta: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    xi: Scalar,
    convention: str = "definition",
) -> tuple[float, Array]:
    """The sample version of R~: mean r^2 + 2 radius sqrt(r^2 a^2 + xi_eff^2) + radius^2 a^2.

    Args:
        theta: one model (d,).
        x, y: samples (n, d) and (n,).
        radius, xi: of the l2 attack.
        convention: how xi is read, see `xi_eff`.

    Returns:
        The value and its gradient in theta.
    """
    design, target = check_samples(x, y)
    model = stack("theta", vector("theta", theta), design.shape[1])
    smoothing = float(xi_eff(scalar("xi", xi), convention))
    return smoothed_risk(model, design, target, scalar("radius", radius), smoothing)


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

    FISTA from zero with backtracking and restarts. Zero if penalty >= max |gradient at zero|.

    Args:
        x, y: samples (n, d) and (n,).
        radius, xi: of the l2 attack.
        penalty: lambda.
        convention: how xi is read, see `xi_eff`.
        steps: at most so many.
        tolerance: it ends when a step moves theta by less than this share of its length.

    Returns:
        theta (d,).
    """
    design, target = check_samples(x, y)
    eps, weight = scalar("radius", radius), scalar("penalty", penalty)
    smoothing = float(xi_eff(scalar("xi", xi), convention))
    if smoothing == 0 and eps > 0:
        raise AdvlabError("xi must be positive: the risk has a kink at zero", xi)
    theta = momentum = np.zeros(design.shape[1])
    bound, time = 2 * np.linalg.norm(design, 2) ** 2 / len(target) + 2 * eps**2, 1.0
    for _ in range(steps):
        value, gradient = smoothed_risk(momentum, design, target, eps, smoothing)
        while True:
            new = soft_threshold(momentum - gradient / bound, weight / bound)
            step = new - momentum
            model = value + gradient @ step + bound / 2 * step @ step
            if smoothed_risk(new, design, target, eps, smoothing)[0] <= model + 1e-12 * abs(model):
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


def _exact_gradients(theta: Array, x: Array, y: Array, eps: float) -> Array:
    """The gradient of (|r| + eps ||theta||)^2 of each sample."""
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
    """The cone condition and restricted curvature of Theorem 9 and Lemma 4, measured.

    Args:
        theta: the estimate (d,).
        theta_star: the minimiser of the population risk (d,).
        x, y: samples (n, d) and (n,).
        radius: of the l2 attack.
        penalty: lambda.
    """
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
    """Lemma 5: an upper bound on l_eps(theta) - l_eps(theta*), one value per sample.

    With the sgn(r) that the paper misses on its fifth term. Arguments as in `cone`.
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
