"""Lemma 2: how far the sample's step of Algorithm 1 is from the population's."""

from collections.abc import Callable

import numpy as np

from ....core.checks import Array
from .. import theory

CLIMB, ROWS = 6, 10_000
"""At most so many steps from the best point of the net; samples at a time, for the cache."""


def sample_gradients(theta: Array, x: Array, y: Array, radius: float, xi: float) -> Array:
    """The mean gradient over samples, attacked inputs held fixed, of each model; l2 attacks.

    (2/n) sum r~ (x + shift theta) with shift = 2 radius r / sqrt(4 r^2 a^2 + xi^2), a = ||theta||
    and r~ = r + shift a^2: what `frozen_gradient` is in the population.

    Args:
        theta: models (m, d).
        x, y: samples (n, d) and (n,).
        radius, xi: of the attack, xi > 0.

    Returns:
        (m, d).
    """
    lengths = (theta**2).sum(1)
    found = np.zeros_like(theta)
    for i in range(0, len(y), ROWS):
        points, answers = x[i : i + ROWS], y[i : i + ROWS]
        for total, one, a2 in zip(found, theta, lengths, strict=True):
            r = points @ one - answers
            shift = 2 * radius * r / np.sqrt(4 * a2 * r**2 + xi**2)
            moved = r + shift * a2
            total += 2 * (moved @ points + float(shift @ moved) * one) / len(y)
    return found


def largest_deviation(
    x: Array, y: Array, theta0: Array, sigma2: float, radius: float, xi: float, reach: float
) -> float:
    """The largest ||sample gradient - population gradient|| that is found in ||theta|| <= reach.

    A lower bound of Lemma 2's supremum: the best point of a net, and from there `CLIMB` steps of
    ascent. The net has three lengths, and as directions the eigenvectors of X'X/n with both signs,
    where the quadratic part of the loss deviates most, and eight others (evenly over the plane for
    d = 2, at random for more).

    Args:
        x, y: samples (n, d) and (n,) of the linear model.
        theta0, sigma2: the linear model, cov = I.
        radius, xi: of the attack.
        reach: B_0 v.
    """
    n, d = x.shape
    axes = np.linalg.eigh(x.T @ x / n).eigenvectors.T
    unit = np.concatenate([axes, -axes, _directions(d)])
    net = np.concatenate([share * reach * unit for share in (0.1, 0.5, 1.0)])
    law = (theta0, sigma2, radius, xi)

    def away(theta: Array) -> Array:
        return sample_gradients(theta, x, y, radius, xi) - theory.frozen_gradient(theta, *law)

    return _climb(net[np.linalg.norm(away(net), axis=1).argmax()], away, reach)


def _climb(theta: Array, away: Callable[[Array], Array], reach: float) -> float:
    """The largest length of `away` on a path of ascent that begins at theta.

    Each step goes to the end of the ball along the gradient of ||away||^2 (by differences): where
    that function is convex, as its quadratic part is, it rises at each step. It ends at a fall.
    """
    step = 1e-6 * reach
    value = float(np.linalg.norm(away(theta[None])[0]))
    for _ in range(CLIMB):
        beside = np.linalg.norm(away(theta + step * np.eye(len(theta))), axis=1)
        slope = beside**2 - value**2
        length = float(np.linalg.norm(slope))
        if length == 0:
            break
        theta = reach * slope / length
        found = float(np.linalg.norm(away(theta[None])[0]))
        if found <= value * (1 + 1e-6):
            return max(found, value)
        value = found
    return value


def _directions(d: int) -> Array:
    """Eight unit vectors."""
    if d == 2:
        angles = np.arange(8) * np.pi / 4
        return np.stack([np.cos(angles), np.sin(angles)], 1)
    drawn = np.random.default_rng(d).normal(size=(8, d))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
