"""The quantities in the proof of Theorem 9: cone condition, restricted curvature, Lemmas 4 and 5.

The loss under attack is l_eps = (|r| + eps ||theta||_q)^2, r = x'theta - y; q = 2 for l2 attacks
(the paper's) and 1 for linf attacks, to which its argument carries over (derived here).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, chosen, scalar, stack, vector
from ....core.errors import AdvlabError
from ....linear import quadratic_growth
from ....linear.interpolation import check_samples
from ....threats.norms import dual_order, order_of

Norm = Literal["l2", "linf"]


@dataclass(frozen=True)
class Cone:
    """Quantities in the proof of Theorem 9 for an estimate near theta*."""

    noise: float
    """k = max |mean gradient at theta*|; the proof bounds it by c sqrt(s log d/n)."""
    ratio: float
    """||error off the support||_1 / ||error on it||_1."""
    bound: float
    """(lambda + k) / (lambda - k), which the ratio cannot exceed when lambda > k; for linf see
    `cone`."""
    error: float
    """||theta - theta*||_1 / lambda: stays bounded. Infinite without a penalty."""
    curvature: float
    """[loss(theta) - loss(theta*) - error'gradient] / ||error||^2; compare `quadratic_growth`."""


def cone(
    theta: ArrayLike,
    theta_star: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    penalty: Scalar,
    norm: Norm = "l2",
) -> Cone:
    """The cone condition and restricted curvature of Theorem 9 and Lemma 4, measured.

    A linf attack is a penalty itself: off the support the loss has a kink of half-width
    mu = 2 radius mean(|r| + radius ||theta*||_1). With k_S and k_0 the largest entries of the mean
    gradient on the support and, at zero subgradient, off it, convexity gives (derived here)
    ||error off||_1 <= (lambda + k_S) / (lambda + mu - k_0) ||error on||_1, also at lambda = 0.
    There `noise` is max(k_S, k_0 - mu), the least over the subgradients.

    Args:
        theta: the estimate (d,).
        theta_star: the minimiser of the population risk (d,).
        x, y: samples (n, d) and (n,).
        radius: of the attack.
        penalty: lambda.
        norm: "l2" or "linf", of the attack.

    Example:
        from advlab.linear import optimal
        from advlab.papers.generalization.theory import cone
        from advlab.threats import Ball
        cone(estimate, optimal(theta0, 1.0, Ball("l2", 0.3)).theta, x, y, 0.3, 0.5).ratio
    """
    chosen("norm", norm, ("l2", "linf"))
    design, target = check_samples(x, y)
    star = stack("theta_star", vector("theta_star", theta_star), design.shape[1])
    model = stack("theta", vector("theta", theta), design.shape[1])
    eps, weight = scalar("radius", radius), scalar("penalty", penalty)
    error, support = model - star, star != 0
    if not error.any():
        raise AdvlabError("the cone needs theta other than theta_star")
    q = dual_order(order_of(norm))
    gradient = mean_gradient(star, design, target, eps, norm)
    largest = np.abs(gradient[support]).max()
    off = float(np.abs(gradient[~support]).max(initial=0.0))
    kink = 0.0
    if q == 1:
        size = np.abs(design @ star - target) + eps * float(np.abs(star).sum())
        kink = 2 * eps * float(size.mean())
    noise = float(max(largest, off - kink))
    above, below = (
        (weight + noise, weight - noise)
        if q == 2
        else (weight + float(largest), weight + kink - off)
    )
    inside, outside = (float(np.abs(error[part]).sum()) for part in (support, ~support))
    risks = [training_risk(t, design, target, eps, norm) for t in (model, star)]
    return Cone(
        noise=noise,
        ratio=outside / inside if inside else np.inf,
        bound=above / below if below > 0 else np.inf,
        error=(inside + outside) / weight if weight else np.inf,
        curvature=float((risks[0] - risks[1] - error @ gradient) / (error @ error)),
    )


def curvatures(
    errors: ArrayLike, theta_star: ArrayLike, x: ArrayLike, y: ArrayLike, radius: Scalar
) -> Array:
    """[loss(theta* + error) - loss(theta*) - error'gradient] / ||error||^2; l2 attacks.

    The proof of Theorem 9 uses that it is at least `quadratic_growth` in the cone, up to a slack.

    Args:
        errors: directions theta - theta* (m, d), none zero.
        theta_star, x, y, radius: as in `cone`.

    Returns:
        One value per direction (m,).

    Example:
        from advlab.papers.generalization.theory import curvatures
        curvatures([estimate - star], star, x, y, 0.3)
    """
    design, target = check_samples(x, y)
    star = stack("theta_star", vector("theta_star", theta_star), design.shape[1])
    moves, eps = np.atleast_2d(np.asarray(errors, dtype=float)), scalar("radius", radius)
    gradient = mean_gradient(star, design, target, eps, "l2")
    lengths = np.linalg.norm(star + moves, axis=1)
    residuals = moves @ design.T + (design @ star - target)
    risks = ((np.abs(residuals) + eps * lengths[:, None]) ** 2).mean(1)
    rise = risks - training_risk(star, design, target, eps, "l2")
    return (rise - moves @ gradient) / (moves**2).sum(1)


def curvature_shortfall(
    errors: ArrayLike, theta_star: ArrayLike, x: ArrayLike, y: ArrayLike, radius: Scalar
) -> Array:
    """What Lemma 4's first inequality lacks without its slack, over ||error||_1; l2 attacks.

    [error'g + error'(S - I) error + radius^2 (1 - 2/pi) ||error||^2 - (loss(theta* + error) -
    loss(theta*))] / ||error||_1 with g the mean gradient at theta* and S = X'X/n. Lemma 4 says that
    it is at most c_3 sqrt(s log d/n) in the cone; below 0 no slack is needed.

    Args:
        errors, theta_star, x, y, radius: as in `curvatures`.

    Returns:
        One value per direction (m,).

    Example:
        from advlab.papers.generalization.theory import curvature_shortfall
        curvature_shortfall([estimate - star], star, x, y, 0.3)
    """
    found = curvatures(errors, theta_star, x, y, radius)
    moves = np.atleast_2d(np.asarray(errors, dtype=float))
    squares = (moves**2).sum(1)
    sampled = ((moves @ np.asarray(x, dtype=float).T) ** 2).mean(1) / squares
    floor = sampled - 1 + quadratic_growth(radius)
    return (floor - found) * squares / np.abs(moves).sum(1)


def mean_squares(theta_star: ArrayLike, x: ArrayLike, width: Scalar) -> tuple[float, float]:
    """Lemma 4's second line: |mean (error'x)^2 - ||error||^2| / ||error on S||_1^2, at its largest.

    With D = X'X/n - I and the cone ||error off S||_1 <= width ||error on S||_1 it is at most
    max |D_SS| + 2 width max |D_S,Sc| + width^2 max |D_ScSc| (Hoelder's inequality), which is of
    the order sqrt(log d/n). Lemma 4 says that it tends to 0.

    Args:
        theta_star: the minimiser of the population risk (d,), whose support is S.
        x: samples (n, d).
        width: c of the cone.

    Returns:
        The largest found, at the corners e_i on S and +-width e_j off it; and the bound, for the
        whole cone.

    Example:
        from advlab.papers.generalization.theory import mean_squares
        mean_squares(star, x, 3.0)
    """
    design = np.asarray(x, dtype=float)
    on = stack("theta_star", vector("theta_star", theta_star), design.shape[1]) != 0
    c, away = scalar("width", width), design.T @ design / len(design) - np.eye(design.shape[1])
    inside, across, outside = away[on][:, on], away[on][:, ~on], away[~on][:, ~on]
    sides = np.diag(inside)[:, None] + c**2 * np.diag(outside)[None]
    corners = np.abs(sides) + 2 * c * np.abs(across)
    parts = [np.abs(part).max(initial=0.0) for part in (inside, across, outside)]
    return float(corners.max()), float(parts[0] + 2 * c * parts[1] + c**2 * parts[2])


def loss_increase_bound(
    theta: ArrayLike,
    theta_star: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    printed: bool = False,
) -> Array:
    """Lemma 5: an upper bound on l_eps(theta) - l_eps(theta*), one value per sample; l2 attacks.

    Args:
        theta, theta_star, x, y, radius: as in `cone`.
        printed: without the sgn(r) that the paper misses on its fifth term; no bound then where
            r < 0.
    """
    design, target = check_samples(x, y)
    star = stack("theta_star", vector("theta_star", theta_star), design.shape[1])
    model = stack("theta", vector("theta", theta), design.shape[1])
    eps, error = scalar("radius", radius), model - star
    a, b = float(np.linalg.norm(model)), float(np.linalg.norm(star))
    r, moved = design @ star - target, design @ error
    size = np.abs(r) + eps * b
    linear = 2 * size * (np.sign(r) * moved + eps * float(star @ error) / _positive(b))
    quadratic = moved**2 + eps**2 * float(error @ error) + 4 * eps * a * np.abs(moved)
    turned = 2 * eps * (a * b - float(model @ star)) / b * np.abs(r)
    longer = 2 * eps * (a - b) * moved * (1 if printed else np.sign(r))
    return linear + quadratic + longer + turned


def loss_increase(
    theta: ArrayLike, theta_star: ArrayLike, x: ArrayLike, y: ArrayLike, radius: Scalar
) -> Array:
    """l_eps(theta) - l_eps(theta*) of each sample, which `loss_increase_bound` bounds.

    Arguments as there.
    """
    design, target = check_samples(x, y)
    after, before = (
        (np.abs(design @ one - target) + scalar("radius", radius) * np.linalg.norm(one)) ** 2
        for one in (vector("theta", theta), vector("theta_star", theta_star))
    )
    return after - before


def training_risk(theta: Array, x: Array, y: Array, eps: float, norm: Norm) -> float:
    """The mean of (|r| + eps ||theta||_q)^2."""
    push = eps * float(np.linalg.norm(theta, dual_order(order_of(norm))))
    return float(((np.abs(x @ theta - y) + push) ** 2).mean())


def mean_gradient(theta: Array, x: Array, y: Array, eps: float, norm: Norm) -> Array:
    """The gradient of `training_risk`; for linf the subgradient that is 0 where theta is."""
    q = dual_order(order_of(norm))
    length = _positive(float(np.linalg.norm(theta, q)))
    r = x @ theta - y
    size = np.abs(r) + eps * length
    slope = theta / length if q == 2 else np.sign(theta)
    return 2 * (size * np.sign(r)) @ x / len(y) + 2 * eps * float(size.mean()) * slope


def _positive(length: float) -> float:
    if length == 0:
        raise AdvlabError("the adversarial loss has no gradient at theta = 0", 0.0)
    return length
