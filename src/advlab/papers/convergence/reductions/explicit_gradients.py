"""Adversarial training of two-layer networks under any attack, with gradients written out.

Stacks of small networks spend their time in autograd, not in arithmetic. Here values and gradients,
in inputs and in weights, are a handful of batched products; the numbers are those of `Adversarial`
with autograd (tests/papers/convergence/test_explicit_gradients.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ....losses import PerExample
from ....reductions.gram import Layers
from ....reductions.step import Step, score_of, trained
from ....training.objectives import AttackedObjective, StepContext


class ExplicitAdversarial(AttackedObjective):
    """The objective `Adversarial()` for TwoLayer networks with one output and stacks of them."""

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        return context.loss(context.model(context.attacked()), context.y)

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        with torch.no_grad():
            loss = ExplicitLoss.of(context.model, context.y, context.loss)
            found = context.attacked(loss)
            z = loss.preactivations(found)
            step = Step.at(loss.net, loss.blocks(found), z, loss.net.value(z), loss.score)
            grads = [step.gradient(name) for name in trained(context.model)]
        return step.loss.mean(1), [
            grad.reshape(w.shape) for grad, w in zip(grads, weights, strict=True)
        ]


@dataclass(frozen=True)
class ExplicitLoss:
    """The loss of each input, and its gradient, under the present weights of R networks."""

    net: Layers
    y: Float[Tensor, " rows"]
    loss: PerExample

    @classmethod
    def of(cls, model: object, y: Tensor, loss: PerExample) -> "ExplicitLoss":
        return cls(Layers.of(model), y, loss)

    def under(self, model: object) -> "ExplicitLoss":
        """The same examples and loss under another model."""
        return ExplicitLoss.of(model, self.y, self.loss)

    def __call__(self, x: Float[Tensor, "rows k"]) -> Float[Tensor, " rows"]:
        return self.loss(self.net.value(self.preactivations(x)).flatten(), self.y)

    def value_and_gradient(
        self, x: Float[Tensor, "rows k"]
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "rows k"]]:
        with torch.no_grad():
            z = self.preactivations(x)
            phi, dphi = self.net.activation.both(z)
            value, slope = self.score(self.net.output(phi))
            # f is constant in x where the halves of a network cancel.
            slope = torch.where(self.net.zero, 0, slope)
            grad = torch.bmm(dphi.mul_(self.net.top), self.net.weight) * slope[:, :, None]
        return value.flatten(), grad.reshape(x.shape)

    def preactivations(self, x: Float[Tensor, "rows k"]) -> Float[Tensor, "R n m"]:
        z = torch.bmm(self.blocks(x), self.net.weight.mT)
        return z if self.net.bias is None else z + self.net.bias

    def blocks(self, x: Float[Tensor, "rows k"]) -> Float[Tensor, "R n k"]:
        return x.reshape(len(self.net.weight), -1, x.shape[-1])

    @property
    def score(self):
        return score_of(self.loss, self.y)
