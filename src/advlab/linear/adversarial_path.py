"""Robust linear models along a grid of radii, each from the one before."""

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.checks import Array, ArrayLike, Scalar, nonnegative, positive
from ..core.errors import AdvlabError
from ._solvers.choose import STRUCTURED
from ._solvers.interior_then_face import Found, separated
from ._solvers.reductions import in_span
from ._solvers.squared_faces import zero_step
from .solve import (
    LinearSolution,
    Prepared,
    Thresholds,
    _interpolation,
    prepare,
    solve_at,
    summary,
    warning_kind,
    zero_threshold,
)


@dataclass(frozen=True)
class AdversarialPath:
    """Solutions over radii.

    Args:
        eps: (m,), as given.
        coefs: (m, d).
        intercepts, objectives, relative_gaps: (m,).
        thresholds: where the solution becomes zero, and up to where it fits every sample.
        solutions: each with its certificate.
        seconds: of the whole path.
    """

    eps: Array
    coefs: Array
    intercepts: Array
    objectives: Array
    relative_gaps: Array
    thresholds: Thresholds
    solutions: tuple[LinearSolution, ...]
    seconds: float


def adversarial_path(
    x: Any,
    y: ArrayLike,
    eps_grid: ArrayLike | None = None,
    norm: str | float = "linf",
    loss: str = "squared",
    *,
    points: int = 50,
    tol: Scalar = 1e-8,
    max_iter: int = 80,
    **settings: Any,
) -> AdversarialPath:
    """Exact solutions for each radius of a grid.

    From the largest radius down, each search starts on the face of the solution before, which is
    often the right one or next to it; where it is not, the interior point method starts anew.

    Args:
        x, y, norm, loss, tol, max_iter: as in `solve_linear`.
        eps_grid: radii, in any order; by default `points` from eps_0 down to a thousandth of it.
        points: of the default grid.
        settings: delta, l1, l2, fit_intercept, sample_weight, scales, as in `solve_linear`.

    Example:
        from advlab.linear import adversarial_path
        adversarial_path(x, y, [0.01, 0.1, 1.0]).coefs
    """
    begin = time.perf_counter()
    ready = prepare(x, y, norm=norm, loss=loss, **settings)
    edge = zero_threshold(ready.problem, ready.unit)
    if eps_grid is None:
        if not np.isfinite(edge) or edge == 0:
            raise AdvlabError("eps_grid, because eps_0 is not a positive number here", edge)
        grid = np.geomspace(edge, edge / 1000, points)
    else:
        grid = np.atleast_1d(nonnegative("eps_grid", eps_grid))
    if grid.ndim != 1 or not len(grid):
        raise AdvlabError("eps_grid must be a vector of radii", f"shape {grid.shape}")
    asked = float(positive("tol", tol))
    found = _follow(ready, grid, edge, asked, int(max_iter))
    solutions = tuple(found)
    return AdversarialPath(
        grid,
        np.array([one.coef for one in solutions]),
        np.array([one.intercept for one in solutions]),
        np.array([one.objective for one in solutions]),
        np.array([one.relative_gap for one in solutions]),
        Thresholds(edge, _interpolation(ready)),
        solutions,
        time.perf_counter() - begin,
    )


def _follow(
    ready: Prepared, grid: Array, edge: float, tol: float, max_iter: int
) -> list[LinearSolution]:
    inner, back = _reduced(ready)
    _ = inner.problem.flat, inner.problem.penalised, inner.problem.zero_objective
    found: dict[int, LinearSolution] = {}
    path: list[Found] = []
    apart: Found | None = None
    missed = []
    for at in np.argsort(grid, kind="stable")[::-1]:
        eps = float(grid[at])
        begin = time.perf_counter()
        problem = inner.problem.at_radii(eps * inner.unit)
        # What keeps every sample on its side under an attack does so under weaker ones.
        again = None if apart is None else separated(problem, apart.theta, apart.b, tol)
        if again is not None:
            solved, zero = again, None
        else:
            solved, zero = solve_at(
                inner, problem, eps, tol, max_iter, path[0] if path else None, edge, path[1:]
            )
            if zero is not None:
                solved = replace(solved, step=zero_step(problem))
        solved = replace(solved, reach=float(problem.radii.sum()))
        apart = solved if solved.method == "separable" else None
        path = [solved, *path[:2]] if apart is None else []
        if back is not None:
            solved = replace(solved, theta=back(solved.theta))
        one = summary(ready, solved, zero, eps, tol, time.perf_counter() - begin)
        found[int(at)] = one
        if solved.unbounded or not one.converged:
            missed.append(eps)
    if missed:
        warnings.warn(
            f"{len(missed)} of {len(grid)} radii are not solved to {tol:g} or have no minimiser, "
            f"the largest {max(missed):.4g}; see the status of each solution",
            warning_kind(), stacklevel=4,
        )  # fmt: skip
    return [found[at] for at in range(len(grid))]


def _reduced(ready: Prepared):
    """For l2 attacks and many features, the problem in the span of the samples, once for all."""
    if ready.problem.dual not in STRUCTURED:
        return ready, None
    reduced = in_span(ready.problem)
    if reduced is None:
        return ready, None
    small, back = reduced
    return Prepared(small, small.radii, None), back
