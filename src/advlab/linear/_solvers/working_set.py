"""Many more features than samples: solve with some features, add those that the solution misses."""

from collections.abc import Callable

import numpy as np

from ...core.checks import Array
from .certificate import DualPoint
from .interior_then_face import Found, measured
from .problem import LinearProblem


def first_multipliers(problem: LinearProblem) -> Array:
    """mu of the best model without features."""
    scores = np.full(len(problem.y), problem.constant_fit)
    z = problem.arguments(scores, 0.0)
    alpha = problem.weights * problem.loss.slope(z)
    if problem.loss.classifies:
        return problem.y * alpha
    return np.sign(problem.y - scores) * alpha


def solve_by_working_sets(
    problem: LinearProblem,
    tolerance: float,
    solve: Callable[[LinearProblem, float], Found],
    size: int,
    start: Found | None = None,
    rounds: int = 30,
) -> Found:
    """The minimiser of a problem whose solution has zeros.

    Args:
        problem: q = 1, or an l1 penalty.
        tolerance: relative gap.
        solve: for the problem with some columns.
        size: of the first working set.
        start: a solution nearby; its features are in the first set, its multipliers rank others.
        rounds: at most so many.
    """
    d = problem.shape[1]
    mu = first_multipliers(problem) if start is None else start.point.mu
    cost = problem.radii + problem.l1
    always = cost == 0
    rank = np.abs(np.asarray(problem.x.T @ mu)) / np.where(always, 1.0, cost)
    chosen = always.copy()
    if start is not None:
        chosen |= start.theta != 0
    chosen[np.argsort(np.where(chosen, 0.0, rank))[::-1][:size]] = True
    steps, found = 0, None
    for _ in range(rounds):
        kept = np.flatnonzero(chosen)
        part = solve(problem.columns(kept), 0.1 * tolerance)
        steps += part.steps
        theta = np.zeros(d)
        theta[kept] = part.theta
        if part.method == "separable":
            return Found(theta, part.b, part.point, part.value, part.least, steps, part.method,
                         part.unbounded)  # fmt: skip
        now = measured(problem, theta, part.b, part.point, steps, f"working sets, {part.method}",
                       part.point)  # fmt: skip
        found = now if found is None or now.relative < found.relative else found
        if found.relative <= tolerance:
            break
        missed = violations(problem, part.point)
        missed[kept] = 0.0
        count = int((missed > 0).sum())
        if count == 0:
            break
        chosen[np.argsort(missed)[::-1][: min(count, max(size // 2, 50))]] = True
    return found  # type: ignore[return-value]


def violations(problem: LinearProblem, point: DualPoint) -> Array:
    """How far each feature's |x_j'mu| is above what its zero allows; 0 where it is not."""
    total = float(point.alpha.sum())
    attack = total * problem.radii if problem.attacked and problem.dual == 1 else 0.0
    allowed = problem.l1 + attack
    g = np.abs(np.asarray(problem.x.T @ point.mu))
    return np.where(g > allowed * (1 + 1e-11), g / np.maximum(allowed, 1e-300) - 1, 0.0)
