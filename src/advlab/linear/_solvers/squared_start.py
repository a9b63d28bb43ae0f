"""The squared loss without an interior point: ridge regression, rounded kinks, faces.

A few reweighted ridge regressions on the Gram matrix give a rough model. Newton's method on the
problem with |r| rounded inside a band that shrinks brings it close enough for the faces of
`squared_faces` to find the rest. None of it is sure to succeed; the certificate tells.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from ...core.checks import Array
from .active_face import Vertex
from .problem import LinearProblem
from .squared_faces import FaceGuess, SquaredFaces, follow_guess, has_squared_faces

BANDS = ((0.3, 0.1, 0.03), (0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.03, 0.03, 0.01))
"""Widths of the band in mean residuals, one Newton step each: a short way, and a slow one."""


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
        vertex = _banded(faces, start, widths, 0.1 * tolerance)
        if vertex is not None and vertex.gap <= tolerance * vertex.value:
            return vertex
    return None


def near_squared(problem: LinearProblem, theta: Array, b: float, tolerance: float) -> Vertex | None:
    """The minimiser from the solution of a problem nearby, where its face does not lead there."""
    n, d = problem.shape
    if not has_squared_faces(problem) or d + problem.intercept > n:
        return None
    xi = np.append(theta, b) if problem.intercept else theta
    return _banded(SquaredFaces(problem), xi, (0.05, 0.02), 0.1 * tolerance)


def _reweighted_ridge(faces: SquaredFaces, times: int = 3) -> Array | None:
    """A rough minimiser: (|r| + t)^2 <= (1 + t/m) r^2 + (1 + m/t) t^2 with m the mean of |r|."""
    p, x, gram = faces.p, faces.data.x, faces.data.gram
    if gram is None:
        return None
    moment = x.T @ (2 * p.weights * p.y)
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
    loose = np.zeros(len(r), dtype=bool)
    for width in widths:
        guess = FaceGuess(sign, loose, np.where(r < 0, -1.0, 1.0))
        at = faces.step(np.where(sign != 0, xi, 0.0), guess, width * unit)
        if at is None or not np.isfinite(at.xi).all():
            return None
        xi, r, sign = at.xi, at.r, faces.next(at, guess)[0].sign
    sizes = np.abs(r)
    kink = sizes < widths[-1] * unit
    most = int(0.8 * np.count_nonzero(sign))
    if kink.sum() > most:
        kink = np.zeros_like(loose)
        kink[np.argsort(sizes)[: most // 2]] = True
    guess = FaceGuess(sign, kink, np.where(r < 0, -1.0, 1.0))
    return follow_guess(faces, guess, xi, tolerance * p.zero_objective, 16)
