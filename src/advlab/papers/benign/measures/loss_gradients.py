"""Losses, their gradient and its alignment: what makes all examples count alike."""

import math
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from ..theory import C1
from .snapshot import Snapshot, frobenius


class GradientBounds(NamedTuple):
    """Lemma B.7: low <= middle <= high."""

    low: Float[Tensor, " R"]
    middle: Float[Tensor, " R"]
    high: Float[Tensor, " R"]


def loss_ratio(now: Snapshot) -> Float[Tensor, " R"]:
    """Lemmas 4.4, B.9, B.26: max over i, j of g~_i/g~_j, bounded for all t."""
    return now.g.amax(1) / now.g.amin(1)


def robust_training_error(now: Snapshot) -> Float[Tensor, " R"]:
    """The share of y_i f(x~_i) <= 0, zero for every t >= 1 (Theorem 3.1)."""
    return (now.margin <= 0).to(now.margin).mean(1)


def noisy_training_error(now: Snapshot) -> Float[Tensor, " R"]:
    """The robust training error among the flipped labels; not a number where there are none."""
    noisy = now.data.noisy
    return ((now.margin <= 0) & noisy).sum(1) / noisy.sum(1)


def gradient_bounds(now: Snapshot, d: int, kappa: float) -> GradientBounds:
    """Lemma B.7: ||grad L_rob||_F/(sqrt(C1 d) + alpha) <= G_rob <= min(L_rob, 1), any W."""
    longest = math.sqrt(C1(kappa) * d) + now.radius
    low = frobenius(now.gradient) / longest
    return GradientBounds(low, now.G_rob, now.L_rob.clamp(max=1.0))


def gradient_alignment(now: Snapshot) -> Float[Tensor, " R"]:
    """Lemmas B.15, B.29: <-grad L_rob, V>/(||mu|| G_rob), V of rows a_s mu/(||mu|| sqrt m)."""
    length = now.mu.norm(dim=1)
    along = (-now.gradient @ now.mu[:, :, None])[:, :, 0]
    push = (now.net.top * along).sum(1) / (length * math.sqrt(now.net.width))
    return push / (length * now.G_rob)


def gradient_size(now: Snapshot, d: int) -> Float[Tensor, " R"]:
    """Eq. 5: ||grad L_rob||_F/(sqrt(d/n) G_rob), at most C2."""
    return frobenius(now.gradient) / (math.sqrt(d / now.x.shape[1]) * now.G_rob)
