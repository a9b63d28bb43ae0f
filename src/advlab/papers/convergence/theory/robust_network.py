"""Theorem 5.2: an explicit robust network near its initialisation.

f(W, x) = (1/sqrt(m)) sum_r a_r sigma(w_r.x), the second half of the neurons a copy of the first
with opposite a. Moving the copies apart, w_r = w_r0 + (sqrt(m)/2) a_r c_r and wbar_r = w_r0 -
(sqrt(m)/2) a_r c_r (the paper omits a_r), makes the linear part of f the random features g_3.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    nonnegative,
    points,
    positive,
    scalar,
    vector,
    whole,
)
from ....core.errors import AdvlabError
from .activations import KernelActivation, get_activation
from .features import feature_error_bound, random_features, slope_bound
from .interpolant import Expansion


@dataclass(frozen=True)
class NetworkNearInit:
    """Weights (m, d) before and after, the frozen top layer (m,), and how far they moved."""

    activation: KernelActivation
    start: Array
    weight: Array
    top: Array

    def __call__(self, x: ArrayLike) -> Array:
        rows = points("x", x, self.weight.shape[1])
        return self.activation.phi(rows @ self.weight.T) @ self.top / np.sqrt(len(self.top))

    def linear_part(self, x: ArrayLike) -> Array:
        """<grad f(W0, x), W - W0>, which is g_3."""
        rows = points("x", x, self.weight.shape[1])
        moved = rows @ (self.weight - self.start).T
        return (
            (self.activation.dphi(rows @ self.start.T) * moved) @ self.top / np.sqrt(len(self.top))
        )

    @property
    def distance(self) -> float:
        """||W - W0||_F: at most RF, and near ||g||_H for large m."""
        return float(np.linalg.norm(self.weight - self.start))

    @property
    def farthest(self) -> float:
        """max_r ||w_r - w_r0||, at most RF/sqrt(m)."""
        return float(np.linalg.norm(self.weight - self.start, axis=1).max())

    @property
    def residual_bound(self) -> float:
        """|f - g_3| <= C2 ||W - W0||_F^2/(2 sqrt(m)) (derived here: no RF norm is needed)."""
        return _lipschitz(self.activation) * self.distance**2 / (2 * float(np.sqrt(len(self.top))))


class ErrorSplit(NamedTuple):
    """The three errors of Theorem 5.2, each eps/(3L) (the paper prints 1/(3L))."""

    fit: float
    density: float
    width: float


class Requirement(NamedTuple):
    """Width, step size and steps; where constants are unknown these are orders of magnitude."""

    width: float
    step: float | None
    steps: float | None
    scaling_only: bool


def robust_network(
    g: Expansion, first: ArrayLike, signs: ArrayLike | None = None
) -> NetworkNearInit:
    """The network of Theorem 5.2 for g.

    Args:
        g: the kernel expansion.
        first: first weights (m/2, d).
        signs: a_r = +-1 of the first half, by default all +1.

    Example:
        from advlab.papers.convergence.theory import robust_interpolant, robust_network
        fit = robust_interpolant("sin_cos", x, y, delta=0.15, eps=0.3, rng=rng)
        net = robust_network(fit.expansion, rng.standard_normal((2048, 3)))
    """
    features = random_features(g, first)
    half = len(features.first)
    a = np.ones(half) if signs is None else vector("signs", signs)
    if a.shape != (half,) or not np.isin(a, (-1, 1)).all():
        raise AdvlabError(f"signs must be {half} numbers +1 or -1", f"shape {a.shape}")
    step = np.sqrt(2 * half) / 2 * a[:, None] * features.directions
    start = np.concatenate([features.first, features.first])
    weight = start + np.concatenate([step, -step])
    return NetworkNearInit(g.activation, start, weight, np.r_[a, -a])


def residual_bound(rf_norm: ArrayLike, width: int, C2: Scalar) -> Numbers:
    """|f - g_3| <= C2 RF^2/(2 sqrt(m)) for any smooth sigma; the pairing makes it ~ 1/m.

    Args:
        rf_norm: RF.
        width: m.
        C2: the Lipschitz constant of sigma'.
    """
    size, m = nonnegative("rf_norm", rf_norm), whole("width", width)
    return (scalar("C2", C2) * size**2 / (2 * np.sqrt(m)))[()]


def total_bound(
    activation: str | KernelActivation, rf_norm: Scalar, width: int, d: int, delta: Scalar = 0.01,
    radius: Scalar | None = None,
) -> float:  # fmt: skip
    """sup |f - g| <= C2 RF^2/(2 sqrt(m)) + C RF sqrt(2/m)(2 sqrt(d) + sqrt(2 log 1/delta)).

    The second term is `feature_error_bound` at M = m/2; its proof has gaps (see its "safe" form).

    Args:
        activation: a name, or one's own.
        rf_norm: RF.
        width: m.
        d: the dimension.
        delta: the probability with which it may fail.
        radius: the length of the first weights, for a sigma' that is not bounded.
    """
    C2 = _lipschitz(activation)
    C = max(slope_bound(activation, radius), C2)
    m = whole("width", width, 2)
    features = feature_error_bound(rf_norm, m // 2, d, C, delta)
    return float(residual_bound(rf_norm, m, C2) + features)


def error_split(eps: Scalar, L: Scalar = 1.0) -> ErrorSplit:
    """With these three errors the robust loss is at most eps, for losses of Lipschitz constant L.

    A kernel expansion is its own density, so its second error is zero and can be given away.

    Args:
        eps: the robust loss.
        L: the Lipschitz constant of the loss.
    """
    each = float(positive("eps", scalar("eps", eps)) / (3 * positive("L", scalar("L", L))))
    return ErrorSplit(each, each, each)


def sufficient_width(
    activation: str | KernelActivation, rf_norm: Scalar, d: int, eps: Scalar, L: Scalar = 1.0,
    delta: Scalar = 0.01, radius: Scalar | None = None,
) -> int:  # fmt: skip
    """The least even m at which `total_bound` is at most eps/(3L); order RF^4 L^2/eps^2.

    Args:
        eps: the robust loss.
        L: the Lipschitz constant of the loss.
        activation, rf_norm, d, delta, radius: as for `total_bound`.
    """
    # The bound is a constant over sqrt(m), which m = 2 shows.
    constant = total_bound(activation, rf_norm, 2, d, delta, radius) * np.sqrt(2)
    return 2 * int(np.ceil((constant / error_split(eps, L).width) ** 2 / 2))


def corollary_5_1(R: Scalar, eps: Scalar) -> Requirement:
    """Width R^4/eps^2, step eps and R^2/(eps step) steps: scaling, the constants are not known.

    Args:
        R: the distance to a robust network; the RKHS norm is far nearer to it than the RF norm.
        eps: the loss.
    """
    size, small = (float(positive(k, scalar(k, v))) for k, v in (("R", R), ("eps", eps)))
    return Requirement(size**4 / small**2, small, size**2 / small**2, True)


def corollary_c_1(eps: Scalar, d: int) -> Requirement:
    """Quadratic ReLU: width eps^-(d+1) log(1/eps), step eps, sqrt(m)/step steps: scaling only.

    The constant, exp(O(d)) ||h||^2 at least, is not known; numbers here mean nothing but ratios.

    Args:
        eps: the loss, below 1.
        d: the dimension.
    """
    small = float(positive("eps", scalar("eps", eps)))
    if small >= 1:
        raise AdvlabError("eps must be below 1", small)
    width = small ** -(whole("d", d) + 1) * np.log(1 / small)
    return Requirement(float(width), small, float(np.sqrt(width) / small), True)


def _lipschitz(activation: str | KernelActivation) -> float:
    own = get_activation(activation)
    if own.lipschitz is None:
        raise AdvlabError(
            "an activation whose sigma' is Lipschitz", "one with a jump", "take a smooth one"
        )
    return own.lipschitz
