"""The minimiser theta*(radius) of the adversarial risk, its risk R*, and where it changes form.

Propositions 1 and 8 give its form; the fixed point for kappa, the explicit thresholds and the linf
and l1 balls are derived here.
"""

from dataclasses import dataclass

import numpy as np

from ..core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    covariance,
    finite,
    nonnegative,
    scalar,
    vector,
)
from ..core.errors import AdvlabError
from ..threats.norms import order_of
from .inputs import C0, HasBall, ball_of
from .paths import RegularisationPath, path
from .risks import adversarial_risks, dual_length, length, squared_distance, total_variance
from .roots import find_roots


@dataclass(frozen=True)
class Optimum:
    """The minimiser of the adversarial risk; arrays when it was asked for many radii."""

    theta: Array
    risk: Numbers
    kappa: Numbers
    """cov (theta0 - theta) = kappa g, g a subgradient of (dual norm of theta)^2 / 2; for l2 balls
    theta = (cov + kappa I)^{-1} cov theta0. 0 where theta = theta0, infinite where theta = 0."""


def optimal(
    theta0: ArrayLike, sigma2: Scalar, ball: HasBall, cov: ArrayLike | None = None
) -> Optimum:
    """argmin over theta of `adversarial_risk`; how it is found says `optimal_path`.

    Args:
        theta0: the true model (d,).
        sigma2: the variance of the noise.
        ball: a ball without a box.
        cov: the covariance of x (d, d); None is the identity.

    Returns:
        The minimiser `.theta`, its risk `.risk` and the ridge parameter `.kappa`.

    Example:
        from advlab.linear import optimal
        from advlab.threats import Ball
        optimal([1.0] * 10, 1.0, Ball(norm="l2", radius=0.5)).risk  # 5.385
    """
    norm, radius = ball_of(ball)
    many = optimal_path(theta0, sigma2, [radius], norm, cov)
    return Optimum(many.theta[0], float(np.squeeze(many.risk)), float(np.squeeze(many.kappa)))


def optimal_path(
    theta0: ArrayLike,
    sigma2: Scalar,
    radii: ArrayLike,
    norm: str = "l2",
    cov: ArrayLike | None = None,
) -> Optimum:
    """The optimum at every radius, all searched together.

    kappa = (radius^2 + radius c0 s/q) / (1 + radius c0 q/s) at the solution, q the dual norm of
    theta. theta = 0 from `eps_zero` on. Without noise theta = theta0 up to a positive radius.
    l2 balls, and all balls under a diagonal covariance, cost a few vectorised evaluations; linf
    and l1 balls under a correlated covariance solve a small quadratic programme for each.

    Args:
        theta0, sigma2, cov: as in `optimal`.
        radii: radii of any shape.
        norm: "l2", "linf" or "l1".

    Returns:
        Arrays: theta (*radii.shape, d), risk and kappa (radii.shape).
    """
    truth = vector("theta0", theta0)
    noise = scalar("sigma2", sigma2)
    matrix = covariance(cov, len(truth))
    radius = nonnegative("radii", radii)
    family = path(truth, noise, order_of(norm), matrix)
    shrink = _shrinking(family, radius.ravel(), noise, eps_zero(truth, noise, norm, matrix))
    kept = np.where(np.isinf(shrink), 0.0, shrink)
    theta = np.where(np.isinf(shrink)[:, None], 0.0, family.at(kept))
    theta = theta.reshape(*radius.shape, len(truth))
    risk = adversarial_risks(theta, truth, noise, radius, norm, matrix)
    kappa = _kappa(theta, truth, shrink.reshape(radius.shape), norm, matrix)
    return Optimum(theta, risk, kappa)


def _shrinking(
    family: RegularisationPath, radius: Array, sigma2: Scalar, threshold: float
) -> Array:
    """The amount of shrinking on the path at which its derivative vanishes, one per radius."""
    shrink = np.where(radius < threshold, 0.0, np.inf)
    shrink[radius == 0] = 0.0
    inside = np.flatnonzero((radius > 0) & (radius < threshold))
    eps = radius[inside]
    # m lies in [c0, 1/c0] * eps * s along the path, and s is at least sigma.
    low = eps * C0 * np.sqrt(sigma2) / family.slope / 2 if sigma2 else family.start
    low = np.log(np.broadcast_to(low, eps.shape))
    high = np.full(eps.shape, np.log(family.end))
    at_low, at_high = (_imbalance(end, eps, family) for end in (low, high))
    shrink[inside[at_high >= 0]] = np.inf
    search = (at_low > 0) & (at_high < 0)
    wanted = eps[search]
    found = find_roots(lambda x: _imbalance(x, wanted, family), low[search], high[search])
    shrink[inside[search]] = np.exp(found)
    return shrink


def _imbalance(log_shrink: Array, eps: Array, family: RegularisationPath) -> Array:
    """log of (what the attack pulls) / (what the fit resists); decreasing, zero at the optimum."""
    q, s, m = family.profile(np.exp(log_shrink))
    return np.log(eps * s * (eps * q + C0 * s) / (s + eps * C0 * q)) - np.log(m)


def _kappa(theta: Array, theta0: Array, shrink: Array, norm: str, cov: Array | None) -> Array:
    order = order_of(norm)
    if order == 2:
        return shrink
    lost = theta0 - theta
    m = length(lost if cov is None else lost @ cov, order)
    q = dual_length(theta, norm)
    return np.divide(m, q, out=np.where(shrink == 0, 0.0, np.inf), where=q > 0)


def eps_zero(
    theta0: ArrayLike, sigma2: Scalar, norm: str = "l2", cov: ArrayLike | None = None
) -> float:
    """The radius from which theta* = 0: sqrt(pi/2) ||cov theta0|| / v, in the ball's own norm.

    The constant that Proposition 1 leaves open (derived here); for l2 and cov = I the condition of
    Theorem 9. Arguments as in `optimal_path`.
    """
    truth = vector("theta0", theta0)
    matrix = covariance(cov, len(truth))
    v2 = total_variance(truth, sigma2, matrix)
    image = truth if matrix is None else matrix @ truth
    return float(length(image, order_of(norm)) / (C0 * np.sqrt(v2))) if v2 > 0 else 0.0


def eps_unmoved(theta0: ArrayLike, cov: ArrayLike | None = None) -> float:
    """Without noise theta* = theta0 up to the l2 radius c0 ||theta0|| / ||cov^{-1/2} theta0||.

    Derived here; c0 itself for cov = I.
    """
    truth = vector("theta0", theta0)
    matrix = covariance(cov, len(truth))
    if not truth.any():
        return 0.0
    try:
        whitened = truth if matrix is None else np.linalg.solve(matrix, truth)
    except np.linalg.LinAlgError:
        raise AdvlabError("cov must be positive definite here", "a singular one") from None
    return float(C0 * np.sqrt(truth @ truth) / np.sqrt(truth @ whitened))


def cost_of_robustness(
    theta0: ArrayLike,
    sigma2: Scalar,
    radii: ArrayLike,
    norm: str = "l2",
    cov: ArrayLike | None = None,
) -> Numbers:
    """c(radius) = [standard risk of theta* - sigma2] / v^2 = ||theta* - theta0||_cov^2 / v^2.

    What robustness costs in standard risk (after Theorem 2); grows from 0 to
    ||theta0||_cov^2 / v^2, which it reaches at `eps_zero`. Arguments as in `optimal_path`.
    """
    best = optimal_path(theta0, sigma2, radii, norm, cov)
    truth = vector("theta0", theta0)
    v2 = total_variance(truth, sigma2, cov)
    if v2 == 0:
        raise AdvlabError("the cost is relative to v^2, which must be positive", 0.0)
    return squared_distance(best.theta - truth, covariance(cov, len(truth))) / v2


def quadratic_growth(
    radii: ArrayLike, cov: ArrayLike | None = None, form: str = "paper"
) -> Numbers:
    """m with R(theta) - R* >= m ||theta - theta*||^2 for every theta, under l2 attacks.

    Args:
        radii: radii of any shape.
        cov: the covariance of x; used by "tight".
        form: "paper": radius^2 (1 - 2/pi), the population form of Lemma 4. It holds for every cov,
            because R = (s + c0 radius a)^2 + radius^2 (1 - 2/pi) a^2 (derived here). "tight": the
            best m that splits of this kind give, using the smallest eigenvalue of cov (derived
            here).
    """
    eps = nonnegative("radii", radii)[()]
    if form == "paper":
        return eps**2 * (1 - 2 / np.pi)
    if form != "tight":
        raise AdvlabError('form must be "paper" or "tight"', repr(form))
    matrix = None if cov is None else covariance(cov, len(finite("cov", cov)))
    low = 1.0 if matrix is None else float(np.sqrt(max(np.linalg.eigvalsh(matrix)[0], 0.0)))
    # R = (x s + y eps a)^2 + (1 - x^2) s^2 + (1 - y^2) eps^2 a^2 with x y = c0; choose the best x.
    balanced = low**2 + eps**2 - 2 * C0 * eps * low
    one_sided = (1 - C0**2) * np.maximum(low, eps) ** 2
    return np.where((eps >= C0 * low) & (C0 * eps <= low), balanced, one_sided)[()]
