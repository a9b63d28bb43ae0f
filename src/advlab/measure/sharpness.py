"""How sharp a model's loss is around an input: the steepest gradient and the highest rise nearby.

The CGRO paper (section 6, Theorem E.1) calls this flatness, though larger means sharper: the global
one, a mean over the population, bounds how far the robust loss of test data is above the clean.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..attacks import PGD, Attack, Loss
from ..attacks.base import value_and_gradient
from ..core.randomness import Rng, generator
from ..losses import ModelLoss, PerExample, resolve
from ..threats import Ball
from ..threats.base import check_finite

Values = Float[Tensor, " batch"]


@dataclass(frozen=True)
class Sharpness:
    """Of each input; `steepest` and `rise` are LOWER estimates of maxima over the ball."""

    loss: Values
    slope: Values
    """||grad_x L|| at the input itself, in the dual norm of the ball."""
    steepest: Values
    """The largest such norm at a point of the ball: `sharp` of the paper."""
    rise: Values
    """The largest loss in the ball less that at the input: `dloss` of the paper."""


def input_sharpness(
    model: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    ball: Ball,
    *,
    loss: str | PerExample = "cross_entropy",
    attack: Attack | None = None,
    along: int = 10,
    rng: Rng | None = None,
) -> Sharpness:
    """The steepest gradient and the highest rise among the points that an attack looks at.

    The attack climbs the loss (by default PGD with 10 steps and 2 random starts). Gradients are
    taken where it took them and at `along` points of the way from the input to its answer: by the
    mean value theorem one on that way is at least rise/radius, so that rise <= radius * steepest
    holds for the estimates too, up to the spacing of those points.
    """
    rng = generator("input_sharpness") if rng is None else rng
    attack = attack or PGD(steps=10, step_size=0.25, restarts=2)
    check_finite(x, "inputs")
    noted = _Noted(ModelLoss(model, y, resolve(loss)), ball)
    clean, slope = noted.look(x)
    found = attack(noted, x, ball, rng=rng)
    for part in range(along):
        noted.look(x + (part + 0.5) / along * (found.x - x))
    noted.look(found.x)
    rise = torch.maximum(found.loss, clean) - clean
    return Sharpness(loss=clean, slope=slope, steepest=noted.steepest, rise=rise)


class _Noted:
    """A loss that keeps, row by row, the largest dual norm of the gradients it was asked for."""

    def __init__(self, loss: Loss, ball: Ball):
        self.loss, self.ball = loss, ball
        self.steepest: Tensor = torch.tensor(0.0)

    def __call__(self, x: Tensor) -> Tensor:
        return self.loss(x)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, grad = value_and_gradient(self.loss, x)
        self.steepest = torch.maximum(self.steepest, self.ball.dual_norm(grad.flatten(1)))
        return value, grad

    def look(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The loss at a point, and the norm of its gradient."""
        value, grad = self.value_and_gradient(x)
        return value, self.ball.dual_norm(grad.flatten(1))
