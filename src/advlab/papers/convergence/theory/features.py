"""Random features (Lemma C.1, Proposition C.1): kernel expansions as finite sums over neurons.

g = sum_t a_t K(z_t, .) is E[c(w).x sigma'(w.x)] with c(w) = sum_t a_t z_t sigma'(w.z_t) over
w ~ N(0, I). Its RF norm is sup_w ||c(w)||, and M draws of w give sum_i c_i.x sigma'(w_i.x) with
c_i = c(w_i)/M.
"""

from dataclasses import dataclass

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    chosen,
    fraction,
    nonnegative,
    points,
    scalar,
    whole,
)
from ....core.errors import AdvlabError
from .activations import KernelActivation, get_activation
from .interpolant import Expansion


@dataclass(frozen=True)
class RandomFeatures:
    """sum_i c_i.x sigma'(w_i.x), its first weights w and directions c, both (M, d)."""

    activation: KernelActivation
    first: Array
    directions: Array

    def __call__(self, x: ArrayLike) -> Array:
        rows = points("x", x, self.first.shape[1])
        return ((rows @ self.directions.T) * self.activation.dphi(rows @ self.first.T)).sum(1)


def random_features(g: Expansion, first: ArrayLike) -> RandomFeatures:
    """The finite sum of Proposition C.1.

    Args:
        g: the kernel expansion.
        first: first weights (M, d), drawn from N(0, I) (or, for quadratic ReLU, uniformly on the
            sphere of radius sqrt(d), which has the same kernel).
    """
    weights = points("first", first, g.centres.shape[1])
    return RandomFeatures(g.activation, weights, _density_ratio(g, weights) / len(weights))


def feature_spread(g: Expansion, x: ArrayLike, first: ArrayLike) -> Array:
    """The standard deviation of c(w).x sigma'(w.x) at each x: that of M features' sum is this over
    sqrt(M).

    Args:
        g: the kernel expansion.
        x: points, as rows.
        first: weights (M, d) over which it is taken.
    """
    rows, weights = (points(n, v, g.centres.shape[1]) for n, v in (("x", x), ("first", first)))
    return ((_density_ratio(g, weights) @ rows.T) * g.activation.dphi(weights @ rows.T)).std(0)


def rf_norm_lower(g: Expansion, first: ArrayLike) -> float:
    """max ||c(w)|| over drawn weights: a lower estimate of the RF norm.

    Args:
        g: the kernel expansion.
        first: the weights (M, d).
    """
    weights = points("first", first, g.centres.shape[1])
    return float(np.linalg.norm(_density_ratio(g, weights), axis=1).max())


def rf_norm_upper(g: Expansion, radius: Scalar | None = None) -> float:
    """C1 sum |a_t|: an upper bound of the RF norm.

    Args:
        g: the kernel expansion.
        radius: the length of the weights, of which C1 is then the largest |sigma'| on
            [-radius, radius]. Without it an unbounded sigma' has no finite RF norm.
    """
    return slope_bound(g.activation, radius) * float(np.abs(g.coefficients).sum())


def slope_bound(activation: str | KernelActivation, radius: Scalar | None = None) -> float:
    """C1 = sup |sigma'|.

    Args:
        activation: a name, or one's own.
        radius: the length of the weights, for a sigma' that is not bounded.
    """
    own = get_activation(activation)
    if own.bound is not None:
        return own.bound
    if radius is None or own.lipschitz is None:
        raise AdvlabError(
            "a bounded sigma', or its RF norm is infinite",
            "an unbounded one",
            "give the radius of the sphere that the first weights are drawn from",
        )
    return float(np.abs(own.dphi(np.zeros(1)))[0] + own.lipschitz * scalar("radius", radius))


def feature_error_bound(
    rf_norm: ArrayLike,
    features: int,
    d: int,
    C: Scalar,
    delta: Scalar = 0.01,
    form: str = "corrected",
) -> Numbers:
    """Proposition C.1: sup |g_hat - g| over the sphere with probability 1 - delta.

    Args:
        rf_norm: RF.
        features: M.
        d: the dimension.
        C: max(C1, C2).
        delta: the probability with which it may fail.
        form: "corrected": (C RF/sqrt(M))(2 sqrt(d) + sqrt(2 log 1/delta)), as the statement has it.
            "printed": what the printed last step of the proof, exp(-2 e^2/(M xi)) with xi not
            squared,
            would give: a tail sqrt(C RF log 1/delta) that no M makes small. "safe": 8(1 + sqrt(d))
                in
            place of 2 sqrt(d), as the contraction step takes c_i.x for a constant and sigma'(0) for
            0 (derived, not measured).
    """
    chosen("form", form, ("printed", "corrected", "safe"))
    size, M, dims = nonnegative("rf_norm", rf_norm), whole("features", features), whole("d", d)
    steep, surprise = scalar("C", C), -np.log(fraction("delta", delta))
    scale = steep * size / np.sqrt(M)
    if form == "printed":
        return (scale * 2 * np.sqrt(dims) + np.sqrt(steep * size * surprise))[()]
    mean = 2 * np.sqrt(dims) if form == "corrected" else 8 * (1 + np.sqrt(dims))
    return (scale * (mean + np.sqrt(2 * surprise)))[()]


def _density_ratio(g: Expansion, weights: Array) -> Array:
    """c(w)/p0(w), one row per weight."""
    if not np.isfinite(g.coefficients).all():
        raise AdvlabError(
            "an expansion with finite coefficients", "NaN", "look at the status of the fit"
        )
    return (g.activation.dphi(weights @ g.centres.T) * g.coefficients) @ g.centres
