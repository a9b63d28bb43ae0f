"""Networks trained on the points of Theorem 5.3, in a cube that is centred at 0.

Points (x, height phi(x)): x runs over a packing of the slice x_D = 0 and phi(x) is a fair coin. The
linear classifier x_D is right on all of them, and wrong after a step of height < delta.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .....attacks import PGD
from .....core.randomness import uniform
from .....losses import ModelLoss, margin
from .....models import Stack, TwoLayer
from .....threats import Ball
from .....training import Hook, fit
from ... import theory

TRAINED_ON = PGD(steps=5, step_size=0.3)
JUDGED_BY = PGD(steps=30, step_size=0.1, restarts=3)
Rngs = list[torch.Generator]


class Points(NamedTuple):
    """Inputs and labels of R data sets."""

    x: Float[Tensor, "R n d"]
    y: Float[Tensor, "R n"]

    def some(self, first: int | None, last: int | None = None) -> "Points":
        """The points from `first` up to `last` of each data set."""
        return Points(self.x[:, first:last], self.y[:, first:last])

    @property
    def rows(self) -> tuple[Tensor, Tensor]:
        """All data sets, one after the other, as a stack of networks takes them."""
        return self.x.flatten(0, 1), self.y.flatten()


def lifted_packings(d: int, delta: float, height: float, rngs: Rngs) -> Points:
    """The whole packing with coins of its own for each generator, in random order.

    Args:
        d: D.
        delta: the radius of the balls; the packing has spacing 2 delta or more.
        height: how far points are above or below the slice, less than delta.
        rngs: one generator per data set.
    """
    grid = theory.packing(d, delta)
    x, y = [], []
    for rng in rngs:
        coins = uniform(torch.empty(len(grid), dtype=torch.float64), rng)
        order = torch.randperm(len(grid), generator=rng)
        phi = (2.0 * (coins < 0.5).double() - 1).numpy()
        x.append(torch.from_numpy(theory.lifted(grid, phi, height, delta) - 0.5)[order])
        y.append(torch.from_numpy(phi)[order])
    return Points(torch.stack(x), torch.stack(y))


def trained(
    points: Points,
    ball: Ball | None,
    width: int,
    steps: int,
    lr: float,
    rngs: Rngs,
    hooks: list[Hook] | None = None,
) -> Stack:
    """Two-layer ReLU networks, one per data set, by Adam on the logistic loss of all points.

    Args:
        points: the training data.
        ball: what PGD of training may do to them; None is clean training.
        width: hidden units.
        steps: of Adam.
        lr: the rate of Adam.
        rngs: one generator per data set, for the start and the attacks.
        hooks: of `fit`.
    """
    d = points.x.shape[-1]
    net = Stack.draw(
        lambda rng: TwoLayer.draw(d, width, "relu", rng, init="torch", bias=True, train_top=True),
        rngs,
    )
    fit(net, points.x, points.y, steps=steps, lr=lr, loss="logistic", rng=rngs, ball=ball,
        attack=None if ball is None else TRAINED_ON, optimizer=torch.optim.Adam,
        hooks=hooks or [])  # fmt: skip
    return net


def wrong(net: nn.Module, points: Points) -> Bool[Tensor, "R n"]:
    """Which points themselves are on the wrong side."""
    x, y = points.rows
    with torch.no_grad():
        return (ModelLoss(net, y, margin)(x) >= 0).reshape(points.y.shape)


def broken(
    net: nn.Module, points: Points, ball: Ball, rngs: Rngs, by: PGD = JUDGED_BY
) -> Bool[Tensor, "R n"]:
    """Which balls an attack was found in: a lower bound of those that have one.

    PGD on the network, the step of length delta against x_D, and the point of the slice below.

    Args:
        net: a stack of networks.
        points: centres of the balls.
        ball: an l2 ball.
        rngs: of PGD.
        by: PGD.
    """
    x, y = points.rows
    found = by(ModelLoss(net, y, margin), x, ball, rng=rngs).loss >= 0
    found = found.reshape(points.y.shape)
    for step in (float(ball.radius), float(points.x[..., -1].abs().max())):
        found |= wrong(net, Points(against(points, step), points.y))
    return found


def against(points: Points, step: float) -> Float[Tensor, "R n d"]:
    """The points after a step against their label along the last axis: an attack on x_D."""
    x = points.x.clone()
    x[..., -1] -= step * points.y
    return x


def values(net: nn.Module, x: Float[Tensor, "R k d"]) -> Float[np.ndarray, "R k"]:
    """Outputs of a stack."""
    with torch.no_grad():
        return net(x.flatten(0, 1)).reshape(x.shape[:2]).numpy()
