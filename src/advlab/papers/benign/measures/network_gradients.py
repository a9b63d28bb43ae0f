"""How the gradients of the network in its weights lie to each other (Lemma B.8)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .snapshot import Snapshot


class GradientProducts(NamedTuple):
    """Products <grad f(u; W), grad f(v; W)> at points u, v of the balls; one number per network."""

    apart: Float[Tensor, " R"]
    """The largest size between x~_i and x~_j, i != j."""
    half_clean: Float[Tensor, " R"]
    """The largest size between x_i and x~_j, i != j."""
    own_low: Float[Tensor, " R"]
    own_high: Float[Tensor, " R"]
    """The smallest and the largest between x~_i and x~_i or x_i."""


def gradient_products(now: Snapshot) -> GradientProducts:
    """Lemma B.8: <grad f(u), grad f(v)> = (1/m) sum_s phi'(<w_s, u>) phi'(<w_s, v>) <u, v>.

    Between examples it is at most C1 (||mu||^2 + sqrt(d log(n/delta))) + 2 alpha sqrt(C1 d) +
    alpha^2, with x_i itself in place of x~_i at most that with one alpha sqrt(C1 d) and no alpha^2;
    in one ball it is between gamma^2 (sqrt(d/C1) - alpha)^2 and (sqrt(C1 d) + alpha)^2.
    """
    clean = now.net.activation.dphi(now.net.inner(now.data.x))
    m = now.net.width
    both = (now.slope @ now.slope.mT / m) * (now.x @ now.x.mT)
    half = (clean @ now.slope.mT / m) * (now.data.x @ now.x.mT)
    own = torch.cat([both.diagonal(dim1=1, dim2=2), half.diagonal(dim1=1, dim2=2)], 1)
    same = torch.eye(both.shape[1], dtype=torch.bool)
    apart, half_clean = (one.masked_fill(same, 0.0).abs().amax((1, 2)) for one in (both, half))
    return GradientProducts(apart, half_clean, own.amin(1), own.amax(1))
