"""Which method solves a problem: by the norm, the loss and the shape."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...core.checks import Array
from .active_face import face_at, follow_faces, held_at_zero
from .certificate import DualPoint, dual_size
from .cone_program import solve_by_cones
from .first_order import first_order
from .interior_then_face import Found, from_vertex, interior_then_face, measured, separated
from .problem import LinearProblem, is_sparse
from .reductions import in_span
from .sample_losses import named_loss
from .smooth_newton import solve_smooth
from .squared_faces import has_squared_faces
from .squared_start import next_squared, solve_squared
from .thresholds import interpolation_threshold
from .working_set import first_multipliers, solve_by_working_sets

STRUCTURED = (1.0, 2.0, np.inf)
LARGEST = 20_000
"""Rows of the largest Newton matrix."""
WIDE = 20
"""Working sets pay from this many features per sample on."""


def solve_problem(
    problem: LinearProblem, tolerance: float, max_steps: int = 80, start: Found | None = None,
    earlier: Sequence[Found] = (),
) -> Found:  # fmt: skip
    """The minimiser, to a relative gap where it can be had.

    Args:
        problem: the problem.
        tolerance: relative gap.
        max_steps: of the interior point method.
        start: the solution of a problem nearby, for a warm start.
        earlier: those before it on a path, the last one first.
    """
    leads = start is not None and (start.theta.any() or start.step is not None)
    if start is not None and leads and not start.unbounded:
        warm = _warm(problem, start, earlier, tolerance)
        if warm is not None:
            return warm
    for method in (_least_squares, _min_norm):
        found = method(problem, tolerance)
        if found is not None:
            return found
    found = _structured(problem, tolerance, max_steps, start)
    if found is not None and found.method == "separable":
        return widest(problem, found, tolerance, max_steps)
    if found is not None and found.relative <= tolerance:
        return found
    other = _cones(problem) if not _too_large(problem) else first_order(problem, tolerance)
    if other is None:
        return found if found is not None else _nothing(problem)
    return other if found is None or other.relative < found.relative else found


def widest(problem: LinearProblem, found: Found, tolerance: float, max_steps: int) -> Found:
    """Of all models that keep every sample on its side: the shortest with margin 1 under attack.

    It is unique, so that the answer does not depend on how it was found. The hinge with a small l2
    penalty has it as its minimiser. Not for large problems: there it costs more than it is worth.
    """
    if problem.shape[0] * problem.shape[1] > 50_000:
        return found
    size = float(np.linalg.norm(found.theta))
    margin = problem.arguments(
        problem.scores(found.theta, found.b), problem.attack(found.theta)
    ).min()
    ridge = 0.1 * float(problem.weights.min()) * float(margin / max(size, 1e-300)) ** 2
    for _ in range(4):
        soft = replace(
            problem, loss=named_loss("hinge"), l2=np.full(problem.shape[1], max(ridge, 1e-300))
        )
        best = _structured(soft, 1e-9, max_steps, None)
        if best is None or best.relative > 1e-6:
            return found
        apart = separated(problem, best.theta, best.b, tolerance)
        margins = problem.arguments(problem.scores(best.theta, best.b), problem.attack(best.theta))
        if apart is not None and float(margins.min()) >= 1 - 1e-6:
            return apart
        ridge *= 0.01
    return found


def _nothing(problem: LinearProblem) -> Found:
    zero = np.zeros(problem.shape[1])
    return measured(problem, zero, problem.constant_fit, zero_point(problem), 0, "none")


def zero_point(problem: LinearProblem) -> DualPoint:
    """The dual point of the best model without features."""
    mu = first_multipliers(problem)
    return DualPoint(mu, np.abs(mu))


def _warm(
    problem: LinearProblem, start: Found, earlier: Sequence[Found], tolerance: float
) -> Found | None:
    """The solution from the face of another one nearby, or the one that several point to."""
    if problem.attacked and problem.dual not in STRUCTURED:
        return None
    if in_span(problem) is not None:
        return None
    n, d = problem.shape
    may_fit = d + problem.intercept >= n and not problem.loss.classifies
    if may_fit and problem.attacked and not problem.penalised:
        # A min-norm interpolator stays optimal under weaker attacks.
        scale = max(float(np.abs(problem.y).max(initial=0.0)), 1e-300)
        miss = np.abs(problem.y - problem.scores(start.theta, start.b)).max()
        need = dual_size(problem, np.asarray(problem.x.T @ start.point.mu))
        if miss <= 1e-10 * scale and 0 < need < np.inf:
            same = interpolating(problem, start.theta, start.b, start.point.mu / need)
            if same.relative <= tolerance:
                return replace(same, steps=0)
    with np.errstate(all="ignore"):
        if has_squared_faces(problem):
            vertex = next_squared(problem, start, earlier[0] if earlier else None, tolerance)
        else:
            enough = 0.1 * tolerance * max(start.value, 1e-300)
            many = d > WIDE * n and held_at_zero(problem).all()
            face = face_at(problem, start.theta, start.b)
            theta, b = _extrapolated(problem, [start, *earlier])
            # A smooth path takes two or three steps of Newton's method, each with its gap.
            newton = 1 if problem.loss.smooth else 2
            vertex = follow_faces(
                problem, face, theta, b, enough, rounds=(8 if many else 12) * 2 // newton,
                inner=start.point, newton=newton,
            )  # fmt: skip
    if vertex is None:
        return None
    found = from_vertex(vertex, 0, "face, warm")
    return found if found.relative <= tolerance else None


def _extrapolated(problem: LinearProblem, path: Sequence[Found]) -> tuple[Array, float]:
    """Where the last solutions of a smooth path point to: a parabola in the log of the radius.

    Features at zero stay there, and none changes its sign: the face is that of the last solution.
    """
    last, reach = path[0], [float(problem.radii.sum()), *(one.reach for one in path)]
    if not problem.loss.smooth or min(reach) <= 0 or (np.diff(reach) <= 0).any():
        return last.theta, last.b
    now, *at = np.log(reach)
    # Lagrange's weights.
    shares = [
        float(np.prod([(now - other) / (here - other) for other in at if other != here]))
        for here in at
    ]
    theta = sum(share * one.theta for share, one in zip(shares, path, strict=True))
    b = sum(share * one.b for share, one in zip(shares, path, strict=True))
    return np.where(np.sign(theta) == np.sign(last.theta), theta, last.theta), float(b)


def _least_squares(problem: LinearProblem, tolerance: float) -> Found | None:
    """No attack, squared loss, at most an l2 penalty: a linear system."""
    loss = problem.loss
    plain = loss.curve and not loss.bounded and not problem.attacked and not problem.l1.any()
    n, d = problem.shape
    if not plain or min(n, d) > 5000:
        return None
    x = problem.x.toarray() if is_sparse(problem.x) else problem.x
    root = np.sqrt(problem.weights)
    mean = problem.weights @ x if problem.intercept else np.zeros(d)
    centre = float(problem.weights @ problem.y) if problem.intercept else 0.0
    a, target = (x - mean) * root[:, None], (problem.y - centre) * root
    if problem.l2.any():
        if d > n:
            gram = (a / problem.l2 * 2) @ a.T + np.eye(n)
            theta = 2 / problem.l2 * (a.T @ np.linalg.solve(gram, target))
        else:
            theta = np.linalg.solve(2 * a.T @ a + np.diag(problem.l2), 2 * a.T @ target)
    else:
        theta = np.linalg.lstsq(a, target, rcond=None)[0]
    b = centre - float(mean @ theta)
    alpha = 2 * problem.weights * (problem.y - problem.scores(theta, b))
    return measured(problem, theta, b, DualPoint(alpha, np.abs(alpha)), 1, "least squares")


def _min_norm(problem: LinearProblem, tolerance: float) -> Found | None:
    """Below the interpolation threshold the answer is the min-norm interpolator, solved directly.

    In l2 it is closed form. In other norms it is a linear programme: the absolute loss has the same
    minimiser there, and the same multipliers up to scale. It is tried where the threshold of the l2
    interpolator says that it may hold; its certificate decides.
    """
    n, d = problem.shape
    if problem.loss.classifies or problem.penalised or d < n or not problem.radii.all():
        return None
    if not problem.attacked or problem.dual not in STRUCTURED:
        return None
    multipliers = l2_interpolator(problem)
    if multipliers is None:
        return None
    theta, b, mu = multipliers
    if problem.dual == 2:
        found = interpolating(problem, theta, b, mu)
        return found if found.relative <= tolerance else None
    need = dual_size(problem, np.asarray(problem.x.T @ mu))
    if interpolation_threshold(problem, problem.radii, mu / max(need, 1e-300)) < 5:
        return None
    line = replace(problem, loss=named_loss("absolute"))
    found = _structured(line, tolerance, 80, None)
    if found is None or found.relative > tolerance:
        return None
    found = replace(interpolating(problem, found.theta, found.b, found.point.mu), steps=found.steps)
    return found if found.relative <= tolerance else None


def l2_interpolator(problem: LinearProblem) -> tuple[Array, float, Array] | None:
    """The interpolator of least ||radii theta||_2: theta, b and mu with X'mu = its gradient."""
    n, r = len(problem.y), problem.radii
    if is_sparse(problem.x):
        scaled = problem.x.multiply(1 / r[None, :]).tocsr()
        gram = (scaled @ scaled.T).toarray()
    else:
        scaled = problem.x / r
        gram = scaled @ scaled.T
    size = float(np.trace(gram)) / n
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n] = gram
    matrix[n, n] = 1.0
    if problem.intercept:
        matrix[:n, n] = matrix[n, :n] = np.sqrt(size)
        matrix[n, n] = 0.0
    right = np.append(problem.y, 0.0)
    try:
        found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return None
    miss = float(np.abs(matrix @ found - right).max(initial=0.0))
    scale = max(float(np.abs(problem.y).max(initial=0.0)), 1e-300)
    if not np.isfinite(found).all() or miss > 1e-9 * scale:
        return None
    theta = np.asarray(scaled.T @ found[:n]) / r
    length = problem.attack(theta) if problem.dual == 2 else float(np.linalg.norm(r * theta))
    b = float(found[n]) * np.sqrt(size) if problem.intercept else 0.0
    return theta, b, found[:n] / max(length, 1e-300)


def interpolating(problem: LinearProblem, theta: Array, b: float, mu: Array) -> Found:
    """A model that fits every sample, with multipliers of its norm, as a solution."""
    slope = float(problem.loss.slope(np.array([problem.attack(theta)]))[0])
    alpha = problem.weights * slope
    point = DualPoint(mu * slope * float(problem.weights.sum()), alpha)
    return measured(problem, theta, b, point, 1, "min-norm interpolator")


def _dense(problem: LinearProblem, tolerance: float, max_steps: int) -> Found:
    """By faces alone where they settle, else by interior point and faces."""
    with np.errstate(all="ignore"):
        vertex = solve_squared(problem, tolerance)
        if vertex is not None:
            return from_vertex(vertex, 0, "faces")
        vertex = solve_smooth(problem, tolerance)
        if vertex is not None:
            return from_vertex(vertex, 0, "Newton")
    return interior_then_face(problem, tolerance, max_steps)


def _structured(
    problem: LinearProblem, tolerance: float, max_steps: int, start: Found | None
) -> Found | None:
    if problem.attacked and problem.dual not in STRUCTURED:
        return None
    reduced = in_span(problem)
    if reduced is not None:
        small, back = reduced
        found = _dense(small, 0.5 * tolerance, max_steps)
        theta = back(found.theta)
        if found.method == "separable":
            return replace(found, theta=theta, value=problem.objective(theta, found.b))
        return measured(problem, theta, found.b, found.point, found.steps,
                        f"Gram form, {found.method}", found.point)  # fmt: skip
    n, d = problem.shape
    # Features that an l1 term can hold at zero may wait outside.
    used = d if start is None or d <= n else int((start.theta != 0).sum())
    if 0 < used < 0.4 * d and held_at_zero(problem).all():
        return solve_by_working_sets(
            problem, tolerance, lambda part, tol: _dense(part, tol, max_steps),
            max(10, used // 2), start,
        )  # fmt: skip
    if d > max(WIDE * n, 500) and held_at_zero(problem).mean() > 0.9:
        size = max(2 * n, 200)
        return solve_by_working_sets(
            problem, tolerance, lambda part, tol: _dense(part, tol, max_steps), size,
            start,
        )  # fmt: skip
    if min(n, d) > LARGEST:
        return None
    return _dense(problem, tolerance, max_steps)


def _too_large(problem: LinearProblem) -> bool:
    """Whether a Newton matrix, or Clarabel's copy of the data, is out of reach."""
    n, d = problem.shape
    return (problem.x.nnz if is_sparse(problem.x) else n * d) > 3e7 or min(n, d) > LARGEST


def _cones(problem: LinearProblem) -> Found | None:
    try:
        theta, b, point, steps = solve_by_cones(problem)
    except (ValueError, RuntimeError):
        return None
    if not np.isfinite(theta).all():
        return None
    apart = separated(problem, theta, b, 1e-8)
    if apart is not None:
        return apart
    inner = None
    if problem.loss.classifies and problem.attacked and not problem.penalised:
        # Multipliers of a slightly weaker attack lie strictly inside: they make up for rounding.
        inner = solve_by_cones(problem.at_radii(problem.radii * (1 - 1e-6)))[2]
    return measured(problem, theta, b, point, steps, "cone programme", inner)
