"""The terms of Theorem E.1 for trained two-layer ReLU networks, by Monte Carlo and search.

Inputs are those of `flatness_rate`: y mu + N(0, I) with ||mu|| = 1. Networks are trained by Adam
against l2 PGD at the radius that they are looked at with.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .....attacks import PGD
from .....core.randomness import generators, normal, uniform
from .....losses import ModelLoss, logistic
from .....measure.sharpness import input_sharpness
from .....threats import Ball
from ...theory.flatness_terms import RateTerms
from .packing_runs import Points, Rngs, trained

WIDTH, RATE = 32, 0.01
LOOKED_AT = PGD(steps=10, step_size=0.25, restarts=2)
DRAWS = 10
"""Random points of each ball."""


class Losses(NamedTuple):
    """Of each input, for each network: its own, the largest found in its ball, and the mean over
    random points there."""

    clean: Float[Tensor, "R n"]
    worst: Float[Tensor, "R n"]
    noisy: Float[Tensor, "R n"]


def network_terms(
    stream: str, D: int, N: int, delta: float, seeds: tuple[int, ...], steps: int, fresh: int
) -> list[RateTerms]:
    """Train one network per seed, and measure both sides of the bound.

    The largest gradients, and so G, are LOWER bounds, and so are the robust losses of the gap.

    Args:
        stream: names the random numbers.
        D: the dimension.
        N: training inputs.
        delta: the radius of training and of the bound.
        seeds: one network each.
        steps: of Adam.
        fresh: inputs that stand for the population; a tenth of them for G.
    """

    def rngs(name: str) -> Rngs:
        return generators(stream, "network", name, D, N, seeds=seeds)

    ball = Ball(norm="l2", radius=delta)
    train, test = clusters(D, N, rngs("train")), clusters(D, fresh, rngs("fresh"))
    net = trained(train, ball, WIDTH, steps, RATE, rngs("start"))
    seen, unseen = (losses(net, part, ball, rngs("look")) for part in (train, test))
    steepest = _steepest(net, test.some(0, max(fresh // 10, 1)), ball, rngs("search"))
    return [
        RateTerms(
            gap=float(unseen.worst[r].mean() - seen.worst[r].mean()),
            smoothing=float((unseen.clean[r].mean() - unseen.noisy[r].mean()).abs()),
            sampling=float(unseen.noisy[r].mean() - seen.noisy[r].mean()),
            sharpness=delta * float(steepest[r].mean()),
        )
        for r in range(len(seeds))
    ]


def clusters(D: int, n: int, rngs: Rngs) -> Points:
    """n inputs y mu + N(0, I) for each generator; mu is along the diagonal.

    Args:
        D: the dimension.
        n: how many.
        rngs: one generator per data set.
    """
    noise = torch.empty(len(rngs) * n, D, dtype=torch.float64)
    y = 2 * (uniform(noise[:, 0], rngs) < 0.5).double() - 1
    x = normal(noise, rngs) + y[:, None] / D**0.5
    return Points(x.reshape(len(rngs), n, D), y.reshape(len(rngs), n))


def losses(net: nn.Module, points: Points, ball: Ball, rngs: Rngs) -> Losses:
    """Logistic losses of a stack on the balls of data sets.

    Args:
        net: a stack of networks.
        points: centres, a data set per network.
        ball: around each.
        rngs: of PGD and of the random points.
    """
    x, y = points.rows
    loss = ModelLoss(net, y, logistic)
    worst = LOOKED_AT(loss, x, ball, rng=rngs).loss
    with torch.no_grad():
        clean = loss(x)
        noisy = torch.stack([loss(ball.sample(x, rng=rngs)) for _ in range(DRAWS)]).mean(0)
    return Losses(*(one.reshape(points.y.shape) for one in (clean, worst, noisy)))


def _steepest(net: nn.Module, points: Points, ball: Ball, rngs: Rngs) -> Float[Tensor, "R n"]:
    x, y = points.rows
    found = input_sharpness(
        net, x, y, ball, loss=logistic, attack=LOOKED_AT, draws=12, starts=2, climb=8,
        bound=False, rng=rngs,
    )  # fmt: skip
    return found.steepest.detach().reshape(points.y.shape)
