"""How lazy a two-layer network is: its distance from the linear network it should follow.

The proofs of Theorems 3 and 4 compare three runs on the same data: OP1, a linear
network from zero; OP2, a network with phi from zero; OP3, the same from its vanishing start. All
three measures fall as the width grows where the theorems apply.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def weighted(theta: Float[Tensor, "R h d"], top: Float[Tensor, "R h"]) -> Float[Tensor, "R d"]:
    """theta'a / sqrt(h): the linear part of a network, without the slope of phi."""
    return torch.einsum("rhd,rh->rd", theta, top) / math.sqrt(top.shape[1])


def function_distance(
    linear: Float[Tensor, "R d"], zero: Float[Tensor, "R d"], theta0: Float[Tensor, "R d"]
) -> Float[Tensor, " R"]:
    """D_12 = |(theta^OP1 - theta^OP2)'a| / (sqrt(h) |theta0|), from the two runs' `weighted`."""
    return (linear - zero).norm(dim=1) / theta0.norm(dim=1)


def weight_distance(
    zero: Float[Tensor, "R h d"], vanishing: Float[Tensor, "R h d"], n: int
) -> Float[Tensor, " R"]:
    """D_23 = |theta^OP3 - theta^OP2|_F sqrt(d log n)."""
    return (vanishing - zero).flatten(1).norm(dim=1) * math.sqrt(zero.shape[2] * math.log(n))


def linearisation_radius(
    theta: Float[Tensor, "R h d"], x: Float[Tensor, "R n d"]
) -> Float[Tensor, " R"]:
    """max over i and j of |x_i'theta_j|: phi is used within this distance of zero."""
    return (x @ theta.mT).abs().amax(dim=(1, 2))
