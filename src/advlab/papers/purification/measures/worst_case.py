"""The worst case that four kinds of attack find together, example by example.

`worst` = universal, FGM, and PGD from four starts (FGM, universal, a random direction, its
opposite). An example leaves the search as soon as one attack breaks it: only survivors cost time.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ....attacks.base import value_and_gradient
from ....core.randomness import Rng, normal
from ....losses import ModelLoss
from ....threats import Ball
from ....threats.base import per_example
from .networks import NetMargin, margin_of
from .perturbations import universal as universal_move
from .transfers import Model, check_stacks, replicate

CUTOFF = 1e-6
"""Section 4.2's 1/poly(d): a gradient of f that is shorter in the dual norm makes no move."""
STRIDE = 2.5
"""The steps of PGD add up to this many radii."""


@dataclass(frozen=True)
class Survival:
    """Which examples are classified right, whatever an attack tries; an output of 0 is wrong.

    PGD and the worst case may also leave an example where it is, so worst <= pgd <= fgm,
    pgd <= clean and worst <= universal hold example by example.
    """

    clean: Bool[Tensor, "*R n"]
    random: Bool[Tensor, "*R n"]
    """At a random direction on the boundary."""
    universal: Bool[Tensor, "*R n"]
    fgm: Bool[Tensor, "*R n"]
    """At the FGM point of section 4.2, whatever it costs."""
    pgd: Bool[Tensor, "*R n"]
    """PGD from the FGM point alone."""
    worst: Bool[Tensor, "*R n"]

    def accuracies(self) -> dict[str, Float[Tensor, "*R"]]:
        """The share of examples that survive each attack, by its name."""
        return {name: flags.double().mean(-1) for name, flags in vars(self).items()}


@torch.no_grad()
def survival(
    model: Model,
    x: Float[Tensor, "*R n d"],
    y: Float[Tensor, "*R n"],
    ball: Ball,
    direction: Float[Tensor, "*R d"],
    rng: Rng,
    steps: int = 40,
) -> Survival:
    """Attack a network, or each network of a stack, at radius tau.

    Args:
        model: a network, a stack of them, or the tensors of either.
        x: inputs, with a replicate axis for stacks.
        y: labels in {-1, 1}.
        ball: the threat.
        direction: M w*, for the universal perturbation.
        rng: one generator, or one per replicate.
        steps: of PGD.
    """
    check_stacks([model], x)
    d = x.shape[-1]
    noise = normal(x.reshape(-1, d), rng).reshape(x.shape)
    parts = zip(
        x.reshape(-1, *x.shape[-2:]),
        y.reshape(-1, y.shape[-1]),
        direction.reshape(-1, d),
        noise.reshape(-1, *x.shape[-2:]),
        strict=True,
    )
    found = []
    for r, (rows, labels, way, guess) in enumerate(parts):
        loss = margin_of(replicate(model, r), labels)
        if isinstance(loss, NetMargin):
            loss = replace(loss, nets=loss.nets.firing(rows, ball))
        found.append(_survival(loss, rows, labels, ball, way, guess, steps))
    return Survival(
        **{name: torch.stack([vars(f)[name] for f in found]).reshape(y.shape) for name in NAMES}
    )


NAMES = ("clean", "random", "universal", "fgm", "pgd", "worst")


def _survival(
    loss: NetMargin | ModelLoss,
    x: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    ball: Ball,
    direction: Float[Tensor, " d"],
    noise: Float[Tensor, "n d"],
    steps: int,
) -> Survival:
    value, grad = value_and_gradient(loss, x)
    clean = value < 0
    long = per_example(ball.dual_norm(grad) >= CUTOFF, grad)
    fast, best = ball.maximiser(grad * long, x), x + universal_move(direction, y, ball)
    guess = ball.radius * ball.steepest(noise)
    fgm = loss(fast) < 0
    hit, drawn = loss(best) < 0, loss(x + guess) < 0
    pgd = survives_pgd(loss, x, fast, ball, clean & fgm, steps)
    worst = pgd & hit & drawn
    for start in (best, x + guess, x - guess):
        worst = survives_pgd(loss, x, start, ball, worst, steps)
    return Survival(clean, drawn, hit, fgm, pgd, worst)


def survives_pgd(
    loss: NetMargin | ModelLoss,
    x: Float[Tensor, "n d"],
    start: Float[Tensor, "n d"],
    ball: Ball,
    among: Bool[Tensor, " n"],
    steps: int,
) -> Bool[Tensor, " n"]:
    """Which of the rows in `among` survive PGD from `start`: every point on the way is judged.

    It ends with a jump to the point of the ball that the last gradient calls worst.

    Args:
        loss: -y f of each row.
        x: the clean inputs.
        start: where PGD begins, row by row.
        ball: the threat.
        among: the rows to attack; others do not survive.
        steps: of PGD.
    """
    left = among.nonzero()[:, 0]
    point = start[left]
    for step in range(steps + 2):
        if len(left) == 0:
            break
        value, grad = value_and_gradient(loss.rows(left), point)
        right = value < 0
        left, point, grad = left[right], point[right], grad[right]
        if step < steps:
            move = STRIDE / steps * ball.radius * ball.steepest(grad)
            point = ball.project(point + move, x[left])
        else:
            point = ball.maximiser(grad, x[left])
    return torch.zeros_like(among).scatter(0, left, True)


def half_radius(
    share: Callable[[float], float], low: float, high: float, halvings: int = 5
) -> float:
    """The radius at which half of the inputs break: bisection on a log scale, then interpolation.

    Args:
        share: the share that survives at a radius; falls as the radius grows.
        low: where the search begins; returned if half are broken there.
        high: where it ends; returned if half survive there.
        halvings: how often the interval is halved.

    Example:
        from advlab.papers.purification.measures import half_radius
        half_radius(lambda r: 1 / (1 + r), 0.1, 10.0)   # 1.0
    """
    above, below = share(low), share(high)
    if above < 0.5 or below >= 0.5:
        return low if above < 0.5 else high
    for _ in range(halvings):
        middle = (low * high) ** 0.5
        found = share(middle)
        if found >= 0.5:
            low, above = middle, found
        else:
            high, below = middle, found
    return low * (high / low) ** ((above - 0.5) / (above - below))
