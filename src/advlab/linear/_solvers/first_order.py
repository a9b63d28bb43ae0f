"""The last resort for problems too large for a Newton matrix: L-BFGS on smoothed problems.

|r| and the norm are replaced by smooth functions that are at most a little larger; the smoothing
falls tenfold at a time. Slopes of the smooth problem are a dual point, so the gap is certified here
too, but it shrinks only as fast as the smoothing does.
"""

import numpy as np
from scipy.optimize import minimize

from ...core.checks import Array
from .certificate import DualPoint
from .interior_then_face import Found, measured, separated
from .problem import LinearProblem


def smooth_norm(scaled: Array, q: float, width: float) -> tuple[float, Array]:
    """A smooth function above ||scaled||_q, and its gradient."""
    if np.isinf(q):
        top = float(np.abs(scaled).max(initial=0.0))
        up, down = np.exp((scaled - top) / width), np.exp((-scaled - top) / width)
        total = float(up.sum() + down.sum())
        return top + width * float(np.log(total)), (up - down) / total
    rounded = np.sqrt(scaled**2 + width**2)
    size = float(np.linalg.norm(rounded, ord=q))
    return size, scaled * rounded ** (q - 2) * size ** (1 - q)


def first_order(problem: LinearProblem, tolerance: float, levels: int = 7) -> Found:
    """A minimiser by gradients alone.

    Args:
        problem: any norm.
        tolerance: relative gap to stop at.
        levels: how often the smoothing falls.
    """
    p, d = problem, problem.shape[1]
    unit = p.loss.inverse(p.zero_objective) if not p.loss.classifies else 1.0
    z = np.append(np.zeros(d), p.constant_fit)
    scale = float(np.abs(p.radii).mean()) or 1.0
    best: Found | None = None
    steps = 0
    for level in range(levels):
        width = max(unit, 1e-300) * 10.0 ** -(level + 1)

        def value(z: Array, width: float = width) -> tuple[float, Array]:
            theta, b = z[:-1], z[-1] if p.intercept else 0.0
            size, slope = 0.0, np.zeros(d)
            if p.attacked:
                size, slope = smooth_norm(p.radii * theta, p.dual, width * scale / max(d, 1))
                slope = p.radii * slope
            total, mu, alpha = _slopes(p, p.scores(theta, b), size, width)
            edge = np.sqrt(theta**2 + width**2 / d)
            total += float(p.l1 @ edge + p.l2 @ theta**2 / 2)
            gradient = -np.asarray(p.x.T @ mu) + float(alpha.sum()) * slope
            gradient += p.l1 * theta / edge + p.l2 * theta
            return total, np.append(gradient, -float(mu.sum()) if p.intercept else 0.0)

        options = {"maxiter": 500, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-12}
        found = minimize(value, z, jac=True, method="L-BFGS-B", options=options)
        z, steps = found.x, steps + int(found.nit)
        theta, b = z[:-1], float(z[-1]) if p.intercept else 0.0
        apart = separated(p, theta, b, tolerance)
        if apart is not None:
            return apart
        _, mu, alpha = _slopes(p, p.scores(theta, b), p.attack(theta), width)
        here = measured(p, theta, b, DualPoint(mu, alpha), steps, "first order")
        best = here if best is None or here.relative < best.relative else best
        if best.relative <= tolerance:
            break
    return best  # type: ignore[return-value]


def _slopes(p: LinearProblem, scores: Array, size: float, width: float):
    """The smooth loss summed over samples, mu and alpha."""
    loss, w = p.loss, p.weights
    if loss.smooth:
        z = p.y * scores - size
        alpha = w * loss.slope(z)
        return float(w @ loss.value(z)), p.y * alpha, alpha
    if loss.classifies:
        room = 1 - p.y * scores + size
        edge = np.sqrt(room**2 + width**2)
        alpha = w * (1 + room / edge) / 2
        return float(w @ (room + edge)) / 2, p.y * alpha, alpha
    r = p.y - scores
    edge = np.sqrt(r**2 + width**2)
    u = edge + size
    alpha = w * loss.slope(u)
    return float(w @ loss.value(u)), alpha * r / edge, alpha
