"""Robust risks of any linear model: on data, and in population for Gaussian designs."""

from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from ..core.checks import ArrayLike, Numbers, Scalar, finite, nonnegative, scalar, vector
from ..core.errors import AdvlabError
from ..threats.norms import any_order, dual_order
from ._solvers.sample_losses import named_loss
from .inputs import HasBall, ball_of
from .risks import dual_length, residual_std
from .solve import _design


def robust_losses(
    coef: ArrayLike, intercept: Scalar, x: Any, y: ArrayLike, eps: ArrayLike,
    norm: str | float = "linf", loss: str = "squared", *, delta: Scalar = 1.0,
    scales: ArrayLike | None = None,
) -> Numbers:  # fmt: skip
    """The loss of each sample under the worst attack.

    Args:
        coef, intercept: the model: (d,) and a number.
        x, y: samples (n, d) and answers, or labels -1 and +1.
        eps, norm, loss, delta, scales: as in `solve_linear`; `loss` may also be "error": whether
            the attacked margin is at most 0.

    Example:
        from advlab.linear import robust_losses
        robust_losses(coef, b, x, y, 0.1, "linf").mean()
    """
    model, design, target = vector("coef", coef), _design(x), vector("y", y)
    if design.shape != (len(target), len(model)):
        raise AdvlabError(
            f"x of {len(target)} rows and {len(model)} columns", f"shape {design.shape}"
        )
    radii = nonnegative("eps", eps) * (1.0 if scales is None else nonnegative("scales", scales))
    q = dual_order(any_order(norm))
    attack = float(np.linalg.norm(radii * model, ord=q))
    scores = np.asarray(design @ model) + float(finite("intercept", intercept))
    if loss == "error":
        return (target * scores - attack <= 0).astype(np.float64)
    kind = named_loss(loss, float(delta))
    if kind.classifies:
        return kind.value(target * scores - attack)
    return kind.value(np.abs(target - scores) + attack)


def population_risk(
    theta: ArrayLike, theta0: ArrayLike, sigma2: Scalar, ball: HasBall,
    cov: ArrayLike | None = None, *, loss: str = "squared", delta: Scalar = 1.0,
    intercept: Scalar = 0.0,
) -> float:  # fmt: skip
    """E loss(|y - theta'x - b| + radius q) for y = theta0'x + u with Gaussian x and u.

    The residual is N(-b, s^2), so this is one integral; for the squared loss without intercept it
    is `adversarial_risk`.

    Args:
        theta: one model (d,).
        theta0, sigma2, ball, cov: as in `adversarial_risk`.
        loss, delta: a regression loss, as in `solve_linear`.
        intercept: b.

    Example:
        from advlab.linear import population_risk
        from advlab.threats import Ball
        population_risk([0.5], [1.0], 1.0, Ball("l2", 0.1), loss="absolute")
    """
    norm, radius = ball_of(ball)
    kind = named_loss(loss, float(delta))
    if kind.classifies:
        raise AdvlabError("a regression loss: squared, absolute or huber", repr(loss))
    model = vector("theta", theta)
    s = float(residual_std(model, theta0, sigma2, cov))
    attack, b = radius * float(dual_length(model, norm)), float(finite("intercept", intercept))
    edges = [b / s, (b - scalar("delta", delta)) / s, (b + scalar("delta", delta)) / s] if s else []
    return _normal_mean(lambda z: kind.value(np.abs(s * z - b) + attack), edges)


def _normal_mean(function: Any, kinks: list[float]) -> float:
    """E f(Z): Gauss quadrature on pieces between kinks, standard normal tails cut at 12."""
    if not kinks:
        nodes, weights = hermegauss(2)
        return float(weights @ function(nodes)) / float(weights.sum())
    points = np.unique(np.clip([-12.0, *kinks, *np.linspace(-10, 10, 21), 12.0], -12, 12))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    low, high = points[:-1, None], points[1:, None]
    z = (low + high) / 2 + (high - low) / 2 * nodes
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return float((function(z) * density * weights * (high - low) / 2).sum())
