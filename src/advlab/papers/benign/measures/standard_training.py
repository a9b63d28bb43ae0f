"""How far adversarial training is from standard training (Section 4)."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from .snapshot import Networks, Snapshot, frobenius


def trajectory_cosine(one: Networks, other: Networks) -> Float[Tensor, " R"]:
    """cos(W_adv, W_std) at one step of two runs from one start; near 1 if alpha << ||mu||."""
    return F.cosine_similarity(one.weight.flatten(1), other.weight.flatten(1), dim=1)


def gradient_gap(now: Snapshot) -> Float[Tensor, " R"]:
    """||grad_adv - grad_std||_F/||grad_std||_F at the same W."""
    standard = Snapshot.at(now.net, now.data, now.mu, now.radius, now.data.x).gradient
    return frobenius(now.gradient - standard) / frobenius(standard)
