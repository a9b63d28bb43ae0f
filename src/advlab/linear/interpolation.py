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
    """Expectations of the min-norm interpolator for cov = I (Lemma 1; constants derived here).

    E||theta(y)||^2 = (n/d)||theta0||^2 + sigma2 n/(d-n-1), and the standard risk is
    ||theta0||^2 (1 - n/d) + sigma2 n/(d-n-1) + sigma2.

    Args:
        n: the number of samples, below d - 1.
        theta0: the true model (d,).
        sigma2: the variance of the noise.
    """
    truth = vector("theta0", theta0)
    noise = scalar("sigma2", sigma2)
    d = len(truth)
    if not 1 <= n < d - 1:
        raise AdvlabError(f"n must be at least 1 and below d - 1 = {d - 1}", n)
    signal, fitted = float(truth @ truth), noise * n / (d - n - 1)
    return MinNorm(signal * n / d + fitted, signal * (1 - n / d) + fitted + noise)


def min_norm(x: ArrayLike, y: ArrayLike) -> Array:
    """theta(y) = X'(XX')^{-1} y, the smallest model that fits every sample (Lemma 1).

    Args:
        x, y: samples (n, d) and (n,). With n > d it is the least squares fit.

    Returns:
        theta (d,).
    """
    design, target = check_samples(x, y)
    return np.linalg.lstsq(design, target, rcond=None)[0]


def interpolator_training_risk(theta: ArrayLike, ball: HasBall, xi: Scalar = 0.0) -> Numbers:
    """Adversarial training loss of a model that interpolates: (radius * dual norm)^2 (Lemma 1).

    Args:
        theta: models (..., d) that fit every sample.
        ball: a ball without a box.
        xi: the smoothing of the attack. Above 0 the loss is 0: the attack vanishes with the
            residual.

    Returns:
        One value per row of theta.
    """
    norm, radius = ball_of(ball)
    model = finite("theta", theta)
    return np.where(scalar("xi", xi) > 0, 0.0, (radius * dual_length(model, norm)) ** 2)[()]


def gd_closed_form(x: ArrayLike, y: ArrayLike, eta: Scalar, steps: ArrayLike) -> Array:
    """Standard gradient descent on the mean squared loss from zero.

    theta(t) = X'(I - (I - 2 eta XX'/n)^t)(XX')^{-1} y: the form in the proof of Theorem 5, with the
    factor 2 that the paper drops.

    Args:
        x, y: samples (n, d) and (n,).
        eta: the step size.
        steps: numbers of steps t, of any shape.

    Returns:
        theta (*steps.shape, d).
    """
    design, target = check_samples(x, y)
    u, singular, vt = np.linalg.svd(design, full_matrices=False)
    rate = 2 * scalar("eta", eta) * singular**2 / len(target)
    kept = singular > 1e-13 * singular.max(initial=0.0)
    times = nonnegative("steps", steps)
    done = 1 - (1 - rate[kept]) ** times[..., None]
    return (done * (u.T @ target)[kept] / singular[kept]) @ vt[kept]


def check_design(x: ArrayLike) -> Array:
    """x as a matrix of samples by inputs, or an error."""
    design = finite("x", x)
    if design.ndim != 2 or not design.size:
        raise AdvlabError("x must be a matrix of samples by inputs", design.shape)
    return design


def check_samples(x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """x (n, d) and y (n,), or an error."""
    design, target = check_design(x), vector("y", y)
    if len(design) != len(target):
        raise AdvlabError("x and y must have as many rows", f"{len(design)} and {len(target)}")
    return design, target
