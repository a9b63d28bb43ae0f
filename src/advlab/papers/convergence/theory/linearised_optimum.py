"""The best robust loss in B(R) of the linearised network: a cone program, solved by clarabel.

Near its start a wide network is f(W0, z) + sum_h <grad_h f(W0, z), D_h> (Lemma A.6), and then
L_*(D) = mean_i max over z in B(x_i) of sqrt(1 + (f(z) - y_i)^2) - 1 is convex in D. With finitely
many z of each perturbation set its minimum over ||D_h||_F <= R/sqrt(m) is a second-order cone
program, and a lower bound of the minimum with whole sets.
"""

from itertools import pairwise
from typing import NamedTuple

import clarabel  # compiled, without types: hence the comments below
import numpy as np
from scipy import sparse

from ....core.checks import Array, ArrayLike, Scalar, finite, positive, scalar, vector
from ....core.errors import AdvlabError
from .quadratic_program import gram_factor


class LinearisedOptimum(NamedTuple):
    """The least loss, a lower bound of it by duality, and the move that has it.

    `coefficients` (H, Z) are c of D_h = sum_z c_hz grad_h f(W0, z).
    """

    loss: float
    bound: float
    coefficients: Array


def linearised_optimum(
    grams: ArrayLike, start: ArrayLike, owner: ArrayLike, y: ArrayLike, radius: Scalar
) -> LinearisedOptimum:
    """min over ||D_h|| <= radius of mean_i max_{z of i} sqrt(1 + (f_D(z) - y_i)^2) - 1.

    Args:
        grams: <grad_h f(z), grad_h f(z')> of each layer (H, Z, Z).
        start: f(W0, z).
        owner: the number i of the perturbation set that each z is of.
        y: the label of each set.
        radius: of each layer's ball, R/sqrt(m).
    """
    matrices, f, labels = finite("grams", grams), vector("start", start), vector("y", y)
    sets, limit = np.asarray(owner), float(positive("radius", scalar("radius", radius)))
    if matrices.ndim != 3 or matrices.shape[1:] != (len(f), len(f)) or sets.shape != f.shape:
        raise AdvlabError(
            "a Gram matrix per layer, and an f and an owner per point",
            f"{matrices.shape}, {f.shape} and {sets.shape}",
        )
    # In units of the radius: theta_h with D_h = limit theta_h, |theta_h| <= 1.
    factors = [limit * gram_factor(matrix) for matrix in matrices]
    found = _solve(factors, f - labels[sets], sets, len(labels))
    if str(found.status) not in ("Solved", "AlmostSolved"):
        raise AdvlabError("a cone program that clarabel solves", str(found.status))
    at = np.cumsum([0, *(one.shape[1] for one in factors)])
    thetas = [np.array(found.x[a:b]) for a, b in pairwise(at)]
    # Columns of a factor F are orthogonal: F'c = theta has the solution c = F (F'F)^-1 theta.
    c = [limit**2 * F @ (theta / (F**2).sum(0)) for F, theta in zip(factors, thetas, strict=True)]
    return LinearisedOptimum(found.obj_val - 1, found.obj_val_dual - 1, np.array(c))


def _solve(factors: list[Array], residual: Array, owner: np.ndarray, n: int):
    """Variables (theta_1, ..., theta_H, s_1, ..., s_n), s_i = 1 + the loss of set i."""
    sizes = [one.shape[1] for one in factors]
    total, points = sum(sizes), len(residual)
    cones, blocks, offsets = [], [], []
    # (s_i, 1, f_D(z) - y_i) in the cone, for each z; clarabel wants b - A x in it.
    rows = np.zeros((points, 3, total + n))
    rows[np.arange(points), 0, total + owner] = -1
    rows[:, 2, :total] = -np.concatenate(factors, 1)
    blocks.append(rows.reshape(3 * points, -1))
    offsets.append(np.column_stack([np.zeros(points), np.ones(points), residual]).ravel())
    cones += [clarabel.SecondOrderConeT(3)] * points  # pyright: ignore[reportAttributeAccessIssue]
    for first, size in zip(np.cumsum(sizes) - sizes, sizes, strict=True):
        ball = np.zeros((size + 1, total + n))
        ball[1:, first : first + size] = -np.eye(size)
        blocks.append(ball)
        offsets.append(np.r_[1.0, np.zeros(size)])
        cones.append(clarabel.SecondOrderConeT(size + 1))  # pyright: ignore[reportAttributeAccessIssue]
    settings = clarabel.DefaultSettings()  # pyright: ignore[reportAttributeAccessIssue]
    settings.verbose, settings.max_threads = False, 1
    cost = np.r_[np.zeros(total), np.full(n, 1 / n)]
    return clarabel.DefaultSolver(  # pyright: ignore[reportAttributeAccessIssue]
        sparse.csc_matrix((total + n, total + n)), cost, sparse.csc_matrix(np.vstack(blocks)),
        np.concatenate(offsets), cones, settings,
    ).solve()  # fmt: skip
