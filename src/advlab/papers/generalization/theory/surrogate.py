"""What the surrogate attack with parameter xi does to the population risk (Section 2.1).

The attack shrinks the exact l2 attack by ||g|| / sqrt(||g||^2 + xi^2), g the gradient of the loss
at x. For the squared loss g = 2 r theta, so the definition acts with xi / 2; the paper's proofs
drop the 2. Every function takes `convention`: "definition" or "proof".

The functions share their arguments: models theta (..., d); the linear model theta0 (d,), sigma2 and
cov (None is the identity); the attack's l2 radius and xi, which broadcast with the batch axes of
theta. They give one value (or gradient) per model.

Write a = ||theta||, r ~ N(0, s^2), w = sqrt(r^2 a^2 + xi_eff^2). Everything below depends on theta
through a, s and two integrals, J1 = E[r^2 / w] and J2 = E[a^2 r^2 / w^2].
"""

from dataclasses import dataclass

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    covariance,
    nonnegative,
    scalar,
    stack,
    together,
    vector,
)
from ....core.errors import AdvlabError
from ....linear.inputs import C0
from ....linear.risks import length, squared_distance
from . import gaussian_integrals as integrals


def xi_eff(xi: ArrayLike, convention: str = "definition") -> Numbers:
    """The xi that enters the formulas.

    Args:
        xi: of the attack.
        convention: "definition" gives xi / 2, "proof" gives xi.
    """
    if convention not in ("definition", "proof"):
        raise AdvlabError('convention must be "definition" or "proof"', repr(convention))
    value = nonnegative("xi", xi)[()]
    return value / 2 if convention == "definition" else value


def attack_moments(a: Numbers, s: Numbers, xi: Numbers) -> tuple[Numbers, Numbers]:
    """(J1 / s^2, J2) from a = ||theta||, s and xi_eff; no attack where theta = 0 and xi = 0."""
    a, s, xi = np.broadcast_arrays(a, s, xi)
    size = a * s
    c = np.divide(xi, size, out=np.full(size.shape, np.inf), where=size > 0)
    smooth = np.divide(integrals.scaled_shrunk(c), xi, out=np.zeros(size.shape), where=xi > 0)
    sharp = np.divide(C0, size, out=np.zeros(size.shape), where=size > 0)
    return np.where(xi > 0, smooth, sharp), integrals.squared_shrunk(c)


@dataclass(frozen=True)
class _State:
    """One model, or a stack of them, with everything the formulas need."""

    theta: Array
    error: Array
    a: Numbers
    s: Numbers
    radius: Array
    xi: Array

    @property
    def moments(self) -> tuple[Numbers, Numbers]:
        return attack_moments(self.a, self.s, self.xi)


def _state(theta, theta0, sigma2, radius, xi, convention, cov) -> _State:
    truth = vector("theta0", theta0)
    model = stack("theta", theta, len(truth))
    matrix = covariance(cov, len(truth))
    difference = model - truth
    s = np.sqrt(squared_distance(difference, matrix) + scalar("sigma2", sigma2))
    strength = nonnegative("radius", radius)
    smoothing = np.asarray(xi_eff(xi, convention))
    together(theta=np.asarray(s), radius=strength, xi=smoothing)
    error = difference if matrix is None else difference @ matrix
    return _State(model, error, length(model, 2.0), s, strength, smoothing)


def j1(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Numbers:
    """J1 = E[r^2 / sqrt(r^2 a^2 + xi_eff^2)], in closed form (derived here)."""
    state = _state(theta, theta0, sigma2, 0.0, xi, convention, cov)
    return state.moments[0] * state.s**2


def j2(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Numbers:
    """J2 = E[a^2 r^2 / (r^2 a^2 + xi_eff^2)], in closed form (derived here)."""
    return _state(theta, theta0, sigma2, 0.0, xi, convention, cov).moments[1]


def surrogate_risk(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Numbers:
    """R_{L,xi} = E r^2 (1 + radius a^2 / w)^2 = s^2 + 2 radius a^2 J1 + radius^2 a^2 J2.

    Never above the adversarial risk, and equal to it at xi = 0. The paper calls it convex; it is
    not in general (radius 1, xi_eff 0.5, sigma2 0.01, ||theta0|| 1 bends down along theta0).
    """
    state = _state(theta, theta0, sigma2, radius, xi, convention, cov)
    k1, k2 = state.moments
    a2, s2, eps = state.a**2, state.s**2, state.radius
    return s2 + 2 * eps * a2 * s2 * k1 + eps**2 * a2 * k2


def potential(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Numbers:
    """R~_xi = E[r^2 + 2 radius w + radius^2 a^2], the potential in the proof of Theorem 2.

    Convex in theta, never below the adversarial risk. E w is a sum of two Bessel functions
    (derived here).
    """
    state = _state(theta, theta0, sigma2, radius, xi, convention, cov)
    size, smoothing = np.broadcast_arrays(state.a * state.s, state.xi)
    tiny = size < 1e-8 * smoothing
    c = np.divide(smoothing, size, out=np.zeros(size.shape), where=(size > 0) & ~tiny)
    halved = np.divide(size**2, 2 * smoothing, out=np.zeros(size.shape), where=tiny)
    root = np.where(tiny, smoothing + halved, size * integrals.root(c))
    return state.s**2 + 2 * state.radius * root + state.radius**2 * state.a**2


def frozen_gradient(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Array:
    """The population step of Algorithm 1: the gradient in theta, attacked inputs held fixed.

    2 cov (theta - theta0) (1 + radius a^2 J1 / s^2) + 2 theta (radius J1 + radius^2 J2), by
    Stein's identity (derived here). It is not the gradient of `surrogate_risk` when xi > 0.
    """
    state = _state(theta, theta0, sigma2, radius, xi, convention, cov)
    k1, k2 = state.moments
    outward = 1 + state.radius * state.a**2 * k1
    inward = state.radius * state.s**2 * k1 + state.radius**2 * k2
    return 2 * (outward[..., None] * state.error + inward[..., None] * state.theta)


def gradient_gap(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Array:
    """grad R~ minus the frozen gradient: 2 radius^2 theta E[xi_eff^2 / w^2].

    The paper prints 2 radius in place of 2 radius^2 (proof of Theorem 2); the square is right.
    """
    state = _state(theta, theta0, sigma2, radius, xi, convention, cov)
    share = np.where(state.xi > 0, 1 - state.moments[1], 0.0)
    return 2 * (state.radius**2 * share)[..., None] * state.theta


def potential_gradient(
    theta: ArrayLike,
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Array:
    """The gradient of `potential`."""
    model = (theta, theta0, sigma2, radius, xi, convention, cov)
    return frozen_gradient(*model) + gradient_gap(*model)
