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
from ..certify import IBP, Crown, Lipschitz
from ..core.autocast import only_for_the_model
from ..core.randomness import Rng, generator
from ..losses import ModelLoss, PerExample, cross_entropy, logistic, resolve
from ..threats import Ball
from ..threats.base import check_finite, per_example

Values = Float[Tensor, " batch"]
FAR = 1e6
"""At this radius a bound by a Lipschitz constant is the constant, but for a millionth."""


@dataclass(frozen=True)
class Sharpness:
    """Of each input; `steepest` and `rise` are LOWER bounds of maxima over the ball."""

    loss: Values
    slope: Values
    """||grad_x L|| at the input itself, in the dual norm of the ball."""
    steepest: Values
    """The largest such norm that was found at a point of the ball: `sharp` of the paper, from
    below."""
    rise: Values
    """The largest loss found in the ball less that at the input: `dloss` of the paper, from
    below."""
    steepest_bound: Values | None = None
    """The other end of the bracket: no gradient in the ball is steeper; None if nothing is
    known."""


@only_for_the_model
def input_sharpness(
    model: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    ball: Ball,
    *,
    loss: str | PerExample = "cross_entropy",
    attack: Attack | None = None,
    along: int = 10,
    draws: int = 64,
    starts: int = 6,
    climb: int = 20,
    bound: bool = True,
    rng: Rng | None = None,
) -> Sharpness:
    """The steepest gradient and the highest rise in a ball, from below; the first in a bracket.

    An attack climbs the loss. Gradients are taken where it took them and at some points of the way
    from the input to its answer: by the mean value theorem one on that way is at least rise/radius,
    so that rise <= radius * steepest holds for the estimates too, up to the spacing of those
    points. Gradients are also taken at random points, and the norm of the gradient itself is
    climbed, by its own gradient, from the input, from some of those and from the steepest point of
    all. What is found is a LOWER bound of the maximum, as for every search.

    The upper end, `steepest_bound`, is there for networks that `certify` can read and the losses
    "logistic" and "cross_entropy": |dL/dz| at the worst certified margin of the ball, times the
    largest Lipschitz constant of a difference of scores.

    Args:
        model: the network, in eval mode.
        x: inputs, one row per example.
        y: labels, as the loss wants them.
        ball: where to look.
        loss: a name or a function of outputs and labels, one value per example.
        attack: what climbs the loss, by default PGD with 10 steps and 2 random starts.
        along: points of the way to the attack's answer.
        draws: random points at which gradients are taken, half of them on the edge.
        starts: of those, how many the norm of the gradient is climbed from.
        climb: steps of each climb.
        bound: whether to look for the upper end too, which may take longer than all else.
        rng: where random points come from.

    Returns:
        One value per row of each quantity.

    Example:
        from advlab.measure.sharpness import input_sharpness
        from advlab.threats import Ball
        found = input_sharpness(model, x, y, Ball("linf", 8 / 255))
        found.steepest, found.steepest_bound  # the bracket
    """
    rng = generator("input_sharpness") if rng is None else rng
    attack = attack or PGD(steps=10, step_size=0.25, restarts=2)
    check_finite(x, "inputs")
    measured = resolve(loss)
    noted = _Noted(ModelLoss(model, y, measured), ball, x)
    clean, slope = noted.look(x)
    found = attack(noted, x, ball, rng=rng)
    for part in range(along):
        noted.look(x + (part + 0.5) / along * (found.x - x))
    noted.look(found.x)
    # Half of them on the edge, where maxima often are. Climbs alone would not do: in a piece of a
    # ReLU network the norm knows nothing of the next piece.
    inside = [ball.sample(x, rng=rng) for _ in range(draws)]
    random = [ball.maximiser(one - x, x) if k % 2 else one for k, one in enumerate(inside)]
    for one in random:
        noted.look(one)
    for start in (x, *random[:starts], noted.place):
        noted.climb(start, climb)
    rise = torch.maximum(found.loss, noted.highest) - clean
    above = _bound(model, x, y, ball, measured) if bound else None
    return Sharpness(clean, slope, noted.steepest, rise, above)


class _Noted:
    """A loss that keeps, row by row, the largest value and dual norm of a gradient it has seen."""

    def __init__(self, loss: Loss, ball: Ball, x: Tensor):
        self.loss, self.ball, self.x = loss, ball, x
        self.steepest = torch.zeros_like(x.flatten(1)[:, 0])
        self.highest = torch.full_like(self.steepest, -torch.inf)
        self.place = x
        """Where it was steepest."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.loss(x)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, grad = value_and_gradient(self.loss, x)
        self._keep(x, value, self.ball.dual_norm(grad.flatten(1)))
        return value, grad

    def look(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The loss at a point, and the norm of its gradient."""
        value, grad = self.value_and_gradient(x)
        return value, self.ball.dual_norm(grad.flatten(1))

    def climb(self, start: Tensor, steps: int) -> None:
        """Up the norm of the gradient: each row keeps a step that helps, and halves one that does
        not."""
        here, reach = start, torch.ones_like(self.steepest)
        norm, uphill = self._norm_and_gradient(here)
        for _ in range(steps):
            move = per_example(reach, here) * self.ball.radius * self.ball.steepest(uphill)
            there = self.ball.project(here + move, self.x)
            higher, turned = self._norm_and_gradient(there)
            better = higher > norm
            here, uphill = (
                torch.where(per_example(better, here), new, old)
                for new, old in ((there, here), (turned, uphill))
            )
            norm, reach = torch.where(better, higher, norm), torch.where(better, reach, reach / 2)

    def _norm_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The dual norm of the loss's gradient, and its own gradient; zero where it has none."""
        point = x.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = self.loss(point)
            (grad,) = torch.autograd.grad(value.sum(), point, create_graph=True)
            norm = self.ball.dual_norm(grad.flatten(1))
            uphill = None
            if norm.requires_grad:
                (uphill,) = torch.autograd.grad(norm.sum(), point, allow_unused=True)
        self._keep(x, value.detach(), norm.detach())
        return norm.detach(), torch.zeros_like(x) if uphill is None else uphill.nan_to_num()

    def _keep(self, x: Tensor, value: Tensor, norm: Tensor) -> None:
        self.highest = torch.maximum(self.highest, value)
        steeper = norm > self.steepest
        self.steepest = torch.where(steeper, norm, self.steepest)
        self.place = torch.where(per_example(steeper, x), x.detach(), self.place)


def _bound(
    model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, ball: Ball, loss: PerExample
) -> Values | None:
    """sup |dL/dz| times the largest Lipschitz constant of a score's lead over the label's.

    grad_x L is a mixture of the gradients of z_k - z_y, of total weight 1 - p_y. With margins m_k
    at x, a Lipschitz bound at radius R is at least m_k + R L_k for each k, so that
    L_k <= (bound - min_k m_k)/R. And 1 - p_y rises with the worst margin of the ball.
    """
    if loss not in (logistic, cross_entropy):
        return None
    far = Ball(norm=ball.norm, radius=FAR)
    if Lipschitz().refuses(model, far, x) is not None:
        return None
    with torch.no_grad():
        outputs = ModelLoss(model, y, lambda scores, _: scores)(x)
    if loss is logistic:
        lead, rivals = -y * outputs.reshape(len(x)), 1
    else:
        own = outputs.gather(1, y[:, None])
        lead, rivals = (outputs - own).amin(1), outputs.shape[1] - 1
    constant = (Lipschitz().worst_margin(model, x, y, far) - lead) / FAR
    able = [one for one in (Lipschitz(), IBP(), Crown()) if one.refuses(model, ball, x) is None]
    margins = torch.stack([one.worst_margin(model, x, y, ball) for one in able])
    odds = rivals * margins.amin(0).exp()
    return constant * (odds / (1 + odds)).nan_to_num(nan=1.0)
