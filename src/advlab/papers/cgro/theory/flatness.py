"""What the sharpness of a loss in its inputs says of robust generalisation (CGRO, Theorem E.1).

With the dual norm ||.||_q of the ball's norm and all constants equal to one:

- Proposition E.2: delta E||grad L||_q <= E max_ball L - E L <= delta G for a loss convex in its
  input, where G = E max_ball ||grad L||_q. The upper half is the mean value theorem and holds for
  every loss; without convexity the lower half loses delta^2/2 times the largest curvature.
- Theorem E.1 in the form that holds for a fixed delta: with xi drawn from any law on the ball,

      E max_ball L - mean_i max_ball L_i <= (I) + (II) + delta G,
      (I) = |E L(X) - E L(X + xi)|,  (II) = |E L(X + xi) - mean_i E_xi L(X_i + xi)|

  where i runs over the training sample and labels do not change on balls. The printed rate,
  N^{-1/(D+2)} O(G), sets delta = N^{-1/(D+2)} and drops the first two terms.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from ....core.errors import AdvlabError
from ....threats.norms import Norm, dual_order, order_of

Values = Float[np.ndarray, " n"]


@dataclass(frozen=True)
class RiseBounds:
    """delta * slope, what the worst input in the ball adds to the loss, and delta * steepest."""

    lower: Values
    rise: Values
    upper: Values

    @property
    def slack(self) -> tuple[float, float]:
        """How far the mean rise is above its lower and below its upper bound: negative if not."""
        middle = self.rise.mean()
        return float(middle - self.lower.mean()), float(self.upper.mean() - middle)


def rise_bounds(
    slope: Values, rise: Values, steepest: Values, radius: float, *, curvature: float = 0.0
) -> RiseBounds:
    """Proposition E.2 for measured inputs.

    Args:
        slope: ||grad L||_q at each input.
        rise: what the worst input in the ball adds to the loss.
        steepest: the largest ||grad L||_q in each ball.
        radius: delta.
        curvature: bounds from above minus the least second derivative of the loss along unit moves
            in the ball; zero where it is convex.
    """
    lower = radius * slope - radius**2 / 2 * curvature
    return RiseBounds(lower, rise, radius * steepest)


def linear_logistic(
    theta: Float[np.ndarray, " d"],
    x: Float[np.ndarray, "n d"],
    y: Values,
    norm: Norm,
    radius: float,
) -> RiseBounds:
    """`rise_bounds` of log(1 + exp(-y theta'x)) in closed form.

    The margin m = y theta'x falls to m - radius ||theta||_q at worst; loss and slope
    ||theta||_q / (1 + e^m) are both largest there.

    Args:
        theta: the weights.
        x: inputs (n, d).
        y: labels +1 or -1.
        norm: of the ball.
        radius: delta.
    """
    if radius < 0:
        raise AdvlabError("a radius of at least zero", radius)
    length = float(np.linalg.norm(theta, dual_order(order_of(norm))))
    margin = y * (x @ theta)
    worst = margin - radius * length
    rise = np.logaddexp(0, -worst) - np.logaddexp(0, -margin)
    return RiseBounds(radius * length * expit(-margin), rise, radius * length * expit(-worst))


@dataclass(frozen=True)
class ThreeTerms:
    """Both sides of the bound by Monte Carlo, and the standard error of their difference."""

    gap: float
    """E max_ball L - mean_i max_ball L_i."""
    smoothing: float
    """(I)"""
    sampling: float
    """(II)"""
    sharpness: float
    """delta G"""
    error: float

    @property
    def bound(self) -> float:
        return self.smoothing + self.sampling + self.sharpness

    @property
    def slack(self) -> float:
        return self.bound - self.gap

    @property
    def deviations(self) -> float:
        """The slack in standard errors: below -3 the bound is violated."""
        if self.error > 0:
            return self.slack / self.error
        return np.inf if self.slack >= 0 else -np.inf


def three_terms(
    *,
    clean: Values,
    worst: Values,
    steepest: Values,
    noisy: Float[np.ndarray, "n k"],
    worst_train: Float[np.ndarray, " N"],
    noisy_train: Float[np.ndarray, "N K"],
    radius: float,
) -> ThreeTerms:
    """The three-term bound from the losses of n fresh and N training inputs.

    Expectations are means over the same fresh inputs, so that their errors cancel where they can;
    the training sample is part of the statement and has no error but for its random points.

    Args:
        clean: losses of the fresh inputs.
        worst: largest losses in their balls.
        steepest: largest gradients in their balls.
        noisy: losses at k random points of each ball.
        worst_train: largest losses in the balls of the training inputs.
        noisy_train: losses at K random points of each of those.
        radius: delta.
    """
    smooth, trained = noisy.mean(1), noisy_train.mean(1)
    first, second = (clean - smooth).mean(), smooth.mean() - trained.mean()
    each = np.sign(first) * (clean - smooth) + np.sign(second) * smooth + radius * steepest - worst
    draws = noisy_train.var(1, ddof=1).sum() / noisy_train.shape[1] / len(noisy_train) ** 2
    return ThreeTerms(
        gap=float(worst.mean() - worst_train.mean()),
        smoothing=float(abs(first)),
        sampling=float(abs(second)),
        sharpness=float(radius * steepest.mean()),
        error=float(np.sqrt(each.var(ddof=1) / len(each) + draws)),
    )
