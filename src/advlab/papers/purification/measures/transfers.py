"""Transfer: perturbations crafted on one network, shown to another (section 6.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....attacks import Attack
from ....core.errors import AdvlabError
from ....core.randomness import Rng
from ....models import Stack
from ....threats import Ball
from .networks import Nets, margin_of
from .perturbations import universal

Model = nn.Module | Nets
"""A network, a stack of them, or the tensors of either."""


@dataclass(frozen=True)
class Transfers:
    """Accuracies of K networks, or stacks of R networks, under each other's perturbations."""

    accuracy: Float[Tensor, "K K *R"]
    """Entry (a, b): network b at the points crafted on network a."""
    universal: Float[Tensor, "K *R"]
    """Each network under the universal perturbation."""
    clean: Float[Tensor, "K *R"]


@torch.no_grad()
def transfer_matrix(
    models: Sequence[Model],
    x: Float[Tensor, "*R n d"],
    y: Float[Tensor, "*R n"],
    ball: Ball,
    attack: Attack,
    direction: Float[Tensor, "*R d"],
    rng: Rng,
) -> Transfers:
    """Attack each model and show the points to all. Of stacks, replicate r meets replicate r.

    An output of 0 counts as wrong.

    Args:
        models: networks, stacks of R networks, or their tensors.
        x: inputs, with a replicate axis for stacks.
        y: labels in {-1, 1}.
        ball: the threat.
        attack: climbs -y f of each model.
        direction: M w*, for the universal perturbation.
        rng: one generator, or one per replicate.
    """
    check_stacks(models, x)
    rows, labels = x.reshape(-1, x.shape[-1]), y.reshape(-1)
    losses = [margin_of(model, labels) for model in models]

    def accuracies(points: Tensor) -> Tensor:
        right = torch.stack([loss(points) < 0 for loss in losses])
        return right.to(x).reshape(len(losses), *y.shape).mean(-1)

    crafted = [accuracies(attack(loss, rows, ball, rng=rng).x) for loss in losses]
    moved = (x + universal(direction, y, ball)).reshape(rows.shape)
    return Transfers(torch.stack(crafted), accuracies(moved), accuracies(rows))


def check_stacks(models: Sequence[Model], x: Tensor) -> None:
    """The data must have one block for each replicate of every model."""
    for model in models:
        if replicates(model) != x.shape[:-2].numel():
            raise AdvlabError(
                f"data with one block for each of {replicates(model)} replicates",
                f"x of shape {tuple(x.shape)}",
            )


def replicates(model: Model) -> int:
    """How many networks a model stands for."""
    if isinstance(model, Nets):
        return model.bias.numel()
    return model.replicates if isinstance(model, Stack) else 1


def replicate(model: Model, r: int) -> Model:
    """Network r of a stack; of one network, itself."""
    if isinstance(model, Nets):
        m, d = model.weight.shape[-2:]
        return Nets(
            model.weight.reshape(-1, m, d)[r],
            model.bias.reshape(-1)[r],
            model.sigma.reshape(-1)[r],
        )
    return model.replicate(r) if isinstance(model, Stack) else model
