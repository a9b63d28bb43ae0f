"""The averaging classifier w = sum_i y_i x_i, whose accuracy explains the heat maps (derived here).

With s = n (1 - 2 beta), cos(w, mu) ||mu|| is close to q = s ||mu||^2/sqrt(s^2 ||mu||^2 + n d).
Trained networks do somewhat worse. The contours of clean accuracy follow d ~ ||mu||^4, those of
robust accuracy at a fixed ratio alpha/||mu|| tend to d ~ ||mu||^2.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import ndtr

from ....core.checks import ArrayLike, Numbers, Scalar, nonnegative, positive, scalar, together
from ....core.errors import AdvlabError
from .inputs import flip_rate


class AveragingAccuracy(NamedTuple):
    """q and the two accuracies on noisy labels; the largest possible is 1 - beta."""

    q: Numbers
    clean_accuracy: Numbers
    robust_accuracy: Numbers


def averaging_accuracy(
    n: ArrayLike, d: ArrayLike, mu_norm: ArrayLike, alpha: ArrayLike, beta: ArrayLike
) -> AveragingAccuracy:
    """The accuracies of sign<w, x> with w = sum_i y_i x_i, to first order.

    Clean (1 - beta) Phi(q) + beta Phi(-q), robust (1 - beta) Phi(q - alpha) + beta Phi(-q - alpha).

    Args:
        n, d, mu_norm, alpha, beta: numbers or arrays, which broadcast.
    """
    sizes, dims, length = positive("n", n), positive("d", d), nonnegative("mu_norm", mu_norm)
    radius, rate = nonnegative("alpha", alpha), flip_rate(beta)
    together(n=sizes, d=dims, mu_norm=length, alpha=radius, beta=rate)
    s = sizes * (1 - 2 * rate)
    q = s * length**2 / np.sqrt(s**2 * length**2 + sizes * dims)
    return AveragingAccuracy(q[()], _accuracy(q, 0.0, rate)[()], _accuracy(q, radius, rate)[()])


def averaging_contour(
    mu_norm: ArrayLike, level: Scalar, n: Scalar, beta: Scalar, ratio: Scalar = 0.0
) -> Numbers:
    """d*(||mu||): the dimension at which the averaging classifier's accuracy falls to `level`.

    With q* the q of that accuracy, d* = s^2 ||mu||^2 (||mu||^2/q*^2 - 1)/n; 0 where no dimension is
    small enough, infinite where every one is.

    Args:
        mu_norm: numbers or an array.
        level: the accuracy, below 1 - beta.
        n, beta: one number each.
        ratio: alpha/||mu||; 0 gives the contour of clean accuracy.
    """
    lengths, samples = positive("mu_norm", mu_norm), float(positive("n", scalar("n", n)))
    rate, share = float(flip_rate(scalar("beta", beta))), scalar("ratio", ratio)
    target = scalar("level", level)
    if not 0 < target < 1 - rate:
        raise AdvlabError(f"level must lie between 0 and 1 - beta = {1 - rate:.6g}", target)
    s = samples * (1 - 2 * rate)

    def dimension(length: float) -> float:
        q = _signal_needed(target, share * length, rate)
        if q == 0:
            return np.inf
        return max(s**2 * length**2 * ((length / q) ** 2 - 1) / samples, 0.0)

    return np.array([dimension(float(one)) for one in lengths.flat]).reshape(lengths.shape)[()]


def _accuracy(q: Numbers, alpha: Numbers, beta: Numbers) -> Numbers:
    return (1 - beta) * ndtr(q - alpha) + beta * ndtr(-q - alpha)


def _signal_needed(level: float, alpha: float, beta: float) -> float:
    """The q >= 0 of that accuracy, which grows from Phi(-alpha) to 1 - beta; 0 if below."""
    if _accuracy(0.0, alpha, beta) >= level:
        return 0.0
    far = alpha + 1.0
    while _accuracy(far, alpha, beta) < level:
        far += far
    solved = root_scalar(lambda q: _accuracy(q, alpha, beta) - level, bracket=(0.0, far))
    return float(solved.root)
