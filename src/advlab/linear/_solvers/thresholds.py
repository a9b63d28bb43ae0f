"""The radius from which the model is zero, and the radius up to which it fits every sample."""

import numpy as np

from ...core.checks import Array
from .certificate import soft
from .cone_program import least_norm
from .problem import LinearProblem, is_sparse


def zero_threshold(problem: LinearProblem, unit: Array) -> float:
    """The least eps for which theta = 0 is optimal under radii = eps * unit.

    theta = 0 is optimal if and only if some multipliers mu of the best constant have
    ||soft(X'mu, l1)/unit||_p <= eps sum alpha. Where the loss has a kink at the constant, the best
    mu is found by a cone programme.

    Args:
        problem: its radii do not matter.
        unit: (d,), the direction of the radii.
    """
    p, loss, n = problem, problem.loss, len(problem.y)
    scores = np.full(n, p.constant_fit)
    if loss.classifies:
        z = p.y * scores
        alpha = p.weights * loss.slope(z)
        mu, kink = p.y * alpha, np.abs(z - 1) <= 1e-12 if not loss.smooth else np.zeros(n, bool)
        if kink.any() and not (~kink).any():
            return 0.0
    else:
        r = p.y - scores
        alpha = p.weights * loss.slope(np.abs(r))
        mu = np.sign(r) * alpha
        scale = max(float(np.abs(p.y).max(initial=0.0)), 1e-300)
        kink = np.abs(r) <= 1e-12 * scale if not loss.curve else np.zeros(n, bool)
    if kink.any():
        return _kinked(p, unit, mu, alpha, kink)
    return _ratio(p, unit, np.asarray(p.x.T @ mu), float(alpha.sum()))


def _ratio(p: LinearProblem, unit: Array, g: Array, total: float) -> float:
    left = soft(g, p.l1)
    seen = unit > 0
    scale = float(np.abs(g).max(initial=0.0))
    if (np.abs(left[~seen]) > 1e-12 * scale).any():
        return np.inf
    size = float(np.linalg.norm(left[seen] / unit[seen], ord=p.order)) if seen.any() else 0.0
    return 0.0 if size == 0 else np.inf if total == 0 else size / total


def _kinked(p: LinearProblem, unit: Array, mu: Array, alpha: Array, kink: np.ndarray) -> float:
    """Samples at the kink: their multipliers lie in an interval, and the best ones count."""
    mu = np.where(kink, 0.0, mu)
    w = p.weights[kink]
    total = -float(mu.sum()) if p.intercept else None
    if p.loss.classifies:
        sign = p.y[kink]
        low, high = np.minimum(sign, 0) * w, np.maximum(sign, 0) * w
        mass = float(alpha[~kink].sum()) + abs(total or 0.0)
    else:
        low, high, mass = -w, w, float(p.weights.sum())
    g = np.asarray(p.x.T @ mu)
    block = p.x[kink]
    block = block.toarray() if is_sparse(block) else block
    if kink.sum() == 1 and total is not None:
        return _ratio(p, unit, g + block[0] * total, mass)
    seen = unit > 0
    # With an l1 penalty the exact value needs one more programme; the bound from below is enough
    # for a threshold only without it.
    if p.l1.any():
        return np.inf
    size = least_norm(
        g[seen] / unit[seen], (block[:, seen] / unit[seen]).T, low, high, total, p.order
    )
    return size / mass if mass > 0 else np.inf


def interpolation_threshold(problem: LinearProblem, unit: Array, mu: Array) -> float:
    """The largest eps for which the min-norm interpolator is optimal, from its multipliers.

    With X'mu in the subdifferential of the norm ||unit * theta||_q at the interpolator and
    1'mu = 0, the interpolator is optimal if and only if eps |mu_i| <= w_i for every i, for each of
    the regression losses. Exact where mu is the only multiplier; else the best mu counts, and this
    is a lower bound.

    Args:
        problem: a regression without penalties.
        unit: the direction of the radii.
        mu: multipliers for radii `unit`.
    """
    w = problem.weights
    seen = w > 0
    largest = float((np.abs(mu[seen]) / w[seen]).max(initial=0.0))
    return np.inf if largest == 0 else 1 / largest
