"""The test errors of Theorem 4.1: memorised noise V = sum_{j,r} <b_r, X[j]>^3 on fresh inputs."""

from math import e

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    finite,
    nonnegative,
    positive,
    together,
)
from ....core.errors import AdvlabError


def noise_variance(weight_gram: ArrayLike, sigma: ArrayLike, P: Scalar) -> Numbers:
    """Var V = (P - 1) sigma^6 sum_{r,q} (9 A_rr A_qq A_rq + 6 A_rq^3), A_rq = <b_r, b_q>; exact.

    Args:
        weight_gram: A, of the weights b_r beside w*; axes before the last two are a batch.
        sigma: the spread of the noise.
        P: the number of patches.
    """
    A = _gram(weight_gram)
    own = np.diagonal(A, axis1=-2, axis2=-1)
    pairs = 9 * own[..., :, None] * own[..., None, :] * A + 6 * A**3
    return ((positive("P", P) - 1) * positive("sigma", sigma) ** 6 * pairs.sum((-2, -1)))[()]


def subgaussian_parameter(weight_gram: ArrayLike, sigma: ArrayLike, P: Scalar) -> Numbers:
    """sigma^3 sqrt((P - 1) sum_r ||b_r||^6): the paper's (Theorem C.12).

    V is no sub-Gaussian, and its standard deviation is larger. Arguments as for `noise_variance`.
    """
    own = np.diagonal(_gram(weight_gram), axis1=-2, axis2=-1)
    total = (positive("P", P) - 1) * (own**3).sum(-1)
    return (positive("sigma", sigma) ** 3 * np.sqrt(total))[()]


def error_from_noise(noise: ArrayLike, signal: ArrayLike) -> Numbers:
    """P(V <= -signal) = (1 - P(|V| <= signal))/2 for signal >= 0, from draws of V.

    V is symmetric, so |V| tells all, and the error is at most 1/2.

    Args:
        noise: draws of V along the last axis.
        signal: alpha^3 U for the clean test error, (alpha (1 - gamma))^3 U for that on GTA
            examples.
    """
    V, s = finite("noise", noise), nonnegative("signal", signal)
    together(noise=V[..., 0], signal=s)
    return ((1 - (np.abs(V) <= s[..., None]).mean(-1)) / 2)[()]


def chebyshev_error(variance: ArrayLike, signal: ArrayLike) -> Numbers:
    """The test error is at most Var V/(2 signal^2), and 1/2, for signal > 0.

    Args:
        variance: Var V.
        signal: as for `error_from_noise`.
    """
    spread, s = nonnegative("variance", variance), positive("signal", signal)
    together(variance=spread, signal=s)
    return np.minimum(spread / (2 * s**2), 0.5)[()]


def chaos_tail(t: ArrayLike) -> Numbers:
    """P(|V| >= t sd(V)) <= exp(-(3/(2e)) t^(2/3)) from t = (2e)^(3/2) on; below, 1.

    V is a polynomial of degree 3 in normals: its q-norm is at most (q - 1)^(3/2) sd, and Markov's
    inequality at q = t^(2/3)/e >= 2 gives this.

    Args:
        t: in standard deviations.
    """
    place = nonnegative("t", t)
    return np.where(place >= (2 * e) ** 1.5, np.exp(-1.5 / e * np.cbrt(place) ** 2), 1.0)[()]


def _gram(weight_gram: ArrayLike) -> Array:
    A = finite("weight_gram", weight_gram)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise AdvlabError("weight_gram must end in two equal axes", A.shape)
    return A
