"""Sums over the steps of a run: how the weights grow and the loss falls."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from .snapshot import Networks, Snapshot, frobenius


def weight_norm(net: Networks) -> Float[Tensor, " R"]:
    """||W||_F"""
    return frobenius(net.weight)


def norm_growth(
    norms: Float[Tensor, "steps R"], G_rob: Float[Tensor, "steps R"], eta: float, d: int, n: int
) -> Float[Tensor, "steps R"]:
    """Lemma B.12: (||W^t||_F - ||W^0||_F)/(eta sqrt(d/n) sum_{s < t} G_rob(W^s)), at most C2.

    Args:
        norms: ||W^t||_F of every step from t = 0.
        G_rob: G_rob(W^t) of the same steps.
        eta, d, n: step size, dimension and number of examples.

    Returns:
        One row per step; 0 at t = 0.
    """
    room = eta * math.sqrt(d / n) * sum_before(G_rob)
    return torch.where(room > 0, (norms - norms[0]) / room, 0.0)


def averaged_bound(G_rob: Float[Tensor, "steps R"]) -> Float[Tensor, "steps R"]:
    """(2/T) sum_{t < T} G_rob(W^t), which bounds L_rob(W^T) while margins grow (proof of B.15).

    One row per step from T = 0, where the sum is empty and the bound infinite.
    """
    steps = torch.arange(len(G_rob)).to(G_rob)[:, None]
    return torch.where(steps > 0, 2 * sum_before(G_rob) / steps, math.inf)


def sum_before(values: Float[Tensor, "steps R"]) -> Float[Tensor, "steps R"]:
    """The sum over all earlier steps."""
    return torch.cat([torch.zeros_like(values[:1]), values.cumsum(0)[:-1]])


def relative_move(now: Snapshot, eta: float) -> Float[Tensor, " R"]:
    """||W^{t+1} - W^t||_F/||W^t||_F; at t = 0 at least gamma ||mu||/10 (Proposition B.34)."""
    return eta * frobenius(now.gradient) / weight_norm(now.net)
