"""The solution on a guessed face, exactly, and the next guess: a primal-dual active set method.

A face says which features are zero, which are at the bound of an l-infinity norm, which samples sit
at the kink of the loss and on which side the others are. On a face the problem is smooth with
linear equations, so Newton's method on its KKT system solves it to rounding: zeros are exact.
Signs that come out wrong name the next face.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf, dpotrs  # type: ignore[attr-defined]

from ...core.checks import Array
from .certificate import DualPoint, lower_bound
from .interior_point import Iterate
from .problem import LinearProblem, is_sparse


@dataclass(frozen=True)
class Face:
    """Args:
    sign: (d,) of theta; 0 holds a feature at zero.
    bound: (d,), the sign of features at the l-infinity bound, else 0.
    kink: (n,), samples at the kink.
    side: (n,), the sign of the residual; for the hinge 1 where the margin is below 1, else 0.
    """

    sign: Array
    bound: Array
    kink: np.ndarray
    side: Array

    def same(self, other: "Face") -> bool:
        return (
            np.array_equal(self.sign, other.sign)
            and np.array_equal(self.bound, other.bound)
            and np.array_equal(self.kink, other.kink)
            and np.array_equal(self.side[~self.kink], other.side[~other.kink])
        )


@dataclass(frozen=True)
class Vertex:
    """What a face gives: a model, its dual point and the bracket of its objective."""

    theta: Array
    b: float
    point: DualPoint
    value: float
    least: float
    face: Face
    step: Any = None
    """Where `squared_faces` ended, for the next radius of a path."""

    @property
    def gap(self) -> float:
        return max(self.value - self.least, 0.0)


def held_at_zero(problem: LinearProblem) -> np.ndarray:
    """Features that can be exactly zero at the optimum: those with an l1 term."""
    found = problem.l1 > 0
    if problem.attacked and problem.dual == 1:
        found = found | (problem.radii > 0)
    return found


def face_of(problem: LinearProblem, at: Iterate) -> Face:
    """The face that an interior point is close to."""
    d = len(at.theta)
    sign = np.sign(at.theta)
    sign[sign == 0] = 1.0
    bound = np.zeros(d)
    if problem.attacked and np.isinf(problem.dual):
        bound = np.where(at.support, 0.0, sign)
    else:
        sign = np.where(_off_zero(problem, at), sign, 0.0)
    side = _sides(problem, at.theta, at.b, at.t)
    return Face(sign, bound, at.kinked & has_kinks(problem), side)


def _off_zero(problem: LinearProblem, at: Iterate) -> np.ndarray:
    """Features off zero, in a number that the samples at the kink allow.

    Equations of the kinks need as many features; in a linear programme (no curvature) a vertex has
    no more than that either. So a few are added, the largest, or left out, the smallest.
    """
    can_vanish = held_at_zero(problem)
    off = at.support | ~can_vanish
    if not has_kinks(problem):
        return off
    lack = int(at.kinked.sum()) - problem.intercept - int(off.sum())
    linear = not problem.loss.smooth and not problem.loss.curve and not problem.l2.any()
    if lack == 0 or abs(lack) > 0.1 * len(problem.y) or (lack < 0 and not linear):
        return off
    off = off.copy()
    moving = np.flatnonzero(~off if lack > 0 else off & can_vanish)
    order = np.argsort(np.abs(at.theta[moving]))
    off[moving[order[-lack:] if lack > 0 else order[:-lack]]] = lack > 0
    return off


def has_kinks(problem: LinearProblem) -> bool:
    """A squared residual has no kink where no attack is added to its size."""
    return problem.attacked or not problem.loss.curve


def face_at(problem: LinearProblem, theta: Array, b: float, tolerance: float = 1e-9) -> Face:
    """The face of a model that was found before."""
    sign = np.where(held_at_zero(problem), np.sign(theta), np.where(theta < 0, -1.0, 1.0))
    attack = problem.attack(theta)
    bound = np.zeros(len(theta))
    if problem.attacked and np.isinf(problem.dual):
        bound = np.where(problem.radii * np.abs(theta) >= attack * (1 - tolerance), sign, 0.0)
    scores = problem.scores(theta, b)
    if problem.loss.smooth or not has_kinks(problem):
        kink = np.zeros(len(problem.y), dtype=bool)
    elif problem.loss.classifies:
        kink = np.abs(problem.arguments(scores, attack) - 1) <= tolerance
    else:
        scale = max(float(np.abs(problem.y).max(initial=0.0)), 1e-300)
        kink = np.abs(problem.y - scores) <= tolerance * scale
    return Face(sign, bound, kink, _sides(problem, theta, b, attack))


def _sides(problem: LinearProblem, theta: Array, b: float, attack: float) -> Array:
    scores = problem.scores(theta, b)
    if problem.loss.classifies:
        return (problem.arguments(scores, attack) < 1).astype(np.float64)
    return np.where(problem.y >= scores, 1.0, -1.0)


class _OnFace:
    """The smooth problem in the coordinates of a face: theta = lift(xi)."""

    def __init__(self, problem: LinearProblem, face: Face):
        self.p, self.face = problem, face
        self.inner = np.flatnonzero((face.sign != 0) & (face.bound == 0))
        self.at_bound = np.flatnonzero(face.bound)
        self.bounded = bool(len(self.at_bound))
        whole = len(self.inner) == problem.shape[1]
        x = problem.x if whole else problem.x[:, self.inner]
        x = x.toarray() if is_sparse(x) else x
        sign = face.sign[self.inner]
        self.l1 = problem.l1[self.inner] * sign
        self.l2 = problem.l2[self.inner]
        self.round = problem.attacked and problem.dual not in (1.0, np.inf)
        self.radii = problem.radii[self.inner]
        if problem.attacked and problem.dual == 1:
            self.slope = self.radii * sign
        else:
            self.slope = np.zeros(len(self.inner))
        if self.bounded:
            self.lift = face.bound[self.at_bound] / problem.radii[self.at_bound]
            column = np.asarray(problem.x[:, self.at_bound] @ self.lift).reshape(-1, 1)
            x = np.hstack([x, column])
            self.l1 = np.append(self.l1, problem.l1[self.at_bound] @ np.abs(self.lift))
            self.l2 = np.append(self.l2, problem.l2[self.at_bound] @ self.lift**2)
            self.slope = np.append(self.slope, 1.0)
        if problem.intercept and whole and "with ones" in problem.shared:
            self.x = problem.shared["with ones"]
        else:
            self.x = np.hstack([x, np.ones((len(x), 1))]) if problem.intercept else x
            if whole and not self.bounded:
                problem.shared["with ones"] = self.x
        pad = np.zeros(int(problem.intercept))
        self.l1, self.l2, self.slope = (
            np.append(one, pad) for one in (self.l1, self.l2, self.slope)
        )

    def start(self, theta: Array, b: float) -> Array:
        parts = [theta[self.inner]]
        if self.bounded:
            parts.append(np.array([np.mean(np.abs(theta[self.at_bound] / self.lift))]))
        if self.p.intercept:
            parts.append(np.array([b]))
        return np.concatenate(parts)

    def model(self, xi: Array) -> tuple[Array, float]:
        theta = np.zeros(len(self.face.sign))
        theta[self.inner] = xi[: len(self.inner)]
        if self.bounded:
            theta[self.at_bound] = self.lift * xi[len(self.inner)]
        return theta, float(xi[-1]) if self.p.intercept else 0.0

    def attack(self, xi: Array) -> tuple[float, Array, Array | None]:
        """N, its gradient and, for the l2 norm, its Hessian."""
        if not self.round:
            return float(self.slope @ xi), self.slope, None
        k = len(self.inner)
        scaled = self.radii * xi[:k]
        size = max(float(np.sqrt(scaled @ scaled)), 1e-300)
        slope = np.zeros(len(xi))
        slope[:k] = self.radii * scaled / size
        bend = np.zeros((len(xi), len(xi)))
        bend[:k, :k] = -np.outer(slope[:k], slope[:k])
        bend[np.arange(k), np.arange(k)] += self.radii**2
        return size, slope, bend / size

    def newton(self, xi: Array, multipliers: Array) -> tuple[Array, Array, Array, Array]:
        """One step on the KKT system: xi, the kinked multipliers, and mu and alpha of all."""
        p, face, loss, w = self.p, self.face, self.p.loss, self.p.weights
        size, slope, bend = self.attack(xi)
        f = self.x @ xi
        kink = face.kink
        if loss.smooth:
            z = p.y * f - size
            alpha = w * loss.slope(z)
            curve = w * loss.curvature(z)
            sign = p.y
        elif loss.classifies:
            alpha, curve, sign = w * face.side, np.zeros(len(w)), p.y
        else:
            sign = face.side
            z = np.where(kink, size, sign * (p.y - f) + size)
            alpha = w * loss.curve * 2 * z + w * loss.linear
            curve = 2 * w * loss.curve
            if loss.bounded:
                steep = alpha > w * loss.steepest
                alpha = np.where(steep, w * loss.steepest, alpha)
                curve = np.where(steep, 0.0, curve)
        # The argument of the loss has the derivative slope - sign x, or slope at a residual's kink.
        sign = np.where(kink, 0.0, sign) if not loss.classifies else sign
        if loss.classifies:
            alpha = np.where(kink, 0.0, alpha)
            curve = np.where(kink, 0.0, curve)
        total = float(alpha.sum())
        gradient = slope * total - self.x.T @ (sign * alpha) + self.l1 + self.l2 * xi
        hessian = self._curved(curve * np.abs(sign))
        mixed = self.x.T @ (curve * sign)
        mixed = np.outer(mixed, slope)
        hessian += float(curve.sum()) * np.outer(slope, slope) - mixed - mixed.T
        hessian[np.diag_indices_from(hessian)] += self.l2
        equal = self.x[kink]
        if loss.classifies:
            equal = slope - p.y[kink][:, None] * equal
            miss = -(1 - p.y[kink] * f[kink] + size)
            total += float(multipliers.sum())
        else:
            equal = -equal
            miss = -(p.y[kink] - f[kink])
        if bend is not None:
            hessian += total * bend
        step, found = _kkt(hessian, gradient, equal, miss)
        new = xi + step
        # Duals belong to the new point: first order in the step.
        moved = float(slope @ step) - sign * (self.x @ step)
        alpha = alpha + curve * moved
        mu = sign * alpha
        if loss.classifies:
            alpha[kink] = found
            mu[kink] = p.y[kink] * found
        else:
            mu[kink] = found
        return new, found, mu, alpha

    def _curved(self, curve: Array) -> Array:
        """X' diag(curve) X; from the Gram matrix where curve is 2 w but for a few samples."""
        p = self.p
        whole = 2 * p.weights * p.loss.curve
        off = np.flatnonzero(curve != whole)
        gram = None if self.bounded or 3 * len(off) > len(curve) else p.weighted_gram
        if gram is None or not p.loss.curve:
            half = self.x * np.sqrt(curve)[:, None]
            return half.T @ half
        kept = np.append(self.inner, p.shape[1]) if p.intercept else self.inner
        block = self.x[off] * np.sqrt(whole[off] - curve[off])[:, None]
        return 2 * p.loss.curve * gram[np.ix_(kept, kept)] - block.T @ block


def _kkt(hessian: Array, gradient: Array, equal: Array, miss: Array) -> tuple[Array, Array]:
    """min gradient'step + step'hessian step/2 subject to equal step = miss, and multipliers.

    A small proximal term keeps the matrix regular where a face is too large.
    """
    k, m = len(gradient), len(miss)
    if k + m == 0:
        return gradient, miss
    if m == 0:
        lifted = hessian.copy()
        lifted.ravel()[:: k + 1] += 1e-13 * float(np.trace(hessian)) / k
        factor, info = dpotrf(lifted, lower=1, overwrite_a=1)
        if info == 0:
            return dpotrs(factor, -gradient, lower=1)[0], miss
    lengths = np.sqrt((equal**2).sum(axis=1))
    unit = float(np.trace(hessian)) / max(k, 1)
    unit = unit if unit > 0 else float(lengths.mean()) if m else 1.0
    # Equations in the units of the Hessian, so that no side drowns in the other's rounding.
    rows = np.where(lengths > 0, lengths / unit, 1.0)
    matrix = np.zeros((k + m, k + m))
    matrix[:k, :k] = hessian
    matrix[k:, :k] = equal / rows[:, None]
    matrix[:k, k:] = matrix[k:, :k].T
    right = np.concatenate([-gradient, miss / rows])
    diagonal = np.arange(k + m)
    lift = np.concatenate([np.full(k, 1e-13 * unit), np.full(m, -1e-15 * unit)])
    matrix[diagonal, diagonal] += lift
    factor, pivots, info = dgetrf(matrix)
    if info == 0:
        found = dgetrs(factor, pivots, right)[0]
        if m:
            rest = right - matrix @ found + lift * found
            found = found + dgetrs(factor, pivots, rest)[0]
    else:
        found = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return found[:k], found[k:] / rows


def solve_face(
    problem: LinearProblem, face: Face, theta: Array, b: float, steps: int,
    inner: DualPoint | None = None,
) -> Vertex | None:  # fmt: skip
    """Newton's method on a face from (theta, b); None where it fails."""
    free = int(((face.sign != 0) & (face.bound == 0)).sum()) + bool(face.bound.any())
    kinks = int(face.kink.sum())
    if kinks > free + problem.intercept or free + kinks > 4000:
        return None
    on = _OnFace(problem, face)
    xi = on.start(theta, b)
    multipliers = np.zeros(int(face.kink.sum()))
    if problem.loss.classifies and not problem.loss.smooth:
        multipliers = problem.weights[face.kink] / 2
    once = not on.round and not problem.loss.smooth and not problem.loss.bounded
    mu = alpha = None
    for _ in range(1 if once else steps):
        try:
            new, multipliers, mu, alpha = on.newton(xi, multipliers)
        except (np.linalg.LinAlgError, FloatingPointError):
            return None
        if not np.isfinite(new).all():
            return None
        if problem.loss.smooth:
            new = _shortened(problem, on, xi, new)
        small = float(np.abs(new - xi).max(initial=0.0))
        xi = new
        if small <= 1e-11 * (1 + float(np.abs(xi).max(initial=0.0))):
            break
    if mu is None or alpha is None:
        return None
    model, intercept = on.model(xi)
    point = DualPoint(mu, alpha)
    value = problem.objective(model, intercept)
    return Vertex(model, intercept, point, value, lower_bound(problem, point, model, inner), face)


def _shortened(problem: LinearProblem, on: _OnFace, xi: Array, new: Array) -> Array:
    """Halve a step of Newton's method until the objective does not rise."""
    here = problem.objective(*on.model(xi))
    for _ in range(12):
        if problem.objective(*on.model(new)) <= here * (1 + 1e-12):
            return new
        new = (xi + new) / 2
    return new


def next_face(problem: LinearProblem, at: Vertex, crossed: np.ndarray) -> Face:
    """The face that the signs of a solution name.

    A sample found on the wrong side goes to the kink. Where there are more of these than a face can
    hold they change sides the first time, and go to the kink the second: `crossed` remembers.
    """
    loss, face, mu, alpha = problem.loss, at.face, at.point.mu, at.point.alpha
    total = float(alpha.sum())
    g = np.asarray(problem.x.T @ mu) - problem.l2 * at.theta
    sign, bound = face.sign.copy(), face.bound.copy()
    can_vanish = held_at_zero(problem)
    cut = problem.l1 + (total * problem.radii if problem.attacked and problem.dual == 1 else 0.0)
    flipped = can_vanish & (sign != 0) & (np.sign(at.theta) != sign) & (bound == 0)
    enters = (face.sign == 0) & (np.abs(g) > cut * (1 + 1e-12))
    sign[flipped] = 0.0
    sign[enters] = np.sign(g[enters])
    if problem.attacked and np.isinf(problem.dual):
        size = problem.attack(np.where(bound != 0, at.theta, 0.0))
        free = bound == 0
        over = free & (problem.radii * np.abs(at.theta) > size * (1 + 1e-12))
        rest = (g - problem.l1 * sign) * bound
        bound[(rest < 0) & ~free] = 0.0
        bound[over] = np.sign(at.theta[over])
        sign[over] = bound[over]
    kink, side = face.kink.copy(), face.side.copy()
    if loss.smooth:
        return Face(sign, bound, kink, side)
    scores = problem.scores(at.theta, at.b)
    if loss.classifies:
        margin = problem.arguments(scores, problem.attack(at.theta))
        kink[face.kink & ((alpha < 0) | (alpha > problem.weights))] = False
        side[face.kink] = (alpha[face.kink] > problem.weights[face.kink] / 2).astype(np.float64)
        wrong = ~face.kink & ((margin < 1) != (face.side > 0))
        side[wrong] = 1 - side[wrong]
        many = _too_many(problem, kink, wrong, sign, bound)
        kink[wrong & crossed if many else wrong] = True
        crossed |= wrong
        return Face(sign, bound, kink, side)
    leaves = face.kink & (np.abs(mu) > alpha)
    kink[leaves] = False
    side[face.kink] = np.where(mu[face.kink] >= 0, 1.0, -1.0)
    wrong = ~face.kink & (face.side * (problem.y - scores) < 0)
    side[wrong] = -side[wrong]
    if has_kinks(problem):
        many = _too_many(problem, kink, wrong, sign, bound)
        kink[wrong & crossed if many else wrong] = True
        crossed |= wrong
    return Face(sign, bound, kink, side)


def _too_many(problem: LinearProblem, kink, wrong, sign: Array, bound: Array) -> bool:
    free = int(((sign != 0) & (bound == 0)).sum()) + bool(bound.any()) + problem.intercept
    return int(kink.sum() + wrong.sum()) > free


def follow_faces(
    problem: LinearProblem, face: Face, theta: Array, b: float, tolerance: float,
    rounds: int = 8, inner: DualPoint | None = None, newton: int = 6,
) -> Vertex | None:  # fmt: skip
    """The best of some faces in a row, each named by the one before.

    Args:
        problem: q is 1, 2 or infinity.
        face, theta, b: where to begin.
        tolerance: stop at this gap, absolute.
        rounds: at most so many faces.
        inner: see `lower_bound`.
        newton: steps of Newton's method on each face.
    """
    best: Vertex | None = None
    stale, crossed = 0, np.zeros(len(problem.y), dtype=bool)
    for _ in range(rounds):
        found = solve_face(problem, face, theta, b, newton, inner)
        if found is None or not np.isfinite(found.value):
            break
        if best is None or found.gap < best.gap:
            best, stale = found, 0
        else:
            stale += 1
        if best.gap <= tolerance or stale >= 4:
            break
        new = next_face(problem, found, crossed)
        if new.same(face) and problem.loss.curve and not on_curve(problem):
            break
        if new.same(face):
            theta, b = found.theta, found.b
            stale += 1
        face, theta, b = new, found.theta, found.b
    return best


def on_curve(problem: LinearProblem) -> bool:
    """Whether one step of Newton's method is not the whole answer on a face."""
    return problem.loss.smooth or problem.loss.bounded or (problem.attacked and problem.dual == 2)
