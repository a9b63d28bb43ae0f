"""A number that no linear model's objective is below: Fenchel duality, derived here.

Take alpha_i >= 0 and mu_i with |mu_i| <= alpha_i (regression) or mu_i = y_i alpha_i (two classes).
By the conjugate of the loss, with g = X'mu, A = sum alpha and 1'mu = 0 (intercept),

    objective >= mu'y [regression] - sum w conj(alpha/w)
                 + min over theta of { -g'theta + A N(theta) + l1'|theta| + l2'theta^2/2 }.

Without l2 the last minimum is 0 if ||soft(g, l1)/radii||_p <= A, else minus infinity. With l2 it is
at least -sum soft(g - e, l1)^2/(2 l2) for each e with ||e/radii||_p <= A.
"""

from dataclasses import dataclass

import numpy as np

from ...core.checks import Array
from .problem import LinearProblem

ROUNDING = 1e-13
"""A dual point outside its cone by this share of its size counts as feasible."""


@dataclass(frozen=True)
class DualPoint:
    """mu and alpha as above; what a solver hands over, feasible only roughly."""

    mu: Array
    alpha: Array


def soft(g: Array, cut: Array) -> Array:
    return np.sign(g) * np.maximum(np.abs(g) - cut, 0.0)


def dual_size(problem: LinearProblem, e: Array) -> float:
    """||e / radii||_p; infinite where a feature that is not attacked has a part."""
    if not problem.attacked:
        return np.inf if e.any() else 0.0
    r = problem.radii
    if r.all():
        return float(np.linalg.norm(e / r, ord=problem.order))
    if (e[r == 0] != 0).any():
        return np.inf
    return float(np.linalg.norm(e[r > 0] / r[r > 0], ord=problem.order))


def lower_bound(
    problem: LinearProblem, point: DualPoint, theta: Array, inner: DualPoint | None = None
) -> float:
    """The best bound that a repaired dual point gives.

    Args:
        problem: the problem.
        point: a dual point, near the best one.
        theta: a model near the best one (used with an l2 penalty only).
        inner: for two classes, a strictly feasible point to mix in where `point` is just outside.
    """
    point = _balanced(problem, point)
    # One sum says it: it is finite only where every part is.
    if not np.isfinite(float(point.mu.sum()) + float(point.alpha.sum())):
        return -np.inf
    if problem.penalised and problem.l2.any():
        return _with_ridge(problem, point, theta)
    if problem.loss.classifies:
        return _classes(problem, point, inner)
    return _regression(problem, point)


def _gradient(problem: LinearProblem, mu: Array) -> Array:
    """X'mu, with the columns that 1'mu = 0 and its kin make zero set to exactly that."""
    g = np.asarray(problem.x.T @ mu)
    if len(problem.free):
        g[problem.free] = 0.0
    return g


def _balanced(problem: LinearProblem, point: DualPoint) -> DualPoint:
    """mu orthogonal to the intercept and to free columns; alpha inside its bounds."""
    mu, alpha = point.mu, np.maximum(point.alpha, 0.0)
    top, bounded = problem.weights * problem.loss.steepest, np.isfinite(problem.loss.steepest)
    if problem.loss.classifies:
        alpha = np.minimum(alpha, top)
        mu = problem.y * alpha
    if problem.intercept or len(problem.free):
        # Entries near a bound move least, so that the projection stays inside.
        room = alpha * (top - alpha) / top if bounded else alpha
        mu = mu - room * _projection(problem, mu, room)
    if problem.loss.classifies:
        alpha = np.clip(problem.y * mu, 0.0, top)
        return DualPoint(problem.y * alpha, alpha)
    if not bounded:
        return DualPoint(mu, np.maximum(alpha, np.abs(mu)))
    with np.errstate(divide="ignore", invalid="ignore"):
        mu = mu / max(float(np.nanmax(np.abs(mu) / top)), 1.0)
    return DualPoint(mu, np.minimum(np.maximum(alpha, np.abs(mu)), top))


def _projection(problem: LinearProblem, mu: Array, room: Array) -> Array | float:
    """C c with C'(mu - room C c) = 0 for the columns C of the intercept and of free features."""
    if not len(problem.free):
        total = float(room.sum())
        return float(mu.sum()) / total if total > 0 else 0.0
    block = problem.x[:, problem.free]
    columns = block if isinstance(block, np.ndarray) else block.toarray()
    if problem.intercept:
        columns = np.hstack([np.ones((len(mu), 1)), columns])
    gram = (columns * room[:, None]).T @ columns
    return columns @ np.linalg.lstsq(gram, columns.T @ mu, rcond=None)[0]


def _entropy(problem: LinearProblem, alpha: Array) -> float:
    share = np.minimum(alpha / problem.weights, problem.loss.steepest)
    return float(problem.weights @ problem.loss.conjugate(share))


def _regression(problem: LinearProblem, point: DualPoint) -> float:
    loss, mu, alpha = problem.loss, point.mu, point.alpha
    g = _gradient(problem, mu)
    penalised = problem.penalised and bool(problem.l1.any())
    calm = (problem.radii == 0) & (problem.l1 > 0) if penalised else np.zeros(0, dtype=bool)
    if calm.any():
        # Only the penalty holds these features: everything is scaled until it does.
        over = max(float((np.abs(g[calm]) / problem.l1[calm]).max()), 1.0)
        mu, alpha, g = mu / over, alpha / over, g / over
        g[calm] = np.clip(g[calm], -problem.l1[calm], problem.l1[calm])
    need = dual_size(problem, soft(g, problem.l1) if penalised else g)
    if np.isinf(need):
        return 0.0
    alpha = fill(alpha, need, problem.weights * loss.steepest, problem.weights)
    total = float(alpha.sum())
    scale = min(1.0, total / need) if need else 1.0
    linear = scale * float(mu @ problem.y)
    quadratic = _entropy(problem, alpha)
    if loss.curve and not loss.bounded and not penalised and quadratic > 0:
        # Without penalties mu and alpha may be scaled together; the best scale gives this.
        return max(linear, 0.0) ** 2 / (4 * quadratic)
    return max(linear - quadratic, 0.0)


def _classes(problem: LinearProblem, point: DualPoint, inner: DualPoint | None) -> float:
    mu, alpha = point.mu, point.alpha
    g = _gradient(problem, mu)
    penalised = problem.penalised and bool(problem.l1.any())
    need, total = dual_size(problem, soft(g, problem.l1) if penalised else g), float(alpha.sum())
    if need > total and penalised:
        low, high = 0.0, 1.0
        for _ in range(50):
            scale = (low + high) / 2
            fits = dual_size(problem, soft(scale * g, problem.l1)) <= scale * total
            low, high = (scale, high) if fits else (low, scale)
        return max(-_entropy(problem, low * alpha), 0.0)
    if need > total * (1 + ROUNDING):
        if inner is None or np.isinf(need):
            return 0.0
        inner = _balanced(problem, inner)
        room = float(inner.alpha.sum()) - dual_size(problem, _gradient(problem, inner.mu))
        if not room > 0:
            return 0.0
        alpha = alpha + (need - total) * (1 + 1e-9) / room * inner.alpha
        over = float((alpha / np.maximum(problem.weights, 1e-300)).max()) / problem.loss.steepest
        alpha = alpha / max(over, 1.0)
    if not problem.loss.smooth:
        # The hinge's bound is linear in alpha: as large as its upper bounds allow.
        over = float((alpha / np.maximum(problem.weights, 1e-300)).max())
        alpha = alpha / over if over > 0 else alpha
    return max(-_entropy(problem, alpha), 0.0)


def _with_ridge(problem: LinearProblem, point: DualPoint, theta: Array) -> float:
    mu, alpha = point.mu, point.alpha
    g, total = np.asarray(problem.x.T @ mu), float(alpha.sum())
    e = soft(g - problem.l2 * theta, problem.l1)
    if not problem.attacked:
        e = np.zeros_like(g)
    else:
        e = np.where(problem.radii > 0, e, 0.0)
        size = dual_size(problem, e)
        if size > total:
            e = e * (total / size)
    rest = soft(g - e, problem.l1)
    bound = -float((rest**2 / (2 * problem.l2)).sum()) - _entropy(problem, alpha)
    if not problem.loss.classifies:
        bound += float(mu @ problem.y)
    return max(bound, 0.0)


def fill(least: Array, total: float, top: Array, weights: Array) -> Array:
    """The vector of least sum alpha^2/w that is nowhere below `least`, at most `top`, and has at
    least this sum (or `top`, where that is smaller): alpha_i = max(least_i, level w_i)."""
    lack = total - float(least.sum())
    if lack <= 0:
        return least
    if float(top.sum()) <= total:
        return np.maximum(least, top)
    share = least / weights
    lowest = float(share.min())
    low = share <= lowest * (1 + 1e-9)
    level = lowest + lack / float(weights[low].sum())
    if not (share[~low] < level).any() and np.isinf(top[0]):
        return np.maximum(least, level * weights)
    order = np.argsort(share)
    w, a = weights[order], least[order]
    below, above = np.cumsum(w), np.append(np.cumsum(a[::-1])[::-1][1:], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = (total - above) / below
    valid = np.flatnonzero(levels >= share[order])
    level = levels[valid[-1]] if len(valid) else 0.0
    return np.minimum(np.maximum(least, level * weights), top)
