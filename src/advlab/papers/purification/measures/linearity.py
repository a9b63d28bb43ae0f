"""How linear the network is in its input: why FGM suffices where it does (Corollary F.2)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ....attacks.base import value_and_gradient
from .networks import margin_of
from .transfers import Model, check_stacks

MARGIN, GAP = 10.0, 1.0
"""The paper's numbers: a margin of 10 at the FGM point and a gap of 1 leave at least 8."""


@torch.no_grad()
def linearity_gap(
    model: Model, x: Float[Tensor, "*R n d"], delta: Float[Tensor, "*R n d"]
) -> Float[Tensor, "*R n"]:
    """|f(x + delta) - f(x) - <grad f(x), delta>|"""
    check_stacks([model], x)
    rows, moves = (t.reshape(-1, x.shape[-1]) for t in (x, delta))
    loss = margin_of(model, torch.ones_like(rows[:, 0]))
    value, grad = value_and_gradient(loss, rows)
    gap = (loss(rows + moves) - value - (grad * moves).sum(-1)).abs()
    return gap.reshape(x.shape[:-1])


@dataclass(frozen=True)
class FGMArgument:
    """y f(x + delta) >= y f(x + delta_FGM) - 2 gap, for a gap on the whole ball.

    A gap over some deltas proves nothing about the others: `certificate` is what proves.
    """

    margin: Float[Tensor, "*R n"]
    """y f(x + delta_FGM)"""
    gap: Float[Tensor, "*R n"]
    """The largest linearity gap over the FGM point and the given deltas."""

    @property
    def floor(self) -> Float[Tensor, "*R n"]:
        """What the argument leaves of the margin; positive where it goes through."""
        return self.margin - 2 * self.gap

    @property
    def literal(self) -> Bool[Tensor, "*R n"]:
        """Margin at least 10 and gap at most 1, as the paper has it."""
        return (self.margin >= MARGIN) & (self.gap <= GAP)


@torch.no_grad()
def fgm_argument(
    model: Model,
    x: Float[Tensor, "*R n d"],
    y: Float[Tensor, "*R n"],
    fgm: Float[Tensor, "*R n d"],
    deltas: list[Float[Tensor, "*R n d"]],
) -> FGMArgument:
    """The margin at the FGM point and the largest linearity gap seen.

    Args:
        model: a network, a stack of them, or the tensors of either.
        x: inputs.
        y: labels in {-1, 1}.
        fgm: the FGM perturbation of each input.
        deltas: other perturbations of the ball, such as those of PGD.
    """
    gaps = torch.stack([linearity_gap(model, x, delta) for delta in (fgm, *deltas)])
    moved = (x + fgm).reshape(-1, x.shape[-1])
    margin = -margin_of(model, y.reshape(-1))(moved).reshape(y.shape)
    return FGMArgument(margin, gaps.amax(0))
