"""The least RKHS norm that meets finitely many demands: a quadratic program, solved by clarabel."""

from typing import Literal, NamedTuple

import clarabel  # compiled, without types: hence the three comments below
import numpy as np
from scipy import sparse

from ....core.checks import Array, ArrayLike, Scalar, finite, scalar
from ....core.errors import AdvlabError

Status = Literal["solved", "infeasible", "unsolved"]
CUT = 1e-11
"""Eigenvalues of the Gram matrix below this share of the largest are rounding."""


class LeastNorm(NamedTuple):
    """Coefficients a of g = sum_t a_t K(z_t, .), its norm, and how the solver ended.

    Without a solution coefficients are NaN, and the norm of an infeasible program is infinite.
    """

    coefficients: Array
    norm: float
    status: Status


def least_norm(gram: ArrayLike, y: ArrayLike, eps: Scalar) -> LeastNorm:
    """min ||g||_H subject to |g(z_t) - y_t| <= eps.

    With gram = F F' the program is min |b|^2 subject to |F b - y| <= eps, which is well conditioned
    where the Gram matrix is not; its multipliers are the coefficients.

    Args:
        gram: K(z_s, z_t).
        y: the targets.
        eps: how far g may be from them.
    """
    matrix, target, width = finite("gram", gram), finite("y", y), scalar("eps", eps)
    if target.ndim != 1 or matrix.shape != (len(target), len(target)):
        raise AdvlabError(
            "a square Gram matrix and as many targets", f"{matrix.shape} and {target.shape}"
        )
    status, multipliers = _program(gram_factor(matrix), target, width)
    if status != "solved":
        nothing = np.full(len(target), np.nan)
        return LeastNorm(nothing, np.inf if status == "infeasible" else np.nan, status)
    above, below = np.split(multipliers, 2)
    a = below - above
    a[np.abs(a) < 1e-9 * np.abs(a).max(initial=0)] = 0.0
    return LeastNorm(a, float(np.sqrt(max(a @ matrix @ a, 0.0))), status)


def gram_factor(matrix: Array) -> Array:
    """F with F F' = K up to rounding; its columns are orthogonal."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > CUT * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def _program(factor: Array, y: Array, eps: float) -> tuple[Status, Array]:
    """Status and multipliers of min |b|^2/2 subject to |F b - y| <= eps."""
    rows = np.vstack([factor, -factor])
    found = _solve(np.ones(factor.shape[1]), np.zeros(factor.shape[1]), rows, y, eps)
    name = str(found.status)
    if name in ("Solved", "AlmostSolved"):
        return "solved", np.array(found.z)
    if "PrimalInfeasible" in name or least_error(factor, y) > eps * (1 + 1e-6) + 1e-9:
        return "infeasible", np.array([])
    return "unsolved", np.array([])


def least_error(factor: Array, y: Array) -> float:
    """min_b max |F b - y|: always feasible, so it answers where the first program breaks down.

    Args:
        factor: F with F F' the Gram matrix.
        y: the targets.
    """
    rows = np.column_stack([np.vstack([factor, -factor]), -np.ones(2 * len(y))])
    cost = np.r_[np.zeros(factor.shape[1]), 1.0]
    found = _solve(np.zeros(len(cost)), cost, rows, y, 0.0)
    return float(found.x[-1]) if str(found.status) in ("Solved", "AlmostSolved") else -np.inf


def _solve(curvature: Array, cost: Array, rows: Array, y: Array, eps: float):
    settings = clarabel.DefaultSettings()  # pyright: ignore[reportAttributeAccessIssue]
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
    bounds = np.r_[y + eps, eps - y]
    cone = clarabel.NonnegativeConeT(len(bounds))  # pyright: ignore[reportAttributeAccessIssue]
    solver = clarabel.DefaultSolver(  # pyright: ignore[reportAttributeAccessIssue]
        sparse.csc_matrix(sparse.diags(curvature)),
        cost,
        sparse.csc_matrix(rows),
        bounds,
        [cone],
        settings,
    )
    return solver.solve()
