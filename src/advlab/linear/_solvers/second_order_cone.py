"""One second-order cone {(t, z): t >= ||z||_2}: Nesterov-Todd scaling and steps to the boundary."""

from dataclasses import dataclass

import numpy as np

from ...core.checks import Array


def determinant(x: Array) -> float:
    """t^2 - ||z||^2 without cancellation."""
    size = float(np.sqrt(x[1:] @ x[1:]))
    return (float(x[0]) - size) * (float(x[0]) + size)


@dataclass(frozen=True)
class Scaling:
    """W with W dual = W^{-1} slack; W^{-2} = (2 v v' - J)/eta^2 with v = (w_0, -w_1)."""

    w: Array
    eta: float
    point: Array
    """lambda = W dual."""

    def apply(self, x: Array) -> Array:
        w0, w1 = self.w[0], self.w[1:]
        inner = float(w1 @ x[1:])
        tail = x[1:] + w1 * (x[0] + inner / (1 + w0))
        return self.eta * np.concatenate([[w0 * x[0] + inner], tail])

    def undo(self, x: Array) -> Array:
        w0, w1 = self.w[0], self.w[1:]
        inner = float(w1 @ x[1:])
        tail = x[1:] + w1 * (inner / (1 + w0) - x[0])
        return np.concatenate([[w0 * x[0] - inner], tail]) / self.eta

    def divide(self, r: Array) -> Array:
        """x with point o x = r."""
        l0, l1 = float(self.point[0]), self.point[1:]
        x0 = (l0 * r[0] - float(l1 @ r[1:])) / determinant(self.point)
        return np.concatenate([[x0], (r[1:] - x0 * l1) / l0])


def scaling(slack: Array, dual: Array) -> Scaling:
    a, b = determinant(slack), determinant(dual)
    s, z = slack / np.sqrt(a), dual / np.sqrt(b)
    gamma = np.sqrt((1 + float(s @ z)) / 2)
    flipped = np.concatenate([[z[0]], -z[1:]])
    w = (s + flipped) / (2 * gamma)
    # w'Jw = 1 holds up to rounding; put it right.
    w[0] = np.sqrt(1 + float(w[1:] @ w[1:]))
    eta = (a / b) ** 0.25
    half = Scaling(w, eta, dual)
    return Scaling(w, eta, half.apply(dual))


def product(x: Array, y: Array) -> Array:
    return np.concatenate([[float(x @ y)], x[0] * y[1:] + y[0] * x[1:]])


def longest_step(x: Array, dx: Array) -> float:
    """The largest a with x + a dx in the cone."""
    a = determinant(dx)
    b = float(x[0] * dx[0] - x[1:] @ dx[1:])
    c = determinant(x)
    if c <= 0:
        return 0.0
    disc = b * b - a * c
    if disc < 0:
        return np.inf
    root = np.sqrt(disc)
    # Zeros of a s^2 + 2 b s + c, the numerically stable way.
    q = -(b + np.copysign(root, b))
    found = [q / a] if a else []
    found += [c / q] if q else []
    positive = [s for s in found if s > 0]
    return min(positive) if positive else np.inf
