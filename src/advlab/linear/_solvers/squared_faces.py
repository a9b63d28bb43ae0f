"""Faces of the squared loss, followed with one Gram matrix: the fast way for the commonest problem.

With t = N(theta), signs s of the residuals (0 at the samples K that are fitted exactly) and
p = X'Ws the objective on a face is

    F = sum_i w_i r_i^2 + 2 t s'Wr + t^2 + l1'|theta| + l2'theta^2/2   subject to r_K = 0,

whose Hessian 2X'WX - 2(pg' + gp') + 2gg' + 2(s'Wr + t) N'' + diag(l2), g = N', differs from a
matrix that is computed once by a few outer products. So a step costs a Cholesky factor of the size
of the face and some products with X. For q = 1 it is the solution on the face; for q = 2 it is a
step of Newton's method, and faces change between steps.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs  # type: ignore[attr-defined]

from ...core.checks import Array
from .active_face import Face, Vertex
from .certificate import DualPoint, lower_bound
from .problem import LinearProblem, is_sparse


def has_squared_faces(problem: LinearProblem) -> bool:
    """Dense samples, squared loss, an attack in linf or l2."""
    loss = problem.loss
    squared = bool(loss.curve) and not loss.bounded
    return squared and problem.attacked and problem.dual in (1, 2) and not is_sparse(problem.x)


@dataclass(frozen=True)
class GramSamples:
    """What problems with the same samples share: [X, 1], and 2X'WX where it is worth its room."""

    x: Array
    gram: Array | None


def shared_samples(problem: LinearProblem) -> GramSamples:
    found = problem.shared.get("samples")
    if found is None:
        n, d = problem.shape
        x = np.hstack([problem.x, np.ones((n, 1))]) if problem.intercept else problem.x
        gram = None
        if d <= min(2 * n, 2000):
            half = x * np.sqrt(2 * problem.weights)[:, None]
            gram = half.T @ half
        found = problem.shared["samples"] = GramSamples(x, gram)
    return found


@dataclass(frozen=True)
class FaceStep:
    """Where the equations of a face lead: model, residuals, multipliers and how far it was."""

    xi: Array
    r: Array
    mu: Array
    alpha: Array
    moved: float


@dataclass(frozen=True)
class FaceGuess:
    """A face with the intercept as the last column: signs of xi, samples at the kink, sides."""

    sign: Array
    kink: np.ndarray
    side: Array


class SquaredFaces:
    """Steps from face to face.

    Args:
        problem: see `has_squared_faces`.
    """

    def __init__(self, problem: LinearProblem):
        self.p = problem
        self.data = shared_samples(problem)
        pad = np.zeros(int(problem.intercept))
        self.radii = np.append(problem.radii, pad)
        self.l1, self.l2 = np.append(problem.l1, pad), np.append(problem.l2, pad)
        self.round = problem.dual == 2
        self.can_vanish = self.l1 > 0 if self.round else (self.l1 > 0) | (self.radii > 0)
        self.penalised = problem.penalised

    def _gram(self, part: Array, kept: np.ndarray | slice) -> Array:
        gram = self.data.gram
        if gram is None:
            half = part * np.sqrt(2 * self.p.weights)[:, None]
            return half.T @ half
        return gram.copy() if isinstance(kept, slice) else gram[np.ix_(kept, kept)]

    def step(self, xi: Array, guess: FaceGuess, width: float = 0.0) -> FaceStep | None:
        """The solution of the KKT system; None where it has none.

        With a width the kinks are not held: |r| is rounded to (r^2/width + width)/2 inside it.
        """
        p, w, sign = self.p, self.p.weights, guess.sign
        kept = slice(None) if sign.all() else np.flatnonzero(sign)
        part = self.data.x[:, kept]
        z, radii, signs = xi[kept], self.radii[kept], sign[kept]
        if not len(z):
            return None
        r = p.y - part @ z
        h = self._gram(part, kept)
        if self.round:
            scaled = radii * z
            t = max(float(np.sqrt(scaled @ scaled)), 1e-300)
            g = radii * scaled / t
        else:
            g = radii * signs
            t = max(float(g @ z), 0.0)
        held = np.flatnonzero(guess.kink) if not width else np.zeros(0, dtype=int)
        if width:
            near = np.abs(r) < width
            s = np.where(near, r / width, guess.side)
            inner = float(w @ np.where(near, (r * s + width) / 2, np.abs(r)))
            band = np.flatnonzero(near)
            rows = part[band] * np.sqrt(2 * t / width * w[band])[:, None]
            h += rows.T @ rows
        else:
            s = np.where(guess.kink, 0.0, guess.side)
            inner = float((w * s) @ r)
        pull = part.T @ (w * s)
        force = 2 * (inner + t)
        gradient = force * g - part.T @ (2 * w * (r + t * s))
        diagonal = np.full(len(z), 1e-14 * float(np.trace(h)) / len(z))
        # -2(pg' + gp') + 2gg' and, where the norm bends, -force gg'/t: a product and its mirror.
        first = g - 2 * pull
        if self.round:
            first -= force / (2 * t) * g
            diagonal += force / t * radii**2
        outer = np.outer(first, g)
        h += outer
        h += outer.T
        if self.penalised:
            diagonal += self.l2[kept]
            gradient += self.l2[kept] * z + self.l1[kept] * signs
        h.ravel()[:: len(z) + 1] += diagonal
        solved = _with_equations(h, -gradient, part[held], r[held])
        if solved is None:
            return None
        move, multipliers = solved
        new = np.zeros_like(xi)
        new[kept] = z + move
        r = r - part @ move
        r[held] = 0.0
        size = float(np.linalg.norm(self.radii * new)) if self.round else float(g @ new[kept])
        alpha = 2 * w * (np.abs(r) + size if width else s * r + size)
        mu = s * alpha
        mu[held] = -multipliers
        return FaceStep(new, r, mu, alpha, float(np.abs(move).max(initial=0.0)))

    def next(self, at: FaceStep, guess: FaceGuess) -> tuple[FaceGuess, np.ndarray, int]:
        """The face that a step names, samples found on the wrong side, and how much is wrong."""
        sign, kink, side = guess.sign, guess.kink, guess.side
        leaves = kink & (np.abs(at.mu) > at.alpha)
        wrong = ~kink & (side * at.r < 0)
        count = int(leaves.sum()) + int(wrong.sum())
        if not self.round or self.penalised:
            image = self.data.x.T @ at.mu - self.l2 * at.xi
            cut = self.l1 if self.round else self.l1 + float(at.alpha.sum()) * self.radii
            flipped = self.can_vanish & (sign * at.xi < 0)
            enters = (sign == 0) & (np.abs(image) > cut * (1 + 1e-12))
            sign = np.where(flipped, 0.0, np.where(enters, np.sign(image), sign))
            count += int(flipped.sum()) + int(enters.sum())
        side = np.where(kink, np.where(at.mu >= 0, 1.0, -1.0), np.where(wrong, -side, side))
        return FaceGuess(sign, kink & ~leaves, side), wrong, count


def _with_equations(
    h: Array, right: Array, equal: Array, miss: Array
) -> tuple[Array, Array] | None:
    """move and lambda with h move + equal'lambda = right, equal move = miss."""
    factor, info = dpotrf(h, lower=1)
    if info:
        return None
    if not len(miss):
        return dpotrs(factor, right, lower=1)[0], miss
    both = dtrtrs(factor, np.vstack([equal, right]).T, lower=1)[0]
    q, y = both[:, :-1], both[:, -1]
    small, info = dpotrf(q.T @ q, lower=1)
    if info:
        return None
    found = dpotrs(small, q.T @ y - miss, lower=1)[0]
    return dtrtrs(factor, y - q @ found, lower=1, trans=1)[0], found


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
    guess = FaceGuess(np.append(face.sign, ones), face.kink, face.side)
    return follow_guess(SquaredFaces(problem), guess, np.append(theta, b * ones), tolerance, rounds)


def follow_guess(
    faces: SquaredFaces, guess: FaceGuess, xi: Array, tolerance: float, rounds: int
) -> Vertex | None:
    """`follow_squared` from a guess."""
    crossed = np.zeros(len(guess.kink), dtype=bool)
    fewest, stale = np.inf, 0
    for _ in range(rounds):
        room = np.count_nonzero(guess.sign)
        if faces.data.gram is None and (room > 1.2 * len(crossed) or guess.kink.sum() > room):
            return None
        if guess.kink.sum() > room:
            guess = FaceGuess(guess.sign, np.zeros_like(crossed), guess.side)
        at = faces.step(np.where(guess.sign != 0, xi, 0.0), guess)
        if at is None or not np.isfinite(at.xi).all():
            return None
        xi = at.xi
        new, wrong, count = faces.next(at, guess)
        if count == 0 and (not faces.round or at.moved <= 1e-4 * float(np.abs(xi).max())):
            vertex = _vertex(faces, at, guess)
            if not faces.round or vertex.gap <= tolerance:
                return vertex
        stale = 0 if count < fewest else stale + 1
        fewest = min(fewest, max(count, 1))
        if stale > 4 or (faces.data.gram is None and count > 20 + 2 * fewest):
            return None
        # Where more samples are on the wrong side than a face can hold at its kinks, they change
        # sides the first time, and go to the kink the second.
        many = int(new.kink.sum() + wrong.sum()) > np.count_nonzero(new.sign)
        guess = FaceGuess(new.sign, new.kink | (wrong & crossed if many else wrong), new.side)
        crossed |= wrong
    return None


def _vertex(faces: SquaredFaces, at: FaceStep, guess: FaceGuess) -> Vertex:
    p = faces.p
    d = p.shape[1]
    theta, b = at.xi[:d], float(at.xi[-1]) if p.intercept else 0.0
    point = DualPoint(at.mu, at.alpha)
    face = Face(guess.sign[:d], np.zeros(d), guess.kink, guess.side)
    value = p.objective(theta, b)
    return Vertex(theta, b, point, value, lower_bound(p, point, theta), face)
