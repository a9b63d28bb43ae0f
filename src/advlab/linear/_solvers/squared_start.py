"""The squared loss without an interior point: ridge regression, rounded kinks, faces.

A few reweighted ridge regressions on the Gram matrix give a rough model. Newton's method on the
problem with |r| rounded inside a band that shrinks brings it close enough for the faces of
`squared_faces` to find the rest. None of it is sure to succeed; the certificate tells.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from ...core.checks import Array
from .active_face import Vertex, face_at
from .interior_then_face import Found
from .problem import LinearProblem
from .squared_faces import (
    FaceGuess,
    FaceStep,
    SquaredFaces,
    follow_guess,
    follow_squared,
    has_squared_faces,
    predicted,
)

BANDS = ((0.3, 0.1, 0.03), (0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.03, 0.03, 0.01))
"""Widths of the band in mean residuals, one Newton step each: a short way, and a slow one."""
NEAR = (0.1, 0.02)
"""The same from a model nearby."""


def solve_squared(problem: LinearProblem, tolerance: float) -> Vertex | None:
    """The minimiser, or None where the faces do not settle.

    Args:
        problem: any; None at once unless it has squared faces and a Gram matrix that serves.
        tolerance: the relative gap.
    """
    n, d = problem.shape
    if not has_squared_faces(problem) or d + problem.intercept > n:
        return None
    faces = SquaredFaces(problem)
    start = _reweighted_ridge(faces)
    if start is None:
        return None
    for widths in BANDS:
        vertex = _banded(faces, start, widths, 0.1 * tolerance * problem.zero_objective)
        if vertex is not None and vertex.gap <= tolerance * vertex.value:
            return vertex
    return None


def next_squared(
    problem: LinearProblem, start: Found, before: Found | None, tolerance: float
) -> Vertex | None:
    """The minimiser along a path, or None where the faces do not settle.

    Args:
        problem: see `has_squared_faces`.
        start: the solution for a radius nearby.
        before: the one before it, if there is one.
        tolerance: the relative gap.
    """
    enough = 0.1 * tolerance * max(start.value, 1e-300)
    if start.step is not None:
        return _carried(problem, start.step, before.step if before else None, enough, 3)
    face = face_at(problem, start.theta, start.b)
    vertex = follow_squared(problem, face, start.theta, start.b, enough)
    n, d = problem.shape
    if vertex is None and d + problem.intercept <= n:
        xi = np.append(start.theta, start.b) if problem.intercept else start.theta
        vertex = _banded(SquaredFaces(problem), xi, NEAR, enough)
    return vertex


def _carried(
    problem: LinearProblem, now: FaceStep, before: FaceStep | None, tolerance: float, halvings: int
) -> Vertex | None:
    """From the face that the solutions before point to; else by way of a radius between."""
    faces = SquaredFaces(problem)
    guess, xi = predicted(faces, now, before)
    vertex = follow_guess(faces, guess, xi, tolerance, 16, 2)
    if vertex is None and faces.data.whole:
        vertex = _banded(faces, xi, NEAR, tolerance)
    if vertex is not None or not halvings or not faces.reach < now.reach < 1.5 * faces.reach:
        return vertex
    between = problem.at_radii(problem.radii * np.sqrt(now.reach / faces.reach))
    half = _carried(between, now, before, tolerance, halvings - 1)
    if half is None:
        return None
    return _carried(problem, half.step, now, tolerance, halvings - 1)


def _reweighted_ridge(faces: SquaredFaces, times: int = 3) -> Array | None:
    """A rough minimiser: (|r| + t)^2 <= (1 + t/m) r^2 + (1 + m/t) t^2 with m the mean of |r|."""
    p, x = faces.p, faces.data.x
    if not faces.data.whole:
        return None
    gram, moment = faces.data.gram, faces.data.moment
    squares = faces.radii**2
    lift = 1e-10 * float(np.trace(gram)) / len(gram)
    c, k, ratio = 1.0, 1.0, np.full(len(gram), float(len(gram)))
    xi = np.zeros(len(gram))
    for _ in range(times):
        h = c * gram
        ridge = 2 * k * squares if faces.round else 2 * k * squares * ratio
        h.ravel()[:: len(gram) + 1] += ridge + faces.l2 + lift
        factor, info = dpotrf(h, lower=1)
        if info:
            return None
        xi = dpotrs(factor, c * moment, lower=1)[0]
        mean = float(p.weights @ np.abs(p.y - x @ xi))
        scaled = faces.radii * xi
        t = float(np.linalg.norm(scaled) if faces.round else np.abs(scaled).sum())
        if not (mean > 1e-9 * t and t > 1e-9 * mean):
            return None
        c, k = 1 + t / mean, 1 + mean / t
        size = np.abs(scaled)
        # |R theta|_1^2 <= sum (R theta)_j^2 ratio_j for ratio_j = |R theta|_1 / |R theta|_j.
        ratio = t / (size + 1e-6 * float(size.max()) + 1e-300)
    return xi


def _banded(
    faces: SquaredFaces, xi: Array, widths: tuple[float, ...], tolerance: float
) -> Vertex | None:
    p = faces.p
    sign = np.where(xi < 0, -1.0, 1.0)
    if not faces.round:
        small = np.abs(faces.radii * xi) < 0.02 * float(np.abs(faces.radii * xi).max())
        sign = np.where(small & faces.can_vanish, 0.0, sign)
    r = p.y - faces.data.x @ np.where(sign != 0, xi, 0.0)
    unit = float(p.weights @ np.abs(r))
    for width in widths:
        guess = FaceGuess(sign, np.where(r < 0, -1.0, 1.0))
        at = faces.step(np.where(sign != 0, xi, 0.0), guess, width * unit)
        if at is None:
            return None
        xi, r, sign = at.xi, at.r, faces.signs(at)[0]
    sizes = np.abs(r)
    kink = sizes < widths[-1] * unit
    most = int(0.8 * np.count_nonzero(sign))
    if kink.sum() > most:
        kink = np.zeros_like(kink)
        kink[np.argsort(sizes)[: most // 2]] = True
    guess = FaceGuess(sign, np.where(kink, 0.0, np.where(r < 0, -1.0, 1.0)))
    return follow_guess(faces, guess, xi, tolerance, 16)
