"""Model-free perturbations, and how dense perturbations are in the basis of the dictionary."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ....threats import Ball


@torch.no_grad()
def participation(coordinates: Float[Tensor, "*R n D"]) -> Float[Tensor, "*R n"]:
    """(sum_j c_j^2)^2 / sum_j c_j^4: how many coordinates a row spreads over, 0 for a zero row.

    For perturbations give delta M, for data z itself.
    """
    size = coordinates.abs().amax(-1, keepdim=True)
    # Fourth powers of small perturbations would underflow in float32.
    c = torch.where(size > 0, coordinates / size, 0.0) ** 2
    return torch.where(size[..., 0] > 0, c.sum(-1) ** 2 / (c**2).sum(-1), 0.0)


@torch.no_grad()
def energy_count(coordinates: Float[Tensor, "*R n D"], share: float = 0.9) -> Int[Tensor, "*R n"]:
    """The fewest coordinates that hold this share of a row's energy, 0 for a zero row."""
    energy = (coordinates**2).sort(dim=-1, descending=True).values.cumsum(-1)
    return ((energy < share * energy[..., -1:]).sum(-1) + 1) * (energy[..., -1] > 0)


@torch.no_grad()
def universal(
    direction: Float[Tensor, "*R d"], y: Float[Tensor, "*R n"], ball: Ball
) -> Float[Tensor, "*R n d"]:
    """Theorem 5.1c: -tau y M w*/|M w*| in l2, -tau y sign(M w*) in linf (`direction` is M w*)."""
    steepest = ball.steepest(direction.reshape(-1, direction.shape[-1])).reshape(direction.shape)
    return -ball.radius * y[..., None] * steepest[..., None, :]
