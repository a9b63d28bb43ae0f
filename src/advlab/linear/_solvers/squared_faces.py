"""Faces of the squared loss, followed with one Gram matrix: the fast way for the commonest problem.

With t = N(theta), signs s of the residuals (0 at the samples K that are fitted exactly) and
p = X'Ws the objective on a face is

    F = sum_i w_i r_i^2 + 2 t s'Wr + t^2 + l1'|theta| + l2'theta^2/2   subject to r_K = 0,

whose Hessian 2X'WX - 2(pg' + gp') + 2gg' + 2(s'Wr + t) N'' + diag(l2), g = N', differs from a
matrix that is computed once by a few outer products. So a step costs a Cholesky factor of the size
of the face and two products with X. For q = 1 it is the solution on the face; for q = 2 it is a
step of Newton's method, and faces change between steps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs  # type: ignore[attr-defined]

from ...core.checks import Array
from .active_face import Face, Vertex
from .certificate import DualPoint, lower_bound
from .gram_samples import shared_samples
from .problem import LinearProblem, is_sparse


def has_squared_faces(problem: LinearProblem) -> bool:
    """Dense samples, squared loss, an attack in linf or l2."""
    loss = problem.loss
    squared = bool(loss.curve) and not loss.bounded
    return squared and problem.attacked and problem.dual in (1, 2) and not is_sparse(problem.x)


@dataclass(frozen=True)
class FaceGuess:
    """A face with the intercept as the last column: signs of xi, signs of the residuals.

    A sign of 0 holds a feature at zero, or a sample at the kink.
    """

    sign: Array
    side: Array


@dataclass(frozen=True)
class FaceStep:
    """Where the equations of a face lead: model, residuals, attack, multipliers, X'mu - l2 xi."""

    guess: FaceGuess
    held: np.ndarray
    """The samples at the kink."""
    xi: Array
    r: Array
    size: float
    mu: Array
    alpha: Array
    image: Array | None
    moved: float
    reach: float
    """The sum of the radii: which attack it was."""


class SquaredFaces:
    """Steps from face to face.

    Args:
        problem: see `has_squared_faces`.
    """

    def __init__(self, problem: LinearProblem):
        self.p = problem
        self.data = shared_samples(problem)
        pad = np.zeros(int(problem.intercept))
        self.radii = np.concatenate([problem.radii, pad])
        self.reach = float(problem.radii.sum())
        self.round = problem.dual == 2
        self.penalised = problem.penalised
        self.l1 = self.l2 = np.zeros(len(self.radii))
        if self.penalised:
            self.l1, self.l2 = np.append(problem.l1, pad), np.append(problem.l2, pad)
        self.can_vanish = self.l1 > 0 if self.round else (self.l1 > 0) | (self.radii > 0)
        self.has_zeros = not self.round or self.penalised
        self.pulled: tuple[Array, Array] | None = None
        self.shown: tuple[Any, ...] | None = None

    def _pull(self, side: Array) -> Array:
        """X'Ws, from that of the face before where few sides differ."""
        w, x = self.p.weights, self.data.x
        if self.pulled is None:
            pull = (w * side) @ x
        else:
            other, pull = self.pulled
            changed = np.flatnonzero(side != other)
            if 4 * len(changed) > len(side):
                pull = (w * side) @ x
            elif len(changed):
                pull = pull + (w[changed] * (side[changed] - other[changed])) @ x[changed]
        self.pulled = side, pull
        return pull

    def _columns(self, sign: Array) -> tuple[Any, ...]:
        """What a set of features has: columns, radii, signs, Gram matrix, moments, a small lift."""
        if self.shown is None or self.shown[0] is not sign:
            kept = slice(None) if sign.all() else sign.nonzero()[0]
            gram = self.data.gram_of(kept)
            lift = 1e-14 * float(gram.trace()) / max(len(gram), 1)
            self.shown = (
                sign, kept, self.radii[kept], sign[kept], gram, self.data.moment[kept], lift,
            )  # fmt: skip
        return self.shown[1:]

    def step(self, xi: Array, guess: FaceGuess, width: float = 0.0) -> FaceStep | None:
        """The solution of the KKT system; None where it has none.

        With a width the kinks are not held: |r| is rounded to (r^2/width + width)/2 inside it.
        """
        p, w, x, s = self.p, self.p.weights, self.data.x, guess.side
        kept, radii, signs, gram, moment, lift = self._columns(guess.sign)
        z = xi[kept]
        if not len(z):
            return None
        gradient = gram @ z - moment
        if self.round:
            scaled = radii * z
            t = max(float(np.sqrt(scaled @ scaled)), 1e-300)
            g = radii * scaled / t
        else:
            g = radii * signs
            t = max(float(g @ z), 0.0)
        band = None
        if width:
            r = p.y - x @ xi
            near = np.abs(r) < width
            s = np.where(near, r / width, s)
            pull = ((w * s) @ x)[kept]
            inner = float(w @ np.where(near, (r * s + width) / 2, np.abs(r)))
            band = near.nonzero()[0]
            held = np.zeros(0, dtype=int)
        else:
            pull = self._pull(s)[kept]
            inner = float((w * s) @ p.y - pull @ z)
            held = (s == 0).nonzero()[0]
        force = 2 * (inner + t)
        gradient += force * g
        gradient -= 2 * t * pull
        # -2(pg' + gp') + 2gg' and, where the norm bends, -force gg'/t: a product and its mirror.
        first = g - 2 * pull
        if self.round:
            first -= force / (2 * t) * g
            lift = lift + force / t * radii**2
        outer = first[:, None] * g
        h = gram + outer
        h += outer.T
        if band is not None:
            rows = _block(x, band, kept) * np.sqrt(2 * t / width * w[band])[:, None]
            h += rows.T @ rows
        if self.penalised:
            lift = lift + self.l2[kept]
            gradient += self.l2[kept] * z + self.l1[kept] * signs
        h.reshape(-1)[:: len(z) + 1] += lift
        equal = np.empty((len(held) + 1, len(z)))
        equal[:-1] = _block(x, held, kept)
        miss = p.y[held] - equal[:-1] @ z
        equal[-1] = -gradient
        solved = _with_equations(h, equal, miss)
        if solved is None:
            return None
        move, multipliers = solved
        moved = float(np.abs(move).max())
        if not np.isfinite(moved):
            return None
        new = np.zeros(len(xi))
        new[kept] = z + move
        r = p.y - x @ new
        scaled = self.radii * new
        size = float(np.sqrt(scaled @ scaled)) if self.round else float(g @ new[kept])
        alpha = self.data.twice * ((np.abs(r) if width else s * r) + size)
        mu = s * alpha
        mu[held] = -multipliers
        image = mu @ x if self.has_zeros else None
        if image is not None and self.penalised:
            image -= self.l2 * new
        return FaceStep(guess, held, new, r, size, mu, alpha, image, moved, self.reach)

    def cut(self, alpha: Array) -> Array:
        """How large |image| can be at a feature that is zero."""
        return self.l1 if self.round else self.l1 + float(alpha.sum()) * self.radii

    def signs(self, at: FaceStep) -> tuple[Array, int]:
        """The signs of xi that a step names, and how many are new."""
        sign = at.guess.sign
        if at.image is None:
            return sign, 0
        flipped = self.can_vanish & (sign * at.xi < 0)
        enters = (sign == 0) & (np.abs(at.image) > self.cut(at.alpha) * (1 + 1e-12))
        changed = int(np.count_nonzero(flipped)) + int(np.count_nonzero(enters))
        if changed:
            sign = np.where(flipped, 0.0, np.where(enters, np.sign(at.image), sign))
        return sign, changed

    def next(self, at: FaceStep, crossed: np.ndarray) -> tuple[FaceGuess, int]:
        """The face that a step names, and how much was wrong.

        A residual with the wrong sign goes to the kink, or across it where it is further away than
        a multiplier can hold it: 2 alpha x'H^{-1}x, whose mean is about 2 t k/n with k features.
        Where more is wrong than half the features can mend, only the worse half of it changes.

        Args:
            at: the step.
            crossed: samples that were on the wrong side before; those of now are added.
        """
        sign, count = self.signs(at)
        side, held, n = at.guess.side, at.held, len(at.r)
        room = int(np.count_nonzero(sign))
        reach = 2 * at.size * room / n
        leaves = held[np.abs(at.mu[held]) > at.alpha[held]]
        wrong = (side * at.r < 0).nonzero()[0]
        changed = len(leaves) + len(wrong)
        if changed > max(room / 2, 2):
            out = np.abs(at.mu[leaves]) / at.alpha[leaves] - 1
            off = np.abs(at.r[wrong]) / (reach / 2)
            level = np.partition(np.concatenate([out, off]), changed // 2)[changed // 2]
            leaves, wrong = leaves[out >= level], wrong[off >= level]
        if changed:
            side = side.copy()
            side[leaves] = np.sign(at.mu[leaves])
            back = -side[wrong]
            side[wrong] = np.where(np.abs(at.r[wrong]) > reach, back, 0.0)
            if n - np.count_nonzero(side) > room:
                # More than a face can hold: to the kink only those that come for the second time.
                side[wrong] = np.where(crossed[wrong], 0.0, back)
            crossed[wrong] = True
        over = n - np.count_nonzero(side) - room
        if over > 0:
            kinks = (side == 0).nonzero()[0]
            last = kinks[np.argsort(np.abs(at.mu[kinks]) / at.alpha[kinks])[-over:]]
            side = side.copy()
            side[last] = np.where(at.mu[last] < 0, -1.0, 1.0)
        return FaceGuess(sign, side), changed + count


def _block(x: Array, rows: np.ndarray, kept: np.ndarray | slice) -> Array:
    return x[rows] if isinstance(kept, slice) else x[rows[:, None], kept]


def _with_equations(h: Array, rows: Array, miss: Array) -> tuple[Array, Array] | None:
    """move and lambda with h move + equal'lambda = right, equal move = miss.

    Args:
        h: overwritten.
        rows: those of `equal`, and `right` as the last; overwritten.
        miss: one per equation.
    """
    factor, info = dpotrf(h.T, lower=1, clean=0, overwrite_a=1)
    if info:
        return None
    if not len(miss):
        return dpotrs(factor, rows[0], lower=1)[0], miss
    both = dtrtrs(factor, rows.T, lower=1, overwrite_b=1)[0]
    small = both.T @ both
    inner, info = dpotrf(small[:-1, :-1], lower=1, clean=0)
    if info:
        return None
    found = dpotrs(inner, small[:-1, -1] - miss, lower=1)[0]
    return dtrtrs(factor, both[:, -1] - both[:, :-1] @ found, lower=1, trans=1)[0], found


def follow_squared(
    problem: LinearProblem, face: Face, theta: Array, b: float, tolerance: float, rounds: int = 16
) -> Vertex | None:
    """The vertex whose face names itself; None where none is found.

    Args:
        problem: see `has_squared_faces`.
        face, theta, b: where to begin.
        tolerance: the absolute gap at which Newton's method has done enough.
        rounds: at most so many steps.
    """
    ones = np.ones(int(problem.intercept))
    side = np.where(face.kink, 0.0, face.side)
    guess = FaceGuess(np.append(face.sign, ones), side)
    return follow_guess(SquaredFaces(problem), guess, np.append(theta, b * ones), tolerance, rounds)


def follow_guess(
    faces: SquaredFaces, guess: FaceGuess, xi: Array, tolerance: float, rounds: int,
    patience: int = 4,
) -> Vertex | None:  # fmt: skip
    """`follow_squared` from a guess; more than `patience` steps without progress are too many."""
    n = len(guess.side)
    crossed = np.zeros(n, dtype=bool)
    fewest, stale = np.inf, 0
    for _ in range(rounds):
        room, kinks = np.count_nonzero(guess.sign), n - np.count_nonzero(guess.side)
        if kinks > room or (not faces.data.whole and room > 1.2 * n):
            return None
        at = faces.step(xi, guess)
        if at is None:
            return None
        xi = at.xi
        guess, count = faces.next(at, crossed)
        if count == 0 and (not faces.round or at.moved <= 3e-3 * float(np.abs(xi).max())):
            vertex = _vertex(faces, at)
            if not faces.round or vertex.gap <= tolerance:
                return vertex
        stale = 0 if count < fewest else stale + 1
        fewest = min(fewest, max(count, 1))
        if stale > patience or count > min(5 + 2 * fewest, n / 4):
            return None
    return None


def zero_step(problem: LinearProblem) -> FaceStep | None:
    """The model without features as a step to start a path from; None where it is none."""
    n, d = problem.shape
    if not has_squared_faces(problem) or problem.dual == 2 or not problem.intercept or d > 10 * n:
        return None
    faces = SquaredFaces(problem)
    xi = np.append(np.zeros(problem.shape[1]), problem.constant_fit)
    r = problem.y - problem.constant_fit
    mu = faces.data.twice * r
    guess = FaceGuess(np.where(faces.can_vanish, 0.0, 1.0), np.where(r < 0, -1.0, 1.0))
    none = np.zeros(0, dtype=int)
    return FaceStep(guess, none, xi, r, 0.0, mu, np.abs(mu), mu @ faces.data.x, 0.0, faces.reach)


def predicted(
    faces: SquaredFaces, now: FaceStep, before: FaceStep | None
) -> tuple[FaceGuess, Array]:
    """The face and model that two solutions for larger radii point to.

    r + c mu says all of a sample: inside c alpha it is at the kink, outside it has a side. It and
    the coefficients are carried on, linearly in the square of the radius.
    """
    here = now.guess, now.xi
    if before is None or not faces.reach < now.reach < before.reach:
        return here
    share = (now.reach**2 - faces.reach**2) / (before.reach**2 - now.reach**2)
    if share > 2:
        return here
    n, sign = len(now.r), now.guess.sign
    xi = now.xi + share * (now.xi - before.xi)
    if now.image is not None and before.image is not None:
        # Cuts have the radii of this problem in them: the others were larger by a common factor.
        old = before.image / (faces.cut(before.alpha) * (before.reach / faces.reach))
        new = now.image / (faces.cut(now.alpha) * (now.reach / faces.reach))
        ratio = new + share * (new - old)
        sign = sign.copy()
        sign[faces.can_vanish & (xi * sign < 0)] = 0.0
        enters = (now.guess.sign == 0) & (np.abs(ratio) > 1)
        sign[enters] = np.sign(ratio[enters])
        xi[sign == 0] = 0.0
    room = np.count_nonzero(sign)
    c = room / (n * faces.data.twice)
    v = now.r + c * now.mu
    v += share * (v - before.r - c * before.mu)
    size = max(now.size + share * (now.size - before.size), 0.5 * now.size)
    side = np.where(np.abs(v) <= room / n * size, 0.0, np.sign(v))
    if n - np.count_nonzero(side) > room:
        return here
    return FaceGuess(sign, side), xi


def _vertex(faces: SquaredFaces, at: FaceStep) -> Vertex:
    p, guess = faces.p, at.guess
    d = p.shape[1]
    theta, b = at.xi[:d], float(at.xi[-1]) if p.intercept else 0.0
    point = DualPoint(at.mu, at.alpha)
    face = Face(guess.sign[:d], np.zeros(d), guess.side == 0, guess.side)
    value = float(p.weights @ (np.abs(at.r) + at.size) ** 2)
    value += p.penalty(theta) if faces.penalised else 0.0
    return Vertex(theta, b, point, value, lower_bound(p, point, theta), face, at)
