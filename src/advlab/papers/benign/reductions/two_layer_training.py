"""Adversarial training of two-layer networks without autograd, at a cost that knows no dimension.

Together with `mixture_law`, which draws the inputs in k = n + m coordinates, one step of gradient
descent against PGD costs a few products of (n, m) with (m, m) and (m, k) matrices. The numbers are
those of `Adversarial` with autograd (tests/papers/benign/test_two_layer_training.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from pydantic import PrivateAttr
from torch import Tensor

from ....attacks import PGD, Attack, Attacked
from ....core.errors import AdvlabError
from ....losses import PerExample, logistic, margin
from ....losses import resolve as resolve_loss
from ....reductions import Layers, Score, Step, gram_pgd, score_of, trained
from ....threats import Ball, Threat
from ....training.objectives import AttackedObjective, StepContext
from .input_pgd import few_inputs, input_pgd

COLUMNS = 8
REFRESH = 50
"""Products are computed anew every so many steps; runs continue from these with the same bits."""


class TwoLayerAdversarial(AttackedObjective):
    """The objective `Adversarial()` for two-layer networks with one output and PGD in an l2 ball,
    started at the clean inputs.

    G = W W' and z = X W' are carried from step to step: a step of gradient descent adds M X~ to W
    with M of rank n, so they change by products of rank n. Whether W really took that step is
    checked on some of its columns; if not (another optimiser, a penalty), they are computed anew.
    """

    _products: "Products | None" = PrivateAttr(default=None)

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        x, y, ball, attack = context.x, context.y, context.ball, context.attack
        seen = attacked(context.model, x, y, ball, attack, context.loss)
        return context.loss(context.model(seen.x), y)

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        attack, ball = _checked(context.attack, context.ball)
        with torch.no_grad():
            net = Layers.of(context.model)
            x = context.x.reshape(context.replicates, -1, context.x.shape[-1])
            y = context.y.reshape(x.shape[:2])
            guide, score = _guide(context.loss, y), score_of(context.loss, context.y)
            few = few_inputs(net)
            if few:
                worst = input_pgd(net, x, guide, ball.radius, attack)
            else:
                products = self._current(net, x, context.step)
                z = _preactivations(net, products.z)
                worst = gram_pgd(net, products.gram, x, z, guide, ball.radius, attack)
            step = Step.at(net, worst.x, worst.z, worst.f, score)
            grads = {name: step.gradient(name) for name in trained(context.model)}
            if not few:
                self._products = products.after(step, x, grads["weight"], context.lr)
        return step.loss.mean(1), [
            grad.reshape(w.shape) for grad, w in zip(grads.values(), weights, strict=True)
        ]

    def _current(self, net: Layers, x: Tensor, step: int) -> "Products":
        kept = self._products
        if kept is None or step % REFRESH == 0 or not kept.fits(net.weight, x):
            return Products.of(net.weight, x)
        return kept


def attacked(
    model: object,
    x: Float[Tensor, "rows k"],
    y: Float[Tensor, " rows"],
    ball: Threat,
    attack: Attack,
    loss: str | PerExample = "logistic",
    rows: int = 250,
) -> Attacked:
    """What PGD gives on a `TwoLayer` network or a stack of them, without autograd.

    Args:
        model: the network, or a stack of R.
        x, y: inputs and labels +-1, those of replicate r in the r-th part.
        ball: an l2 ball without a box.
        attack: PGD from the clean inputs.
        loss: what the attack maximises.
        rows: how many of each replicate are attacked at a time.
    """
    attack, ball = _checked(attack, ball)
    known = resolve_loss(loss)
    with torch.no_grad():
        net = Layers.of(model)
        R, k = len(net.weight), x.shape[-1]
        gram = None if few_inputs(net) else torch.bmm(net.weight, net.weight.mT)
        blocks = x.reshape(R, -1, k).split(rows, 1), y.reshape(R, -1).split(rows, 1)
        found = []
        for block, label in zip(*blocks, strict=True):
            guide = _guide(known, label)
            if gram is None:
                worst = input_pgd(net, block, guide, ball.radius, attack)
            else:
                z = _preactivations(net, torch.bmm(block, net.weight.mT))
                worst = gram_pgd(net, gram, block, z, guide, ball.radius, attack)
            lost = known(worst.f.flatten(), label.flatten()).reshape(label.shape)
            found.append((worst.x, lost))
        points, losses = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
    return Attacked(points.reshape(x.shape), losses.flatten())


@dataclass(frozen=True)
class Products:
    """G = W W' and z = X W' of the weights that training is about to have."""

    gram: Float[Tensor, "R m m"]
    z: Float[Tensor, "R n m"]
    expected: Float[Tensor, "R m few"]
    """Some columns of those weights."""
    x: Float[Tensor, "R n few"]

    @classmethod
    def of(cls, weight: Float[Tensor, "R m k"], x: Float[Tensor, "R n k"]) -> "Products":
        gram, z = torch.bmm(weight, weight.mT), torch.bmm(x, weight.mT)
        return cls(gram, z, weight[..., :COLUMNS].clone(), x[..., :COLUMNS])

    def fits(self, weight: Tensor, x: Tensor) -> bool:
        found = weight[..., :COLUMNS]
        if found.shape != self.expected.shape or not torch.equal(x[..., :COLUMNS], self.x):
            return False
        slack = 8 * torch.finfo(weight.dtype).eps
        return torch.allclose(
            found, self.expected, rtol=slack, atol=slack * float(found.abs().max())
        )

    def after(
        self,
        step: Step,
        x: Float[Tensor, "R n k"],
        gradient: Float[Tensor, "R m k"],
        lr: float,
    ) -> "Products":
        """After W <- W + M X~ with M = -lr times the coefficients of the gradient."""
        M = -lr * step.coefficients
        moved = torch.bmm(x, step.attacked.mT)
        inner = torch.bmm(step.attacked, step.attacked.mT)
        # W'W'' = G + M Z~ + Z~'M' + M K~ M', written as T + T'.
        half = torch.baddbmm(step.z, inner, M.mT, alpha=0.5)
        return Products(
            self.gram.baddbmm_(M, half).baddbmm_(half.mT, M.mT),
            torch.baddbmm(self.z, moved, M.mT),
            step.weight[..., :COLUMNS] - lr * gradient[..., :COLUMNS],
            self.x,
        )


def _guide(loss: PerExample, y: Float[Tensor, "R n"]) -> Score:
    """A score that PGD may maximise in place of the loss: they rise together."""
    if loss not in (logistic, margin):
        return score_of(loss, y.flatten())
    loss(torch.zeros_like(y).flatten(), y.flatten())  # refuses labels that are not signs
    down = -y
    return lambda f: (down * f, down)


def _preactivations(net: Layers, z: Tensor) -> Tensor:
    return z if net.bias is None else z + net.bias


def _checked(attack: Attack, ball: Threat) -> tuple[PGD, Threat]:
    if ball != Ball("l2", ball.radius):
        raise AdvlabError("an l2 ball without a box: other attacks leave the span", ball)
    if not isinstance(attack, PGD) or not plain_pgd(attack):
        raise AdvlabError("PGD from the clean inputs: PGD(random_start=False, jump=False)", attack)
    return attack, ball


def plain_pgd(attack: Attack) -> bool:
    """Whether the attack is PGD from the clean inputs that keeps the worst point it saw."""
    if not isinstance(attack, PGD):
        return False
    plain = PGD(steps=attack.steps, step_size=attack.step_size, random_start=False, jump=False)
    return all(getattr(attack, name) == value for name, value in plain)
