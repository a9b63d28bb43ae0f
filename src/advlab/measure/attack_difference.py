"""How far apart an attack ends from two random starts, and how much a surrogate attack shrinks.

Figure 8 of the generalization paper: ||A_1 - A_2|| over training, as it is and over eps. Where the
loss is close to linear in the input both starts end at one point; the rougher it is, the farther
apart. The surrogate attack A_{eps,xi} (section 2.1) only differs from A_eps where its factor is
below one: at a factor of .999 comparing the two says nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..attacks import PGD, Attack
from ..attacks.base import value_and_gradient
from ..core.autocast import only_for_the_model
from ..core.checks import chosen, scalar
from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..losses import ModelLoss, PerExample, resolve
from ..threats import Threat
from ..threats.base import per_example
from ._parts.batches import batches, randomness

Values = Float[Tensor, " n"]


@dataclass(frozen=True)
class AttackDifference:
    """Of each example, on the CPU."""

    distance: Values
    """||A_1 - A_2|| in the norm of the set, between 0 and twice the radius."""
    random: Values
    """The same for two random points of the set: the distance if the attack did nothing."""
    radius: float

    @property
    def relative(self) -> Values:
        """The distance over the radius, between 0 and 2."""
        return self.distance / self.radius


@only_for_the_model
def attack_difference(
    model: Callable[[Tensor], Any],
    x: Any,
    y: Any,
    ball: Threat,
    *,
    loss: str | PerExample = "cross_entropy",
    attack: Attack | None = None,
    batch: int | None = None,
    rng: Rng | int | None = None,
) -> AttackDifference:
    """The distance between the answers of one attack from two independent random starts.

    Args:
        model: the network, judged in eval mode and left as it was.
        x: inputs, one row per example.
        y: labels, as the loss wants them.
        ball: the threat set, of radius above zero.
        loss: a name or a function of outputs and labels, one value per example.
        attack: starts at random; by default the paper's, 5 steps of 2/5 of the radius, whose last
            point counts.
        batch: rows at a time; all at once if left out.
        rng: where starts come from; a whole number is a seed.

    Example:
        from advlab.measure.attack_difference import attack_difference
        from advlab.threats import Ball
        found = attack_difference(model, x, y, Ball("l2", 0.5, box=(0, 1)))
        found.relative.mean(), (found.random / found.radius).mean()
    """
    if not ball.radius > 0:
        raise AdvlabError("a set of radius above zero", ball.radius)
    attack = attack or PGD(steps=5, step_size=0.4, keep="last", jump=False)
    rng, measured = randomness(rng, "attack_difference"), resolve(loss)
    distances, controls = [], []
    for some, labels in batches(model, x, y, batch):
        climbed = ModelLoss(model, labels, measured)
        first, second = (attack(climbed, some, ball, rng=rng).x for _ in range(2))
        distances.append(ball.norm_of(first - second).cpu())
        first, second = (ball.sample(some, rng=rng) for _ in range(2))
        controls.append(ball.norm_of(first - second).cpu())
    return AttackDifference(torch.cat(distances), torch.cat(controls), ball.radius)


@only_for_the_model
def surrogate_shrinkage(
    model: Callable[[Tensor], Any],
    x: Any,
    y: Any,
    ball: Threat,
    xi: float,
    *,
    loss: str | PerExample = "cross_entropy",
    gradient: str = "example",
    batch: int | None = None,
) -> Values:
    """The factor by which A_{eps,xi} shrinks each example's attack, between 0 and 1.

    In l2 it is |g| / sqrt(|g|^2 + xi^2). In linf each coordinate has its own, |g_i| / (|g_i| + xi):
    their mean is given.

    Args:
        model: the network, judged in eval mode and left as it was.
        x: inputs, one row per example.
        y: labels, as the loss wants them.
        ball: the threat set, whose kind decides the formula.
        xi: how large a gradient must be for a whole move.
        loss: a name or a function of outputs and labels, one value per example.
        gradient: g of each "example", as the paper defines it; or of the "mean" over all rows of
            x, which is n times smaller and what code has whose loss is averaged over a batch.
        batch: rows at a time; all at once if left out.

    Example:
        from advlab.measure.attack_difference import surrogate_shrinkage
        from advlab.threats import Ball
        surrogate_shrinkage(model, x, y, Ball("l2", 3), xi=1e-3).median()  # 1: xi does nothing
    """
    scalar("xi", xi)
    chosen("gradient", gradient, ("example", "mean"))
    measured, found = resolve(loss), []
    share = 1.0 if gradient == "example" else 1.0 / len(x)
    for some, labels in batches(model, x, y, batch):
        _, grad = value_and_gradient(ModelLoss(model, labels, measured), some)
        factor = _shrinkage(share * grad, some, ball, xi)
        found.append(factor.expand_as(some).flatten(1).mean(1).cpu())
    return torch.cat(found)


def _shrinkage(grad: Tensor, x: Tensor, ball: Threat, xi: float) -> Tensor:
    """The factors of `attacks.Surrogate`, of a row or of each coordinate."""
    if xi == 0:
        return torch.ones_like(grad)
    if ball.ends(x) is not None:
        return grad.abs() / (grad.abs() + xi)
    size = ball.dual_norm(grad)
    return per_example(size / (size**2 + xi**2).sqrt(), grad)
