"""The estimate of Theorem 9 with xi > 0: the surrogate training loss plus an l1 penalty.

That loss is not convex in general, unlike the potential that `adversarial_lasso` minimises, so what
is found is a stationary point, no worse than where the search began.
"""

from dataclasses import dataclass

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, length, scalar, stack, vector
from ....linear.interpolation import check_samples
from ....linear.samples import soft_threshold
from .adversarial_lasso import adversarial_lasso
from .surrogate import xi_eff


@dataclass(frozen=True)
class StationaryPoint:
    """Where proximal gradient descent ended."""

    theta: Array
    value: float
    """The surrogate training loss plus the penalty."""
    residual: float
    """The largest entry of its least subgradient: 0 at a minimiser."""


def surrogate_loss(
    theta: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    xi: Scalar,
    convention: str = "definition",
) -> tuple[float, Array]:
    """mean r^2 (1 + radius a^2 / w)^2 with w = sqrt(r^2 a^2 + xi_eff^2) and a = ||theta||.

    Its gradient is that of the value itself; Algorithm 1 takes attacks as fixed.

    Args:
        theta: one model (d,).
        x, y: samples (n, d) and (n,).
        radius, xi: of the l2 attack, xi > 0.
        convention: how xi is read, see `xi_eff`.

    Returns:
        The value and its gradient in theta.
    """
    design, target = check_samples(x, y)
    model = stack("theta", vector("theta", theta), design.shape[1])
    smoothing = float(xi_eff(length("xi", xi), convention))
    return _loss(model, design, target, scalar("radius", radius), smoothing)


def surrogate_lasso(
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    penalty: Scalar,
    xi: Scalar,
    convention: str = "definition",
    steps: int = 2000,
    tolerance: Scalar = 1e-6,
) -> StationaryPoint:
    """The surrogate training loss + penalty * ||theta||_1, from the minimiser of the potential.

    Proximal gradient with backtracking; the objective falls at each step.

    Args:
        x, y: samples (n, d) and (n,).
        radius, xi: of the l2 attack, xi > 0.
        penalty: lambda.
        convention: how xi is read, see `xi_eff`.
        steps: at most so many.
        tolerance: where the residual stops the search, as a share of the penalty (of the largest
            gradient at zero without one).

    Example:
        from advlab.papers.generalization.theory import surrogate_lasso
        surrogate_lasso(x, y, 0.3, 0.1, xi=0.05).theta
    """
    design, target = check_samples(x, y)
    eps, weight = scalar("radius", radius), scalar("penalty", penalty)
    smoothing = float(xi_eff(length("xi", xi), convention))
    theta = adversarial_lasso(design, target, eps, weight, xi, convention).theta
    bound = 2 * float(np.linalg.norm(design, 2)) ** 2 / len(target)
    enough = float(tolerance) * (weight or float(np.abs(design.T @ target).max()) / len(target))
    value, gradient = _loss(theta, design, target, eps, smoothing)
    for _ in range(steps):
        if _residual(theta, gradient, weight) <= enough:
            break
        while True:
            new = soft_threshold(theta - gradient / bound, weight / bound)
            move = new - theta
            found, slope = _loss(new, design, target, eps, smoothing)
            if found <= value + gradient @ move + bound / 2 * move @ move + 1e-12 * value:
                break
            bound *= 2
        theta, value, gradient, bound = new, found, slope, bound / 1.2
    whole = value + weight * float(np.abs(theta).sum())
    return StationaryPoint(theta, whole, _residual(theta, gradient, weight))


def _loss(theta: Array, x: Array, y: Array, eps: float, smoothing: float) -> tuple[float, Array]:
    r, a2 = x @ theta - y, float(theta @ theta)
    w = np.sqrt(r**2 * a2 + smoothing**2)
    grown = 1 + eps * a2 / w
    by_r = 2 * r * grown**2 - 2 * eps * a2**2 * grown * (r / w) ** 3
    # d(a^2/w)/da = (2/w - a^2 r^2/w^3) a, along theta/a.
    by_length = 2 * eps * r**2 * grown * (2 / w - a2 * r**2 / w**3)
    gradient = by_r @ x / len(y) + float(by_length.mean()) * theta
    return float((r**2 * grown**2).mean()), gradient


def _residual(theta: Array, gradient: Array, weight: float) -> float:
    """The largest entry of the least subgradient of loss + weight * ||theta||_1."""
    away = np.where(
        theta != 0,
        np.abs(gradient + weight * np.sign(theta)),
        np.maximum(np.abs(gradient) - weight, 0.0),
    )
    return float(away.max())
