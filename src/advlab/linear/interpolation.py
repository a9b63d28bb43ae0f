"""More inputs than samples: the min-norm interpolator and gradient descent towards it."""

from dataclasses import dataclass

import numpy as np

from ..core.checks import Array, ArrayLike, Numbers, Scalar, finite, nonnegative, scalar, vector
from ..core.errors import AdvlabError
from .inputs import HasBall, ball_of
from .risks import closed_form, dual_length


@dataclass(frozen=True)
class MinNorm:
    """Expectations over the draw of n samples with cov = I."""

    norm2: float
    """E||theta(y)||^2."""
    standard_risk: float

    def adversarial_risk(self, radius: ArrayLike) -> Numbers:
        """Eq. 5 with the two expectations put in: exact as d/n grows, not an expectation."""
        s, a = np.sqrt(self.standard_risk), np.sqrt(self.norm2)
        return closed_form(s, a, nonnegative("radius", radius)[()])


def minnorm_expectations(n: int, theta0: ArrayLike, sigma2: Scalar) -> MinNorm:
    """Lemma 1 with its constants, for cov = I and n < d - 1 (derived here).

    E||theta(y)||^2 = (n/d)||theta0||^2 + sigma2 n/(d-n-1), and the standard risk is
    ||theta0||^2 (1 - n/d) + sigma2 n/(d-n-1) + sigma2.
    """
    truth = vector("theta0", theta0)
    noise = scalar("sigma2", sigma2)
    d = len(truth)
    if not 1 <= n < d - 1:
        raise AdvlabError(f"n must be at least 1 and below d - 1 = {d - 1}", n)
    signal, fitted = float(truth @ truth), noise * n / (d - n - 1)
    return MinNorm(signal * n / d + fitted, signal * (1 - n / d) + fitted + noise)


def min_norm(x: ArrayLike, y: ArrayLike) -> Array:
    """theta(y) = X'(XX')^{-1} y, the smallest model that fits every sample (Lemma 1)."""
    design, target = check_samples(x, y)
    return np.linalg.lstsq(design, target, rcond=None)[0]


def interpolator_training_risk(theta: ArrayLike, ball: HasBall, xi: Scalar = 0.0) -> Numbers:
    """Adversarial training loss of a model that interpolates: (radius * dual norm)^2 (Lemma 1).

    Zero for every xi > 0: the surrogate attack vanishes with the residual.
    """
    norm, radius = ball_of(ball)
    model = finite("theta", theta)
    return np.where(scalar("xi", xi) > 0, 0.0, (radius * dual_length(model, norm)) ** 2)[()]


def gd_closed_form(x: ArrayLike, y: ArrayLike, eta: Scalar, steps: ArrayLike) -> Array:
    """Standard gradient descent on the mean squared loss from zero, after `steps` (shape (...)).

    theta(t) = X'(I - (I - 2 eta XX'/n)^t)(XX')^{-1} y: the form in the proof of Theorem 5 with the
    factor 2 that the paper drops. Result (..., d).
    """
    design, target = check_samples(x, y)
    u, singular, vt = np.linalg.svd(design, full_matrices=False)
    rate = 2 * scalar("eta", eta) * singular**2 / len(target)
    kept = singular > 1e-13 * singular.max(initial=0.0)
    times = nonnegative("steps", steps)
    done = 1 - (1 - rate[kept]) ** times[..., None]
    return (done * (u.T @ target)[kept] / singular[kept]) @ vt[kept]


def spectrum_edges(n: int, d: int) -> tuple[float, float]:
    """Lemma 3: the eigenvalues of XX'/d for cov = I lie in (1 -+ sqrt(n/d))^2 as n, d grow."""
    if n < 1 or d < n:
        raise AdvlabError("need 1 <= n <= d", f"n={n}, d={d}")
    ratio = float(np.sqrt(n / d))
    return (1 - ratio) ** 2, (1 + ratio) ** 2


def stopping_level(n: int) -> float:
    """Theorem 5 stops at the first t with ||X theta - y|| / (v sqrt n) below 1 / sqrt(log n)."""
    if n < 3:
        raise AdvlabError("1 / sqrt(log n) stops training only for n of 3 or more", n)
    return float(1 / np.sqrt(np.log(n)))


@dataclass(frozen=True)
class InterpolationRegime:
    """The numbers Theorem 5 makes assumptions about; it is the reader who judges them."""

    growth: float
    """(log n) sqrt(n/d), should tend to 0. (Theorems 6 and 7 print its inverse's regime.)"""
    literal_step: float
    """lambda_max(eta X'X), below 1 in the statement."""
    step: float
    """2 eta lambda_max(X'X) / n: gradient descent is stable below 2 and monotone below 1."""
    edges: tuple[float, float]
    """The range of the eigenvalues of XX'/d; compare `spectrum_edges`."""


def interpolation_regime(x: ArrayLike, eta: Scalar) -> InterpolationRegime:
    """Theorem 5's assumptions and Lemma 3's range, measured on a design matrix."""
    design = _matrix(x)
    n, d = design.shape
    eigenvalues = np.linalg.svd(design, compute_uv=False) ** 2
    top = scalar("eta", eta) * float(eigenvalues[0])
    edges = (float(eigenvalues[-1]) / d, float(eigenvalues[0]) / d)
    return InterpolationRegime(float(np.log(n) * np.sqrt(n / d)), top, 2 * top / n, edges)


def _matrix(x: ArrayLike) -> Array:
    design = finite("x", x)
    if design.ndim != 2 or not design.size:
        raise AdvlabError("x must be a matrix of samples by inputs", design.shape)
    return design


def check_samples(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    design, target = _matrix(x), vector("y", y)
    if len(design) != len(target):
        raise AdvlabError("x and y must have as many rows", f"{len(design)} and {len(target)}")
    return design, target
