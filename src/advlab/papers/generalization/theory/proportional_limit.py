"""Adversarial training of linear models as d/n tends to a constant: between the two regimes.

The paper has d^2/n -> 0 (Theorem 2) and d/n -> infinity (Theorem 5). In between, for x ~ N(0,
Sigma), the minimiser of mean (|r| + eps ||theta||)^2 has a limit by the convex Gaussian minimax
theorem, as in Javanmard, Soltanolkotabi and Hassani (COLT 2020); the form below is derived here.

The theorem replaces the inputs by one Gaussian vector h: with a = ||theta||, s^2 = ||theta -
theta0||_Sigma^2 + sigma2, t = h'Sigma^(1/2)(theta - theta0)/sqrt n and w ~ N(0, s^2), the training
risk tends to
    min over theta of max over kappa >= 0 of  E M(w; kappa) - kappa t^2 / 2,
    M(w; kappa) = min over v of (|v| + eps a)^2 + kappa (w - v)^2 / 2,
where v is the law of the training residuals: zero for |w| <= 2 eps a / kappa. It rises with a and s
and falls with |t|, so the best theta has two numbers, a shrinkage rho in [0, 1] and q:
    theta - theta0 = D^-1 (q Sigma^(1/2) h/sqrt d - rho theta0),   D = (1 - rho) Sigma + rho I.
For Sigma = I these are the part -rho ||theta0|| along theta0 and the length q orthogonal to it.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from ....core.checks import Array, ArrayLike, Scalar, covariance, scalar, vector
from ....core.errors import AdvlabError
from ....linear.risks import closed_form


@dataclass(frozen=True)
class ProportionalLimit:
    """What an estimate tends to as n and d grow with d/n fixed."""

    parallel: float
    """The part of theta - theta0 along theta0."""
    perpendicular: float
    """The length of the part orthogonal to theta0."""
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
        from advlab.papers.generalization.theory import proportional_limit
        proportional_limit(0.5, 1.0, 1.0, 0.3).risk
    """
    c, length, noise, eps = _checked(ratio, signal, sigma2, radius)
    return _limit(_Spectrum(c, np.ones(1), np.array([length**2]), noise), eps)


def correlated_limit(
    ratio: Scalar, theta0: ArrayLike, sigma2: Scalar, radius: Scalar, cov: ArrayLike
) -> ProportionalLimit:
    """`proportional_limit` for inputs of covariance `cov`, whose eigenvalues stand for its limit.

    Args:
        ratio, sigma2, radius: as in `proportional_limit`.
        theta0: the true model (d,), not zero.
        cov: Sigma (d, d), positive definite.

    Example:
        import numpy as np
        from advlab.papers.generalization.theory import correlated_limit
        correlated_limit(0.5, np.full(100, 0.1), 1.0, 0.3, np.eye(100)).risk
    """
    truth = vector("theta0", theta0)
    c, _, noise, eps = _checked(ratio, float(np.linalg.norm(truth)), sigma2, radius)
    matrix = covariance(cov, len(truth))
    if matrix is None:
        matrix = np.eye(len(truth))
    values, vectors = np.linalg.eigh(matrix)
    return _limit(_Spectrum(c, values, (vectors.T @ truth) ** 2, noise), eps)


@dataclass(frozen=True)
class _Spectrum:
    """Sigma by its eigenvalues, and theta0 by its squared coordinates along their vectors."""

    ratio: float
    values: Array
    weights: Array
    noise: float

    def at(self, rho: float, q: float) -> tuple[float, float, float]:
        """a^2, s^2 and t^2 of the theta with these two numbers."""
        shrink = (1 - rho) * self.values + rho
        if shrink.min() <= 0:
            return np.inf, np.inf, 0.0
        kept = self.values / shrink
        a2 = self.weights @ (1 - rho / shrink) ** 2 + q**2 * (kept / shrink).mean()
        s2 = self.weights @ (self.values * (rho / shrink) ** 2) + q**2 * (kept**2).mean()
        return float(a2), float(s2 + self.noise), float(self.ratio * (q * kept.mean()) ** 2)

    def error(self, rho: float, q: float) -> tuple[float, float]:
        """The part of theta - theta0 along theta0, and the length of what is orthogonal to it."""
        shrink = (1 - rho) * self.values + rho
        along = -rho * float(self.weights @ (1 / shrink)) / float(np.sqrt(self.weights.sum()))
        length2 = self.weights @ (rho / shrink) ** 2 + q**2 * (self.values / shrink**2).mean()
        return along, float(np.sqrt(max(length2 - along**2, 0.0)))


def _limit(spectrum: _Spectrum, eps: float) -> ProportionalLimit:
    start = np.array([0.3, 0.5 * np.sqrt(spectrum.noise + spectrum.weights.sum())])
    # Gradient methods stall where all samples become fitted; a second start polishes the simplex.
    for _ in range(2):
        found = optimize.minimize(
            lambda at: _objective(*spectrum.at(*at), eps)[0],
            start, method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 2000},
        )  # fmt: skip
        start = found.x
    rho, q = float(found.x[0]), abs(float(found.x[1]))
    a2, s2, t2 = spectrum.at(rho, q)
    a, s = math.sqrt(a2), math.sqrt(s2)
    value, kappa = _objective(a2, s2, t2, eps)
    fitted = math.erf(2 * eps * a / (kappa * s) / math.sqrt(2)) if kappa else 1.0
    risk = float(closed_form(s, a, eps))
    return ProportionalLimit(*spectrum.error(rho, q), a, s2, risk, value, fitted)


def min_norm_limit(
    ratio: Scalar, signal: Scalar, sigma2: Scalar, radius: Scalar
) -> ProportionalLimit:
    """The limit of least squares (d < n) or the min-norm interpolator (d > n), Sigma = I.

    d > n: a^2 = signal^2/c + sigma2/(c - 1), s^2 = signal^2 (1 - 1/c) + sigma2 c/(c - 1), c = d/n:
    the limit of Lemma 1's expectations. d < n: a^2 = signal^2 + sigma2 c/(1 - c), s^2 = sigma2 /
    (1 - c). Neither exists at d = n. Arguments as in `proportional_limit`.
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


def _objective(a2: float, s2: float, t2: float, eps: float) -> tuple[float, float]:
    """The inner maximum and the kappa that attains it."""
    b = eps * math.sqrt(a2)
    if t2 >= s2 or math.isinf(s2):  # every sample can be fitted
        return b**2, 0.0

    def slope(log: float) -> float:
        return _moments(math.exp(log), b, s2)[1] - t2

    kappa = math.exp(optimize.brentq(slope, -80.0, 40.0, xtol=1e-13))  # type: ignore
    return _moments(kappa, b, s2)[0] - kappa * t2 / 2, kappa


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
