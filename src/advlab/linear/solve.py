"""Robust linear models on given samples, solved exactly: `solve_linear` and its thresholds."""

import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..core.checks import Array, ArrayLike, Scalar, chosen, finite, nonnegative, positive, scalar
from ..core.errors import AdvlabError
from ..threats.norms import any_order
from ._solvers.certificate import dual_size
from ._solvers.choose import STRUCTURED, l2_interpolator, solve_problem, zero_point
from ._solvers.interior_then_face import Found, measured
from ._solvers.problem import LinearProblem, is_sparse
from ._solvers.sample_losses import CLASSIFICATION, REGRESSION, named_loss
from ._solvers.thresholds import interpolation_threshold, zero_threshold


class InexactSolution(UserWarning):
    """A solver ended above the gap that was asked for; the message has the gap it reached."""


@dataclass(frozen=True)
class LinearSolution:
    """A robust linear model with its certificate.

    Args:
        coef: (d,).
        intercept: never attacked.
        objective: the adversarial objective there.
        gap: no model has an objective below `objective - gap`.
        relative_gap: gap / objective.
        iterations: Newton steps of the interior point method, over all working sets.
        seconds: of the solver.
        method: which solver, in words.
        status: one line: converged, zero, no minimiser, or the gap reached.
        converged: whether the gap is as small as asked, or it is proved that there is no minimiser.
        eps: the radius, or (d,) radii.
    """

    coef: Array
    intercept: float
    objective: float
    gap: float
    relative_gap: float
    iterations: int
    seconds: float
    method: str
    status: str
    converged: bool
    eps: Any


@dataclass(frozen=True)
class Thresholds:
    """Where the solution changes its form.

    Args:
        zero: from this radius on the coefficients are zero (eps_0).
        interpolation: up to this radius the solution fits every sample (regression with at least
            as many features as samples and no penalty; else 0).
    """

    zero: float
    interpolation: float


@dataclass(frozen=True)
class Prepared:
    """A checked problem in centred features, and the way back."""

    problem: LinearProblem
    unit: Array
    """The radii of eps = 1."""
    shift: Array | None

    def intercept(self, theta: Array, b: float) -> float:
        return b if self.shift is None else b - float(self.shift @ theta)


def prepare(
    x: Any, y: ArrayLike, *, norm: str | float = "linf", loss: str = "squared",
    delta: Scalar = 1.0, l1: Scalar = 0.0, l2: Scalar = 0.0, fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None, scales: ArrayLike | None = None,
    merge: bool = True,
) -> Prepared:  # fmt: skip
    """The problem of `solve_linear` with radii 1, checked; arguments as there.

    With `merge` equal samples become one with the sum of their weights.
    """
    chosen("loss", loss, (*REGRESSION, *CLASSIFICATION))
    order = any_order(norm)
    design = _design(x)
    check_memory(design.shape, is_sparse(design))
    target = finite("y", y)
    n, d = design.shape
    if target.shape != (n,):
        raise AdvlabError(f"y must have {n} entries, one per row of x", f"shape {target.shape}")
    if loss in CLASSIFICATION and not np.isin(target, (-1, 1)).all():
        raise AdvlabError("labels must be -1 and +1", f"{np.unique(target)[:5]}")
    if loss in CLASSIFICATION and len(np.unique(target)) < 2:
        raise AdvlabError("labels of two classes", "one class only")
    weights = np.ones(n) if sample_weight is None else nonnegative("sample_weight", sample_weight)
    if weights.shape != (n,) or not weights.sum() > 0:
        raise AdvlabError("sample_weight must have one entry per sample, not all zero")
    used = weights > 0
    if not used.all():
        design, target, weights = design[used], target[used], weights[used]
    if merge:
        design, target, weights = merged(design, target, weights)
    weights = weights / weights.sum()
    unit = np.ones(d) if scales is None else nonnegative("scales", scales)
    if unit.shape != (d,):
        raise AdvlabError(f"scales must have one entry for each of {d} features", unit.shape)
    shift = None
    if fit_intercept and not is_sparse(design):
        shift = weights @ design
        design = design - shift
    found = LinearProblem(
        design, target, weights, named_loss(loss, float(positive("delta", delta))),
        unit, order, np.full(d, scalar("l1", l1)), np.full(d, scalar("l2", l2)), fit_intercept,
    )  # fmt: skip
    return Prepared(found, unit, shift)


def _design(x: Any) -> Any:
    found: Any
    if sparse.issparse(x):
        found = sparse.csr_matrix(x, dtype=np.float64)
        if not np.isfinite(found.data).all():
            raise AdvlabError("x must be finite", "NaN or infinity")
    else:
        try:
            numbers = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise AdvlabError("x must be numbers", str(error), "encode words as numbers") from None
        found = finite("x", numbers)
    if found.ndim != 2 or not min(found.shape):
        raise AdvlabError("x must be a matrix of samples by features", f"shape {found.shape}")
    return found


def merged(x: Any, y: Array, weights: Array) -> tuple[Any, Array, Any]:
    """Equal samples as one: copies at a kink would make its equations dependent."""
    mix = np.random.default_rng(0).uniform(1, 2, size=x.shape[1])
    key = np.asarray(x @ mix)
    order = np.lexsort((key, y))
    near = (np.diff(y[order]) == 0) & (np.diff(key[order]) == 0)
    if not near.any():
        return x, y, weights
    first = np.arange(len(y))
    for at in np.flatnonzero(near):
        a, b = order[at], order[at + 1]
        same = abs(x[[a]] - x[[b]]).nnz == 0 if is_sparse(x) else np.array_equal(x[a], x[b])
        if same:
            first[b] = first[a]
    kept, groups = np.unique(first, return_inverse=True)
    return x[kept], y[kept], np.bincount(groups, weights=weights)


def check_memory(shape: tuple[int, int], is_sparse: bool) -> None:
    """Refuse a problem whose vectors alone do not fit into the memory that is free."""
    n, d = shape
    need = 8.0 * (25 * (n + d) + 3 * min(n, d, 20_000) ** 2 + (0 if is_sparse else 2.0 * n * d))
    try:
        free = float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return
    # Pages of files in cache count as used; a factor of four allows for them.
    if need > 4 * free:
        raise AdvlabError(
            "a problem that fits into memory", f"{n} x {d} needs {need / 2**30:.1f} GiB",
            "keep fewer features, or pass a sparse matrix",
        )  # fmt: skip


def radii_of(eps: Any, prepared: Prepared) -> tuple[Array, float | None]:
    """(d,) radii, and eps itself where it is one number."""
    found = nonnegative("eps", eps)
    d = len(prepared.unit)
    if found.ndim == 0:
        return float(found) * prepared.unit, float(found)
    if found.shape != (d,):
        raise AdvlabError(f"eps must be one number or {d}, one per feature", f"shape {found.shape}")
    return found * prepared.unit, None


def solve_linear(
    x: Any,
    y: ArrayLike,
    eps: ArrayLike,
    norm: str | float = "linf",
    loss: str = "squared",
    *,
    delta: Scalar = 1.0,
    l1: Scalar = 0.0,
    l2: Scalar = 0.0,
    fit_intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    scales: ArrayLike | None = None,
    tol: Scalar = 1e-8,
    max_iter: int = 80,
) -> LinearSolution:
    """argmin over theta, b of mean loss under attack + l1 |theta|_1 + l2 |theta|^2/2.

    The attack moves each sample inside ||delta / scales||_p <= eps, which makes |residual| larger,
    or the margin smaller, by eps ||scales theta||_q, 1/p + 1/q = 1. The minimum is found by an
    interior point method and an exact solve on the face it points to, and certified by a dual
    bound.

    Args:
        x: samples (n, d): an array or a scipy sparse matrix.
        y: answers (n,), or labels -1 and +1.
        eps: the radius, or one per feature.
        norm: "l1", "l2", "linf", or any p >= 1 as a number.
        loss: "squared", "absolute" or "huber" of the residual; "logistic" or "hinge" of the margin.
        delta: where Huber's loss turns linear: u^2 up to delta, then 2 delta u - delta^2.
        l1, l2: extra penalties.
        fit_intercept: whether there is an intercept; it is neither attacked nor penalised.
        sample_weight: (n,); the mean is weighted.
        scales: (d,), how far the attack reaches along each feature for eps = 1.
        tol: the relative duality gap to stop at.
        max_iter: Newton steps of the interior point method.

    Returns:
        The model with `objective`, `gap`, `iterations`, `status` and `seconds`. A gap above `tol`
        comes with a warning.

    Example:
        from advlab.linear import solve_linear
        solve_linear(x, y, 0.1, "linf").coef
    """
    begin = time.perf_counter()
    ready = prepare(
        x, y, norm=norm, loss=loss, delta=delta, l1=l1, l2=l2, fit_intercept=fit_intercept,
        sample_weight=sample_weight, scales=scales,
    )  # fmt: skip
    radii, number = radii_of(eps, ready)
    asked = float(positive("tol", tol))
    problem = ready.problem.at_radii(radii)
    found, zero = solve_at(ready, problem, number, asked, int(max_iter), None)
    return report(ready, found, zero, eps, asked, time.perf_counter() - begin)


def solve_at(
    ready: Prepared, problem: LinearProblem, eps: float | None, tol: float, max_iter: int,
    start: Found | None, edge: float | None = None, earlier: Sequence[Found] = (),
) -> tuple[Found, float | None]:  # fmt: skip
    """A solution, and eps_0 where it says that the solution is zero."""
    ratio = edge
    if ratio is None and problem.attacked:
        ratio = zero_threshold(problem, problem.radii if eps is None else ready.unit)
    level = 1.0 if eps is None else eps
    if problem.flat or (ratio is not None and problem.attacked and level >= ratio):
        zero = np.zeros(problem.shape[1])
        b = problem.constant_fit
        value = problem.objective(zero, b)
        found = measured(problem, zero, b, zero_point(problem), 0, "zero threshold")
        # Optimal by the threshold itself, whose dual point may lie on a kink.
        return replace(found, least=value), ratio if ratio is not None else 0.0
    return solve_problem(problem, tol, max_iter, start, earlier), None


def report(
    ready: Prepared, found: Found, zero: float | None, eps: Any, tol: float, seconds: float
) -> LinearSolution:
    """What users get; a miss is warned about in one line."""
    solution = summary(ready, found, zero, eps, tol, seconds)
    if found.unbounded:
        warnings.warn(solution.status, warning_kind(), stacklevel=3)
    elif not solution.converged:
        said = f"{solution.status} (asked for {tol:g})"
        warnings.warn(said, warning_kind(), stacklevel=3)
    return solution


def summary(
    ready: Prepared, found: Found, zero: float | None, eps: Any, tol: float, seconds: float
) -> LinearSolution:
    """What users get, without a word."""
    gap = max(found.value - found.least, 0.0)
    relative = found.relative
    tiny = gap <= 1e-13 * max(ready.problem.zero_objective, 1e-300)
    converged = relative <= tol or tiny or found.unbounded
    if zero is not None:
        status = f"zero: eps is at least eps_0 = {zero:.6g}"
    elif found.unbounded:
        status = (
            "no minimiser: the data are separable under this attack, the infimum 0 is not "
            f"attained; the objective here is {found.value:.2g}"
        )
    else:
        word = "converged" if converged else "not converged"
        status = f"{word}: relative duality gap {relative:.2g}"
    return LinearSolution(
        found.theta, ready.intercept(found.theta, found.b), found.value, gap, relative, found.steps,
        seconds, found.method, status, converged, eps,
    )  # fmt: skip


def warning_kind() -> type[Warning]:
    """scikit-learn's ConvergenceWarning where it is installed."""
    try:
        from sklearn.exceptions import ConvergenceWarning
    except ImportError:
        return InexactSolution
    return ConvergenceWarning


def thresholds(x: Any, y: ArrayLike, norm: str | float = "linf", **settings: Any) -> Thresholds:
    """The zero threshold and the interpolation threshold of a problem, exactly.

    eps_0 is the least radius at which theta = 0 is optimal: ||X'mu||_p / sum |mu| with mu the
    slopes of the loss at the best constant. The min-norm interpolator is optimal up to
    min w_i/|mu_i|, mu its multipliers (derived here; for l2 and the squared loss also Ribeiro et
    al., 2023).

    Args:
        x, y, norm: as in `solve_linear`.
        settings: loss, delta, l1, l2, fit_intercept, sample_weight, scales, as there.

    Example:
        from advlab.linear import thresholds
        thresholds(x, y, "linf").zero
    """
    ready = prepare(x, y, norm=norm, **settings)
    zero = zero_threshold(ready.problem, ready.unit)
    return Thresholds(zero, _interpolation(ready))


def _interpolation(ready: Prepared) -> float:
    problem = ready.problem
    n, d = problem.shape
    if problem.loss.classifies or problem.penalised or not ready.unit.all():
        return 0.0
    if d + problem.intercept < n or problem.dual not in STRUCTURED:
        return 0.0
    if problem.zero_objective == 0:
        return np.inf
    found = l2_interpolator(problem)
    if found is None:
        return 0.0
    _, _, mu = found
    if problem.dual == 2:
        return interpolation_threshold(problem, ready.unit, mu)
    need = dual_size(problem, np.asarray(problem.x.T @ mu))
    eps = 0.1 * interpolation_threshold(problem, ready.unit, mu / need)
    line = replace(problem, loss=named_loss("absolute"))
    scale = float(np.abs(problem.y).max())
    for _ in range(12):
        solved = solve_problem(line.at_radii(eps * ready.unit), 1e-10)
        miss = float(np.abs(problem.y - problem.scores(solved.theta, solved.b)).max())
        if miss <= 1e-7 * scale:
            return interpolation_threshold(problem, ready.unit, solved.point.mu / eps)
        eps /= 4
    return 0.0


Solver = Callable[[LinearProblem, float], Found]
