"""Lemma 2: how far the sample's step of Algorithm 1 is from the population's."""

import numpy as np

from ....core.checks import Array
from .. import theory


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
    found = np.empty_like(theta)
    for i, one in enumerate(theta):  # one model at a time: n may be large
        a2, r = float(one @ one), x @ one - y
        shift = 2 * radius * r / np.sqrt(4 * a2 * r**2 + xi**2)
        moved = r + shift * a2
        found[i] = 2 * (moved @ x + float(shift @ moved) * one) / len(y)
    return found


def largest_deviation(
    x: Array, y: Array, theta0: Array, sigma2: float, radius: float, xi: float, reach: float
) -> float:
    """max ||sample gradient - population gradient|| over a net of models with ||theta|| <= reach.

    A lower bound of Lemma 2's supremum: three lengths, and as directions the eigenvectors of X'X/n
    with both signs, where the quadratic part of the loss deviates most, and sixteen others (evenly
    over the plane for d = 2, at random for more).

    Args:
        x, y: samples (n, d) and (n,) of the linear model.
        theta0, sigma2: the linear model, cov = I.
        radius, xi: of the attack.
        reach: B_0 v.
    """
    n, d = x.shape
    axes = np.linalg.eigh(x.T @ x / n).eigenvectors.T
    unit = np.concatenate([axes, -axes, _directions(d)])
    theta = np.concatenate([share * reach * unit for share in (0.1, 0.5, 1.0)])
    law = (theta0, sigma2, radius, xi)
    away = sample_gradients(theta, x, y, radius, xi) - theory.frozen_gradient(theta, *law)
    return float(np.linalg.norm(away, axis=1).max())


def _directions(d: int) -> Array:
    """Sixteen unit vectors."""
    if d == 2:
        angles = np.arange(16) * np.pi / 8
        return np.stack([np.cos(angles), np.sin(angles)], 1)
    drawn = np.random.default_rng(d).normal(size=(16, d))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
