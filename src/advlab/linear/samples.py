"""Adversarial least squares on given samples: the training risk and its minimiser."""

import warnings
from dataclasses import dataclass

import numpy as np

from ..core.checks import Array, ArrayLike, Numbers, Scalar, nonnegative, scalar, stack
from .inputs import HasBall, ball_of
from .interpolation import check_samples, min_norm
from .risks import dual_length


@dataclass(frozen=True)
class Minimum:
    """An approximate minimiser, and how far it can be from the best value.

    Args:
        theta: the model (d,).
        value: the objective there.
        gap: a certified bound: no model has an objective below `value - gap`.
        steps: how many steps were taken.
        converged: whether the gap is as small as was asked for.
    """

    theta: Array
    value: float
    gap: float
    steps: int
    converged: bool

    @property
    def status(self) -> str:
        """One line: what was reached."""
        reached = f"within {self.gap:.2g} of the least value, {self.value:.6g}"
        return (
            f"{'converged' if self.converged else 'not converged'} in {self.steps} steps: {reached}"
        )


def report_miss(found: Minimum, what: str) -> Minimum:
    """The same minimum; a warning of one line if the gap asked for was not reached."""
    if not found.converged:
        warnings.warn(f"{what} {found.status}", stacklevel=3)
    return found


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


def smoothed_hessian(theta: Array, x: Array, y: Array, eps: float, smoothing: float) -> Array:
    """The Hessian (d, d) of `smoothed_risk`; smoothing must be positive. Same arguments."""
    r, a2, n = x @ theta - y, float(theta @ theta), len(y)
    w = np.sqrt(r**2 * a2 + smoothing**2)
    curved = x.T @ ((1 + eps * a2 * smoothing**2 / w**3)[:, None] * x)
    mixed = np.outer(x.T @ (2 * r / w - a2 * r**3 / w**3), theta)
    outer = -float((r**4 / w**3).sum()) * np.outer(theta, theta)
    round_ = (float((r**2 / w).sum()) + n * eps) * np.eye(len(theta))
    return 2 / n * (curved + eps * (mixed + mixed.T + outer + round_))


def newton(
    theta: Array,
    x: Array,
    y: Array,
    eps: float,
    smoothing: float,
    slope: Array | float = 0.0,
    steps: int = 50,
) -> tuple[Array, int]:
    """Newton's method with halved steps for `smoothed_risk` + slope'theta.

    With a slope (signs times an l1 penalty) a step ends where the first entry becomes zero.

    Args:
        theta: where it starts.
        x, y, eps, smoothing: as in `smoothed_risk`; smoothing must be positive.
        slope: of the linear term.
        steps: at most so many.

    Returns:
        theta and the number of steps.
    """
    signed = np.ndim(slope) > 0
    for done in range(steps):
        value, gradient = smoothed_risk(theta, x, y, eps, smoothing)
        value, gradient = value + float(np.sum(slope * theta)), gradient + slope
        hessian = smoothed_hessian(theta, x, y, eps, smoothing)
        ridge = 1e-14 * float(np.trace(hessian)) * np.eye(len(theta))
        step = -np.linalg.solve(hessian + ridge, gradient)
        fall = -float(gradient @ step)
        if not fall > 1e-15 * abs(value):
            return theta, done
        size = 1.0
        if signed:
            shrinks = theta * step < 0
            size = min(1.0, float((-theta[shrinks] / step[shrinks]).min(initial=np.inf)))
        while size > 1e-10:
            new = theta + size * step
            reached = smoothed_risk(new, x, y, eps, smoothing)[0] + float(np.sum(slope * new))
            if reached <= value - 1e-4 * size * fall:
                break
            size /= 2
        else:
            return theta, done
        theta = new
        if signed and (theta * np.sign(slope) <= 1e-14 * np.abs(theta).max()).any():
            return theta, done + 1
    return theta, steps


def empirical_minimiser(
    x: ArrayLike, y: ArrayLike, radius: Scalar, tolerance: Scalar = 1e-6
) -> Minimum:
    """The minimiser of `empirical_risk` in an l2 ball.

    Newton's method on `smoothed_risk` with a smoothing that falls tenfold from a tenth of the
    variance of y, each from the one before, until the duality gap (derived here) is small enough.
    A warning says so where it never is.

    Args:
        x, y: samples (n, d) and (n,).
        radius: the l2 radius.
        tolerance: the gap asked for, as a share of the least value.

    Returns:
        The minimiser `.theta`, its risk `.value`, and a bound `.gap` on what it is above the least.

    Example:
        from advlab.linear import empirical_minimiser
        empirical_minimiser(x, y, 0.3).theta
    """
    design, target = check_samples(x, y)
    eps, asked = scalar("radius", radius), scalar("tolerance", tolerance)
    n, d = design.shape
    if eps == 0:
        theta = min_norm(design, target)
        r = design @ theta - target
        gap = float(((design @ min_norm(design, r)) ** 2).mean())
        floor = 1e-28 * float((target**2).mean())
        return Minimum(
            theta, float((r**2).mean()), gap, 0, gap <= floor or gap <= asked * float((r**2).mean())
        )
    basis = np.linalg.qr(design.T)[0] if d > n else None
    # The attack and the answers see theta through its length and x theta: it stays in their span.
    inner = design if basis is None else design @ basis
    theta, steps = np.zeros(inner.shape[1]), 0
    variance = max(float((target**2).mean()), 1e-300)
    best = Minimum(theta, variance, np.inf, 0, False)
    for smoothing in variance * 10.0 ** -np.arange(1, 15):
        theta, taken = newton(theta, inner, target, eps, smoothing)
        steps += taken
        value, least = _bracket(theta, inner, target, eps, smoothing)
        if value - least < best.gap:
            best = Minimum(theta, value, max(value - least, 0.0), steps, False)
        if best.gap <= asked * best.value:
            break
    whole = best.theta if basis is None else basis @ best.theta
    found = Minimum(whole, best.value, best.gap, steps, best.gap <= asked * best.value)
    return report_miss(found, "empirical_minimiser")


def _bracket(theta: Array, x: Array, y: Array, eps: float, smoothing: float) -> tuple[float, float]:
    """The training risk at theta, and a number that no model's risk is below.

    (p + q)^2 >= alpha (p + q) - alpha^2/4, so for all alpha_i >= |beta_i| with
    ||X'beta|| <= eps sum alpha the risk is never below -mean(beta y) - mean(alpha^2)/4.
    """
    r, a, n = x @ theta - y, float(np.linalg.norm(theta)), len(y)
    value = float(((np.abs(r) + eps * a) ** 2).mean())
    beta = 2 * (r + eps * a**2 * r / np.sqrt(r**2 * a**2 + smoothing**2))
    alpha = _fill(np.abs(beta), float(np.linalg.norm(x.T @ beta)) / (n * eps))
    linear, square = float((beta * y).mean()), float((alpha**2).mean())
    # Both may be scaled; the best scale gives this.
    return value, linear**2 / square if square and linear < 0 else 0.0


def _fill(least: Array, mean: float) -> Array:
    """The smallest vector, in squares, that is nowhere below `least` and has at least this mean."""
    if least.mean() >= mean:
        return least
    order = np.sort(least)
    above = np.concatenate([np.cumsum(order[::-1])[::-1][1:], [0.0]])
    levels = (mean * len(least) - above) / np.arange(1, len(least) + 1)
    level = levels[np.flatnonzero(levels >= order)[-1]]
    return np.maximum(least, level)


def soft_threshold(theta: ArrayLike, cut: ArrayLike) -> Array:
    """sign(theta) max(|theta| - cut, 0): the proximal map of cut ||.||_1, entry by entry."""
    model = np.asarray(theta, dtype=np.float64)
    return np.sign(model) * np.maximum(np.abs(model) - nonnegative("cut", cut), 0.0)
