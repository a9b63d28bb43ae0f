"""The small probability statements of the paper: B.4 (C7), B.20, B.23, and the minimax remark."""

from typing import NamedTuple

import numpy as np

from ....core.checks import ArrayLike, Numbers, Scalar, nonnegative, positive, scalar, together
from ....core.errors import AdvlabError
from .inputs import flip_rate


class AntiConcentration(NamedTuple):
    """P(X >= threshold) >= probability."""

    threshold: float
    probability: float


def anti_concentration(c: Scalar) -> AntiConcentration:
    """Proposition B.20: X of mean 0, variance 1 and psi_2 norm c has a right tail.

    P(X >= 1/(10 c^2)) >= 0.04/(220^(2/3) c^4). A variance of 1 forces c >= 1.
    """
    norm = scalar("c", c)
    if norm < 1:
        raise AdvlabError("a variable of variance 1 has psi_2 norm at least 1", norm)
    return AntiConcentration(1 / (10 * norm**2), 0.04 / (220 ** (2 / 3) * norm**4))


def projection_bound(length: ArrayLike, delta: Scalar, lam: Scalar = 1.0) -> Numbers:
    """Proposition B.23 (D1): |<v, xi>| <= c6 ||v|| sqrt(log 1/delta) with probability 1 - delta.

    c6 = 2/sqrt(lam) for lam-strongly log-concave xi (derived here: the tail is 2 exp(-lam t^2/2)).
    """
    c6 = 2 / np.sqrt(positive("lam", scalar("lam", lam)))
    return (c6 * nonnegative("length", length) * np.sqrt(-np.log(_delta(delta))))[()]


def noise_norm_bound(d: Scalar, delta: Scalar) -> float:
    """Proposition B.23 (D2): ||xi||^2 <= 9 d log(1/delta) with probability 1 - delta."""
    return float(-9 * positive("d", scalar("d", d)) * np.log(_delta(delta)))


def flip_tail(n: ArrayLike, excess: ArrayLike) -> Numbers:
    """Hoeffding (C7): P(|N|/n - beta > excess) <= exp(-2 n excess^2) for independent flips."""
    sizes, t = positive("n", n), nonnegative("excess", excess)
    together(n=sizes, excess=t)
    return np.exp(-2 * sizes * t**2)[()]


def flip_share_bound(n: ArrayLike, beta: ArrayLike, delta: Scalar) -> Numbers:
    """|N|/n <= beta + sqrt(log(1/delta)/(2n)) with probability 1 - delta: `flip_tail` solved."""
    sizes, rate = positive("n", n), flip_rate(beta)
    together(n=sizes, beta=rate)
    return (rate + np.sqrt(-np.log(_delta(delta)) / (2 * sizes)))[()]


def minimax_exponent(n: ArrayLike, d: ArrayLike, mu_norm: ArrayLike) -> Numbers:
    """min(||mu||^2, n ||mu||^4/d): no clean error decays faster than exp(-O(this))."""
    sizes, dims, length = positive("n", n), positive("d", d), nonnegative("mu_norm", mu_norm)
    together(n=sizes, d=dims, mu_norm=length)
    return np.minimum(length**2, sizes * length**4 / dims)[()]


def _delta(delta: Scalar) -> float:
    value = scalar("delta", delta)
    if not 0 < value < 0.5:
        raise AdvlabError("delta must lie between 0 and 1/2", value)
    return value
