"""How unlikely it is that a sum of w*_j z_j falls into a small interval (Lemma H.1)."""

import numpy as np
from scipy.special import gammaln
from scipy.stats import binom

from ....core.checks import Scalar, length, scalar, whole
from ....core.errors import AdvlabError
from .inputs import sizes
from .law import HiddenLaw


def small_ball_bound(law: HiddenLaw, w_least: Scalar, size: int, t: Scalar) -> float:
    """P(|sum_{j in L} w*_j z_j - r| <= t) <= E[min(1, (floor(t/a) + 1) C(n, n/2)/2^n)], any r.

    Lemma H.1a with its constants: n ~ Binomial(size, P(z_j != 0)) entries of L are not zero, each
    at least a = w_least min|z_j| in size, and by Littlewood and Offord (Erdos' form) a half-open
    interval of length 2a has at most C(n, n/2)/2^n.
    """
    n = np.arange(_members(law.d, size) + 1)
    a = length("w_least", w_least) * min(low for low, _, p in law.pieces if p)
    intervals = np.floor(scalar("t", t) / a) + 1
    half = n // 2
    central = np.exp(gammaln(n + 1) - gammaln(half + 1) - gammaln(n - half + 1) - n * np.log(2))
    return float(binom.pmf(n, size, law.activity) @ np.minimum(intervals * central, 1))


def small_ball_order(d: Scalar, k: Scalar, size: int, t: Scalar) -> float:
    """t/sqrt(|L|/d) + 1/sqrt(|L| k/d): Lemma H.1a without its constant."""
    dimension, sparsity = sizes(d, k)
    share = _members(dimension, size) / dimension
    return float(scalar("t", t) / np.sqrt(share) + 1 / np.sqrt(share * sparsity))


def small_ball_floor_order(k: Scalar, t: Scalar) -> float:
    """t - log k/sqrt(k), at least 0: Lemma H.1b without its constants, for |L| of order d."""
    sparsity = length("k", k)
    return float(max(scalar("t", t) - np.log(sparsity) / np.sqrt(sparsity), 0.0))


def _members(d: int, size: int) -> int:
    found = whole("size", size, 1)
    if found > d:
        raise AdvlabError(f"at most all {d} coordinates", found)
    return found
