"""Lemma A.4: moving a deep network's input is moving its first hidden layer."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..models import DeepReLU


@dataclass(frozen=True)
class WeightMove:
    """A first hidden layer that does to x what the network's own does to another input."""

    weight: Float[Tensor, "m m"]
    """W1~."""
    norm: float
    """||W1~ - W1||_F."""
    bound: float
    """||W1||_2 ||A||_2 ||x - x'|| / ||A x||, which the norm never exceeds."""


def as_weight_move(
    model: DeepReLU, x: Float[Tensor, " d"], other: Float[Tensor, " d"]
) -> WeightMove:
    """Lemma A.4, an identity: W1~ = W1 + W1 (A other - A x) (A x)^T / ||A x||^2 in place of W1.

    With it the network has at x the pre-activations and signs that it has at `other`, in every
    layer.

    Args:
        model: the network.
        x: the input.
        other: the input it is moved to.
    """
    first, start, moved = model.hidden[0].detach(), model.bottom @ x, model.bottom @ other
    change = torch.outer(first @ (moved - start), start) / start.dot(start)
    lengths = torch.linalg.matrix_norm(first, 2) * torch.linalg.matrix_norm(model.bottom, 2)
    bound = lengths * (x - other).norm() / start.norm()
    return WeightMove(first + change, float(change.norm()), float(bound))
