"""The terms of Theorem E.1's proof without sampling error: linear classifiers, Gaussian clusters.

Inputs are y mu + N(0, I) with y a fair sign; theta gives the logistic loss log(1 + e^-m) of the
margin m = y theta'x, which is normal with mean theta'mu and standard deviation s = ||theta||. In l2
the worst input of a ball of radius delta has margin m - delta s, and a uniform one m + delta s t
with the density of t proportional to (1 - t^2)^((D-1)/2): every expectation is an integral over
one or two numbers. The proof bounds the robust generalisation gap by (I) + (II) + delta G (see
`flatness`), sets delta = N^(-1/(D+2)), and has

    (I) = O(delta^2),   (II) = O(N^(-1/2) delta^(-D/2) + N^-2).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import expit, roots_hermitenorm, roots_jacobi

from ....core.checks import Scalar, length, whole

NORMAL_NODES, BALL_NODES = 120, 24
Margins = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class RateTerms:
    """Both sides of the bound, exact but for the training sample, which is part of it."""

    gap: float
    """E max_ball L - mean_i max_ball L_i."""
    smoothing: float
    """(I), the size of E L(X) - E L(X + xi)."""
    sampling: float
    """E L(X + xi) - mean_i E_xi L(X_i + xi), with its sign: its size is (II)."""
    sharpness: float
    """delta G, G the mean of the largest gradient in a ball."""

    @property
    def bound(self) -> float:
        return self.smoothing + abs(self.sampling) + self.sharpness


def printed_radius(n: int, d: int) -> float:
    """delta = N^(-1/(D+2)), at which all terms of the printed bound are of its order.

    Args:
        n: N, training inputs.
        d: D, the dimension.
    """
    return float(whole("n", n, 1) ** (-1 / (whole("d", d, 1) + 2)))


def linear_rate_terms(
    theta: Float[np.ndarray, " d"],
    mean: Float[np.ndarray, " d"],
    margins: Margins,
    delta: Scalar,
) -> RateTerms:
    """(I), (II), delta G and the gap of a linear classifier.

    Args:
        theta: the weights.
        mean: mu of the clusters.
        margins: y_i theta'x_i of the training inputs.
        delta: the l2 radius of the balls.
    """
    radius = length("delta", delta)
    size = float(np.linalg.norm(theta))
    at, weight = _normal(float(theta @ mean), size)
    step, share = _in_ball(len(theta))
    shifts = radius * size * step
    fresh = at - radius * size
    smooth = _loss(at[:, None] + shifts) @ share
    trained = _loss(margins[:, None] + shifts) @ share
    return RateTerms(
        gap=float(weight @ _loss(fresh) - _loss(margins - radius * size).mean()),
        smoothing=float(abs(weight @ (_loss(at) - smooth))),
        sampling=float(weight @ smooth - trained.mean()),
        sharpness=float(radius * size * (weight @ expit(-fresh))),
    )


def robust_logistic(
    x: Float[np.ndarray, "n d"], y: Margins, delta: Scalar
) -> Float[np.ndarray, " d"]:
    """The minimiser of mean_i log(1 + exp(-y_i theta'x_i + delta ||theta||)): l2 training.

    Args:
        x: inputs.
        y: labels, +1 or -1.
        delta: the radius, 0 or more.
    """
    radius, signed = float(delta), x * y[:, None]

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        size = np.linalg.norm(theta)
        margin = signed @ theta - radius * size
        slope = -expit(-margin)
        grow = theta / size if size > 0 else np.zeros_like(theta)
        gradient = (slope @ signed - radius * slope.sum() * grow) / len(y)
        return float(_loss(margin).mean()), gradient

    # At 0 the norm has no gradient; the mean of y x is a direction of descent.
    start = 0.1 * signed.mean(0)
    return np.asarray(minimize(value, start, jac=True, method="L-BFGS-B", tol=1e-12).x)


def _loss(margin: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, -margin)


def _normal(mean: float, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Margins of fresh inputs and their weights."""
    nodes, weights = roots_hermitenorm(NORMAL_NODES)
    return mean + size * nodes, weights / weights.sum()


def _in_ball(d: int) -> tuple[np.ndarray, np.ndarray]:
    """A coordinate of a uniform point of the unit ball, and its weights."""
    power = (d - 1) / 2
    nodes, weights = roots_jacobi(BALL_NODES, power, power)
    return nodes, weights / weights.sum()
