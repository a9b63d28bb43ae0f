"""The logistic loss under l2 attacks: smooth but at theta = 0, so Newton's method alone does.

It begins at the minimiser of the second-order expansion at theta = 0 with the attack's norm
replaced by a square of the same size. Where samples are separable, or nearly so, it does not
settle: the certificate tells, and the interior point method takes over.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs  # type: ignore[attr-defined]

from ...core.checks import Array
from .active_face import Vertex, face_at, follow_faces
from .problem import LinearProblem, is_sparse

ROUNDS = 12


def solve_smooth(problem: LinearProblem, tolerance: float) -> Vertex | None:
    """The minimiser, or None where Newton's method is not for this problem or does not settle.

    Args:
        problem: any.
        tolerance: the relative gap.
    """
    n, d = problem.shape
    round_attack = problem.attacked and problem.dual == 2 and bool(problem.radii.all())
    if not problem.loss.smooth or not round_attack or problem.l1.any() or is_sparse(problem.x):
        return None
    if 2 * (d + problem.intercept) > n:  # random labels are separable from there on
        return None
    theta = _expanded(problem)
    if theta is None:
        return None
    enough = 0.1 * tolerance * problem.zero_objective
    b = problem.constant_fit
    vertex = follow_faces(
        problem, face_at(problem, theta, b), theta, b, enough, rounds=ROUNDS, newton=1
    )
    return vertex if vertex is not None and vertex.gap <= tolerance * vertex.value else None


def _expanded(problem: LinearProblem) -> Array | None:
    """argmin of -m'theta + theta'G theta/2 + s ||R theta||, s = sum alpha, by ridge problems."""
    z = problem.arguments(np.full(len(problem.y), problem.constant_fit), 0.0)
    alpha = problem.weights * problem.loss.slope(z)
    moment = (problem.y * alpha) @ problem.x
    half = problem.x * np.sqrt(problem.weights * problem.loss.curvature(z))[:, None]
    gram = half.T @ half
    bend = float(moment @ gram @ moment)
    if not bend > 0:
        return None
    # The size of the best multiple of m stands in for that of theta, then that of the ridge's.
    theta = moment * float(moment @ moment) / bend
    for _ in range(2):
        size = max(float(np.linalg.norm(problem.radii * theta)), 1e-300)
        lifted = gram.copy()
        ridge = problem.l2 + float(alpha.sum()) * problem.radii**2 / size
        lifted.ravel()[:: len(gram) + 1] += ridge
        factor, info = dpotrf(lifted, lower=1, overwrite_a=1)
        if info:
            return None
        theta = dpotrs(factor, moment, lower=1)[0]
    return theta
