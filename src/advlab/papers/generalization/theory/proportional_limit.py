"""Adversarial training of linear models as d/n tends to a constant: between the two regimes.

The paper has d^2/n -> 0 (Theorem 2) and d/n -> infinity (Theorem 5). In between, for x ~ N(0, I),
the minimiser of mean (|r| + eps ||theta||)^2 has a limit by the convex Gaussian minimax theorem, as
in Javanmard, Soltanolkotabi and Hassani (COLT 2020); the form below is derived here.

Write theta = theta0 + error with a part p along theta0 and a part q >= 0 orthogonal to it, a =
||theta||, s^2 = p^2 + q^2 + sigma2, w ~ N(0, s^2), ratio = d/n. The training risk tends to
    min over p, q of max over kappa >= 0 of  E M(w; kappa) - kappa ratio q^2 / 2,
    M(w; kappa) = min over v of (|v| + eps a)^2 + kappa (w - v)^2 / 2,
where v is the law of the training residuals: zero for |w| <= 2 eps a / kappa.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from ....core.checks import Scalar, scalar
from ....core.errors import AdvlabError
from ....linear.risks import closed_form


@dataclass(frozen=True)
class ProportionalLimit:
    """What an estimate tends to as n and d grow with d/n fixed."""

    parallel: float
    """p: the part of theta - theta0 along theta0."""
    perpendicular: float
    """q: the length of the part orthogonal to theta0."""
    norm: float
    """a = ||theta||."""
    standard_risk: float
    """s^2."""
    risk: float
    """The adversarial risk at the radius of training (eq. 5)."""
    training_risk: float
    fitted: float
    """The share of samples with residual zero."""


def proportional_limit(
    ratio: Scalar, signal: Scalar, sigma2: Scalar, radius: Scalar
) -> ProportionalLimit:
    """The limit of the minimiser of the adversarial training risk, l2 attacks and cov = I.

    Args:
        ratio: d/n.
        signal: ||theta0||, positive.
        sigma2: the variance of the noise, positive.
        radius: of the attack, positive.

    Example:
        proportional_limit(0.5, 1.0, 1.0, 0.3).risk
    """
    c, length, noise, eps = _checked(ratio, signal, sigma2, radius)
    start = np.array([-0.3 * length, 0.5 * np.sqrt(noise + length**2)])
    # Gradient methods stall where all samples become fitted; a second start polishes the simplex.
    for _ in range(2):
        found = optimize.minimize(
            lambda at: _objective(*at, c, length, noise, eps)[0],  # type: ignore
            start, method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 2000},
        )  # fmt: skip
        start = found.x
    p, q = float(found.x[0]), abs(float(found.x[1]))
    value, kappa = _objective(p, q, c, length, noise, eps)
    a, s = float(np.hypot(length + p, q)), float(np.sqrt(p**2 + q**2 + noise))
    fitted = math.erf(2 * eps * a / (kappa * s) / math.sqrt(2)) if kappa else 1.0
    return ProportionalLimit(p, q, a, s**2, float(closed_form(s, a, eps)), value, fitted)


def min_norm_limit(
    ratio: Scalar, signal: Scalar, sigma2: Scalar, radius: Scalar
) -> ProportionalLimit:
    """The limit of least squares (d < n) or the min-norm interpolator (d > n); arguments as above.

    d > n: a^2 = signal^2/c + sigma2/(c - 1), s^2 = signal^2 (1 - 1/c) + sigma2 c/(c - 1), c = d/n:
    the limit of Lemma 1's expectations. d < n: a^2 = signal^2 + sigma2 c/(1 - c), s^2 = sigma2 /
    (1 - c). Neither exists at d = n.
    """
    c, length, noise, eps = _checked(ratio, signal, sigma2, radius)
    if c == 1:
        raise AdvlabError("d/n other than 1: least squares has no limit there", c)
    if c < 1:
        p, q2 = 0.0, noise * c / (1 - c)
        residual, fitted = noise * (1 - c), 0.0
    else:
        p, residual, fitted = length * (1 / c - 1), 0.0, 1.0
        q2 = length**2 * (c - 1) / c**2 + noise / (c - 1)
    a, s2 = float(np.hypot(length + p, np.sqrt(q2))), p**2 + q2 + noise
    training = float(closed_form(np.sqrt(residual), a, eps))
    risk = float(closed_form(np.sqrt(s2), a, eps))
    return ProportionalLimit(p, float(np.sqrt(q2)), a, s2, risk, training, fitted)


def _checked(ratio, signal, sigma2, radius) -> tuple[float, float, float, float]:
    named = {"ratio": ratio, "signal": signal, "sigma2": sigma2, "radius": radius}
    values = {name: float(scalar(name, value)) for name, value in named.items()}
    for name, value in values.items():
        if value <= 0:
            raise AdvlabError(f"{name} must be positive", value)
    return values["ratio"], values["signal"], values["sigma2"], values["radius"]


def _objective(
    p: float, q: float, ratio: float, signal: float, noise: float, eps: float
) -> tuple[float, float]:
    """The inner maximum and the kappa that attains it; even in q."""
    b, s2 = eps * math.hypot(signal + p, q), p**2 + q**2 + noise
    target = ratio * q**2
    if target >= s2:  # every sample can be fitted
        return b**2, 0.0

    def slope(log: float) -> float:
        return _moments(math.exp(log), b, s2)[1] - target

    kappa = math.exp(optimize.brentq(slope, -80.0, 40.0, xtol=1e-13))  # type: ignore
    return _moments(kappa, b, s2)[0] - kappa * target / 2, kappa


def _moments(kappa: float, b: float, s2: float) -> tuple[float, float]:
    """E M(w; kappa) and E (w - v)^2, by moments of the cut normal law."""
    s = math.sqrt(s2)
    edge = 2 * b / (kappa * s)
    outside = math.erfc(edge / math.sqrt(2))
    density = math.exp(-(edge**2) / 2) / math.sqrt(2 * math.pi) if edge < 38 else 0.0
    bulge, share = 2 * edge * density, kappa / (kappa + 2)
    small = s2 * (1 - outside - bulge)
    large = s2 * (outside + bulge) + 4 * b * s * density + b**2 * outside
    value = (1 - outside) * b**2 + kappa / 2 * small + share * large
    return value, small + (1 - share) ** 2 * large
