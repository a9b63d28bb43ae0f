"""No classifier is more robust than this: Theorem 3.2, and the exact risk of linear rules.

Labels are flipped independently with probability beta. With I the integral of
min{p(xi), p(xi + v)} and v = 2 (1 - alpha/||mu||) mu, every classifier has robust error at least
beta + (1 - 2 beta) I/4 (form "paper"). The proof's pairing of points gives I/2 when the minimum
is used directly (form "tight", derived here); for Gaussian clusters and beta = 0 that is the
optimum. At alpha >= ||mu|| both are 1/2.
"""

from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.optimize import root_scalar
from scipy.special import ndtr

from ....core.checks import (
    ArrayLike,
    Numbers,
    Scalar,
    chosen,
    cosine,
    nonnegative,
    scalar,
    stack,
    together,
    vector,
)
from ....core.errors import AdvlabError
from .inputs import LogDensity, flip_rate

WEIGHT = {"paper": 0.25, "tight": 0.5}
"""What multiplies (1 - 2 beta) I."""
TAIL_DROP = 60.0
"""Quadrature of a tail stops where the density is exp(-60) of what it is at its start."""


class Overlap(NamedTuple):
    """A Monte Carlo estimate of I and its standard error."""

    value: float
    error: float


def robust_error_lower_bound(
    mu_norm: ArrayLike, alpha: ArrayLike, beta: ArrayLike, form: str = "paper"
) -> Numbers:
    """Theorem 3.2 for N(0, I) clusters, where I = 2 Phi(-(||mu|| - alpha)).

    Args:
        mu_norm, alpha, beta: numbers or arrays, which broadcast.
        form: "paper" as printed, or "tight".

    Returns:
        A lower bound of the robust error of every classifier.
    """
    length, radius = nonnegative("mu_norm", mu_norm), nonnegative("alpha", alpha)
    rate = flip_rate(beta)
    together(mu_norm=length, alpha=radius, beta=rate)
    return lower_bound_from_overlap(2 * ndtr(-np.maximum(length - radius, 0)), rate, form)


def lower_bound_from_overlap(overlap: ArrayLike, beta: ArrayLike, form: str = "paper") -> Numbers:
    """Theorem 3.2 given I: beta + (1 - 2 beta) I/4, or I/2 if tight; 1/2 where I = 1.

    I = 1 means that the shift v is zero, that is alpha >= ||mu||.

    Args:
        overlap: I, between 0 and 1.
        beta: the flip rate.
        form: "paper" or "tight".
    """
    weight = WEIGHT[chosen("form", form, ("paper", "tight"))]
    inside, rate = nonnegative("overlap", overlap), flip_rate(beta)
    together(overlap=inside, beta=rate)
    if (inside > 1).any():
        raise AdvlabError("the overlap of two densities is at most 1", f"{inside.max()}")
    return np.where(inside == 1, 0.5, rate + (1 - 2 * rate) * weight * inside)[()]


def robust_error_lower_bound_of_law(
    log_density: LogDensity,
    mu_norm: Scalar,
    alpha: Scalar,
    beta: Scalar,
    form: str = "paper",
) -> float:
    """Theorem 3.2 for any product law and mu = ||mu|| e_1, by quadrature of one coordinate.

    Args:
        log_density: of one coordinate, concave, up to a constant.
        mu_norm, alpha, beta: one number each.
        form: "paper" or "tight".
    """
    gap = scalar("mu_norm", mu_norm) - scalar("alpha", alpha)
    inside = overlap(log_density, 2 * max(gap, 0.0))
    return float(lower_bound_from_overlap(inside, beta, form))


def overlap(log_density: LogDensity, shift: Scalar) -> float:
    """The integral of min{p(t), p(t + shift)} for a law on the line with its peak at 0.

    Args:
        log_density: concave, up to a constant.
        shift: 0 or more.
    """
    distance = scalar("shift", shift)
    if distance == 0:
        return 1.0

    def lead(t: float) -> float:
        return float(log_density(t)) - float(log_density(t + distance))

    if not lead(-distance) <= 0 <= lead(0.0):
        raise AdvlabError("a log density with its peak at 0", f"{lead(-distance)} and {-lead(0.0)}")
    # p(t) and p(t + shift) cross once between the two peaks, as p is log-concave.
    kink = float(root_scalar(lead, bracket=(-distance, 0.0)).root)
    both = _tail(log_density, kink, -1.0) + _tail(log_density, kink + distance, 1.0)
    mass = _tail(log_density, 0.0, -1.0) + _tail(log_density, 0.0, 1.0)
    return min(both / mass, 1.0)


def overlap_monte_carlo(
    log_density: LogDensity, noise: ArrayLike, mu: ArrayLike, alpha: Scalar
) -> Overlap:
    """I = E min(1, p(xi + v)/p(xi)) over draws xi (k, d) of a product law, for mu in any direction.

    Args:
        log_density: of one coordinate, up to a constant.
        noise: draws of xi.
        mu: the centre of a cluster (d,).
        alpha: the radius.
    """
    centre = vector("mu", mu)
    draws = stack("noise", noise, len(centre))
    if draws.ndim != 2 or len(draws) < 2:
        raise AdvlabError("noise must have shape (k, d) with k >= 2", draws.shape)
    length, radius = float(np.linalg.norm(centre)), scalar("alpha", alpha)
    if radius >= length:
        return Overlap(1.0, 0.0)
    v = 2 * (1 - radius / length) * centre
    ratio = np.sum(log_density(draws + v) - log_density(draws), axis=1)
    values = np.exp(np.minimum(ratio, 0))
    return Overlap(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def linear_rule_risk(
    cos: ArrayLike, mu_norm: ArrayLike, alpha: ArrayLike, beta: ArrayLike
) -> Numbers:
    """The robust error of sign<w, x> on N(0, I) clusters with cos = cos(w, mu) (derived here).

    (1 - beta) Phi(alpha - cos ||mu||) + beta Phi(alpha + cos ||mu||); at cos = 1 the best linear
    rule, and alpha = 0 gives the clean error.

    Args:
        cos, mu_norm, alpha, beta: numbers or arrays, which broadcast.
    """
    angle, length = cosine(cos), nonnegative("mu_norm", mu_norm)
    radius, rate = nonnegative("alpha", alpha), flip_rate(beta)
    together(cos=angle, mu_norm=length, alpha=radius, beta=rate)
    signal = angle * length
    return ((1 - rate) * ndtr(radius - signal) + rate * ndtr(radius + signal))[()]


def _tail(log_density: LogDensity, start: float, side: float) -> float:
    """The integral of p/p(0) from start outwards; small ones keep their relative accuracy."""
    here = float(log_density(start))

    def drop(t: float) -> float:
        return float(log_density(start + side * t)) - here

    mass = quad(lambda t: np.exp(drop(t)), 0.0, _reach(drop), epsabs=0, epsrel=1e-12, limit=200)[0]
    return mass * float(np.exp(here - log_density(0.0)))


def _reach(drop: LogDensity) -> float:
    """Where the density has fallen by exp(-60) or more, at most twice as far as need be."""
    far = 1.0
    while drop(far) > -TAIL_DROP and far < 1e100:
        far *= 2
    while drop(far / 2) < -TAIL_DROP:
        far /= 2
    if not drop(far) <= -TAIL_DROP:
        raise AdvlabError("a log density that falls in its tails", f"{drop(far)} at distance {far}")
    return far
