"""Where a neuron's margin on a fresh point comes from in one step (proof of Lemma B.30)."""

import math
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from ..data import Clusters
from .snapshot import Snapshot, stacked


class Decomposition(NamedTuple):
    """a_s y <w_s^{t+1} - w_s^t, x> = B1 + B2 + B3 + B4 at each test point and neuron."""

    signal: Float[Tensor, "R k m"]
    """B1: ||mu||^2 + y_i^c <mu, xi_i + e_i>, over all examples."""
    flips: Float[Tensor, "R k m"]
    """B2: -2 times the same, over the flipped ones."""
    test_noise: Float[Tensor, "R k m"]
    """B3: y_i y_i^c y <mu, xi>."""
    noise_products: Float[Tensor, "R k m"]
    """B4: y_i y <xi_i + e_i, xi>."""


def margin_decomposition(now: Snapshot, eta: float, test: Clusters) -> Decomposition:
    """Lemma B.30 on test points x = y mu + xi with clean labels y, where e_i = x~_i - x_i."""
    test, data = stacked(test), now.data
    n, root = now.x.shape[1], math.sqrt(now.net.width)
    share = (eta / (n * root)) * now.g[:, :, None] * now.slope
    noise = data.noise + now.x - data.x
    own = now.mu.square().sum(1, keepdim=True) + data.y_clean * _along(now, noise)
    signal = (own[:, None] @ share).expand(-1, test.x.shape[1], -1)
    flips = (-2 * (own * data.noisy)[:, None] @ share).expand(-1, test.x.shape[1], -1)
    agree = (data.y * data.y_clean)[:, None] @ share
    beside = (test.y_clean * _along(now, test.noise))[:, :, None] * agree
    products = test.y_clean[:, :, None] * (test.noise @ (data.y[:, :, None] * noise).mT)
    return Decomposition(signal, flips, beside, products @ share)


def _along(now: Snapshot, vectors: Float[Tensor, "R k d"]) -> Float[Tensor, "R k"]:
    """<mu, v>"""
    return (vectors @ now.mu[:, :, None])[:, :, 0]
