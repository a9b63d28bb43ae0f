"""What `sparse_recovery` measures of one estimate: the quantities in the proof of Theorem 9."""

from typing import Literal

import numpy as np
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from ..... import lab, linear
from .....threats import Ball
from ... import theory
from ...data import LinearModel, SparseVector

NORM2, DECAY, GAP = 10.0, 0.7, 1e-8
RADII = {"l2": 0.3, "linf": 0.1}
Part = Literal["rate", "multiple", "sparsity", "dense", "tuned", "surrogate"]
RANDOM, FLAT = 60, 10
"""Directions of the cone: at random, and such that X'X/n is small in them."""
WIDTH = 3.0
"""c of Lemma 4's cone, ||error off S||_1 <= c ||error on S||_1."""


class Case(lab.Case):
    part: Part
    n: PositiveInt
    d: PositiveInt = 500
    s: PositiveInt = 10
    norm: Literal["l2", "linf"] = "l2"
    constant: NonNegativeFloat
    """lambda in units of v sqrt(s log d/n), or of k where the part is "multiple" or "sparsity"."""
    sigma2: PositiveFloat = 1.0
    truth: Literal["equal", "decaying"] = "equal"
    """theta0 has s equal entries, or s entries like 0.7^j; its length is the same."""
    share: NonNegativeFloat = 0.0
    """xi = v^2 share/sqrt(n), and lambda is at least xi log(n)/v."""

    @property
    def cost(self) -> float:
        slow = 15 if self.share else 1
        return self.replicates * (0.05 + slow * self.n * min(self.n, self.d) * self.d / 2e9)

    @property
    def law(self) -> LinearModel:
        if self.truth == "decaying":
            entries = DECAY ** np.arange(self.s)
            theta0 = tuple((np.sqrt(NORM2) * entries / np.linalg.norm(entries)).tolist())
            return LinearModel(n=self.n, d=self.d, theta0=theta0, sigma2=self.sigma2)
        value = float(np.sqrt(NORM2 / self.s))
        return LinearModel(
            n=self.n, d=self.d, theta0=SparseVector(k=self.s, value=value), sigma2=self.sigma2
        )

    @property
    def ball(self) -> Ball:
        return Ball(norm=self.norm, radius=RADII[self.norm])

    @property
    def xi(self) -> float:
        return self.law.v2 * self.share / float(np.sqrt(self.n))


def measured(case: Case, seed: int, x: np.ndarray, y: np.ndarray, star: np.ndarray) -> dict:
    """One row of the experiment's table: the estimate on these samples, against theta*."""
    eps, law = case.ball.radius, case.law
    k = theory.cone(np.zeros_like(star), star, x, y, eps, 0.0, case.norm).noise
    penalty = theory.lasso_lambda(
        case.n, case.d, case.s, law.v2, case.xi, constant=case.constant or 1.0
    )
    if case.part in ("multiple", "sparsity"):
        penalty = case.constant * k
    elif case.constant == 0:
        penalty = 0.0
    gap = residual = None
    if case.share:
        found = theory.surrogate_lasso(x, y, eps, penalty, case.xi)
        theta, residual = found.theta, found.residual / penalty
    else:
        found = linear.solve_linear(x, y, eps, case.norm, l1=penalty, fit_intercept=False, tol=GAP)
        theta, gap = found.coef, found.relative_gap
    cone = theory.cone(theta, star, x, y, eps, penalty, case.norm)
    row = {
        "seed": seed, "theta": theta.tolist(), "penalty": penalty, "k": k, "ratio": cone.ratio,
        "bound": cone.bound, "error": cone.error, "curvature": cone.curvature, "gap": gap,
        "residual": residual,
    }  # fmt: skip
    if case.norm == "l2" and case.part not in ("dense", "tuned", "surrogate"):
        moves = [theta - star, *cone_directions(x, star, cone.bound, seed)]
        row |= _lemmas(moves, star, x, y, eps)
    else:
        row |= dict.fromkeys(("shortfall", "least", "rise", "rise_printed", "corners", "squares"))
    return row


def _lemmas(
    moves: list[np.ndarray], star: np.ndarray, x: np.ndarray, y: np.ndarray, eps: float
) -> dict[str, float]:
    """Lemmas 4 and 5 in several directions: the worst of each."""
    at = (star, x, y, eps)
    rise, printed = np.array([_above_lemma_5(move, *at) for move in moves]).max(axis=0)
    corners, squares = theory.mean_squares(star, x, WIDTH)
    return {
        "shortfall": float(theory.curvature_shortfall(moves, *at).max()),
        "least": float(theory.curvatures(moves, *at).min()),
        "rise": float(rise),
        "rise_printed": float(printed),
        "corners": corners,
        "squares": squares,
    }


def _above_lemma_5(
    move: np.ndarray, star: np.ndarray, x: np.ndarray, y: np.ndarray, eps: float
) -> list[float]:
    """By how much a sample's loss rises above Lemma 5's bound, the most; and above the printed."""
    at = (star + move, star, x, y, eps)
    rise = theory.loss_increase(*at)
    return [
        float((rise - theory.loss_increase_bound(*at, printed)).max()) for printed in (False, True)
    ]


def cone_directions(x: np.ndarray, star: np.ndarray, bound: float, seed: int) -> np.ndarray:
    """Errors in the cone, of three lengths: `RANDOM` of them random on the support, with up to 50
    entries off it, and `FLAT` eigenvectors of X'X/n on such entries, of its smallest eigenvalue.

    Args:
        x: the samples (n, d).
        star: theta* (d,).
        bound: on the l1 length off the support over that on it.
        seed: of the random numbers.
    """
    rng = np.random.default_rng([seed, len(star)])
    support, off = np.flatnonzero(star), np.flatnonzero(star == 0)
    widest = min(bound, 10.0)
    moves = np.zeros((RANDOM + FLAT, len(star)))
    for i, move in enumerate(moves):
        some = rng.choice(off, size=rng.integers(1, min(50, len(off))), replace=False)
        if i < RANDOM:
            move[support] = rng.normal(size=len(support)) if i % 5 else (-1) ** i * star[support]
            away = rng.normal(size=len(some))
            reach = widest * rng.uniform() * np.abs(move[support]).sum()
            move[some] = reach * away / np.abs(away).sum()
        else:
            both = np.concatenate([support, some])
            move[both] = np.linalg.eigh(x[:, both].T @ x[:, both]).eigenvectors[:, 0]
            excess = np.abs(move[some]).sum() / (widest * np.abs(move[support]).sum())
            move[some] /= max(excess, 1.0)
        move *= (0.03, 0.3, 1.0)[i % 3] * np.linalg.norm(star) / np.linalg.norm(move)
    return moves


def population_bias(case: Case, star: np.ndarray) -> float:
    """The largest entry of the gradient of R_{L,xi} at theta*, by a central difference.

    cov = I, so that theta* lies along theta0 and so does the gradient.
    """
    length = float(np.linalg.norm(star))
    step, unit, law = 1e-5, star / length, case.law
    at = (law.theta0_vector(), law.sigma2, case.ball.radius, case.xi)
    ends = [theory.surrogate_risk((length + sign * step) * unit, *at) for sign in (1, -1)]
    return float(abs(ends[0] - ends[1]) / (2 * step) * np.abs(unit).max())
