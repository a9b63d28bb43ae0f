"""Training of symmetric ReLU networks without autograd, on the neurons that can fire.

A neuron is off in the whole ball around a batch if max |<w_i, x>| + radius |w_i|_dual <= b: it adds
nothing to f, to its input gradient or to its weight gradient, and no attack can open it. After the
clean phase that is most of the network. What is left is mostly zeros: inputs in the basis of the
dictionary, and gates without noise (`sparse_products`). Numbers are those of `Adversarial` with
autograd, as a test shows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ....core.errors import AdvlabError
from ....core.randomness import Rng, normal
from ....losses import ModelLoss, PerExample, value_and_slope
from ....models import Stack
from ....threats import Threat
from ....training.objectives import AttackedObjective, StepContext
from ..models import SymmetricReLU
from ..models.symmetric_relu import gate, pair
from .sparse_products import sparse_product

SILENT = 9.0
"""Phi(-9) is 1e-19: a smoothed neuron this many sigma below its bias is off to the last bit."""


class SymmetricAdversarial(AttackedObjective):
    """The objective `Adversarial()` for SymmetricReLU networks and stacks of them.

    With `sampled` the loss is at fresh noise rho for every example, as Algorithms 1 and 2 have it;
    the attack sees the expectation over rho (FGM is defined on it).
    """

    sampled: bool = False

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        return context.loss(context.model(context.attacked()), context.y)

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        with torch.no_grad():
            x, ball = context.x, context.ball
            loss = SymmetricLoss.around(context.model, context.y, context.loss, x, ball)
            found = context.attacked(loss) if ball.radius > 0 else x
            noise = context.rng if self.sampled and loss.nets[0].sigma is not None else None
            values, grad = loss.weight_gradient(found, noise)
        return context.per_replicate(values), [grad.reshape(weights[0].shape)]


@dataclass(frozen=True)
class Firing:
    """One network's neurons that may be on around one batch, and where they stand in it."""

    weight: Float[Tensor, "firing d"]
    index: Int[Tensor, " firing"]
    width: int
    bias: Float[Tensor, ""]
    sigma: Float[Tensor, ""] | None
    clean: Float[Tensor, "n firing"]
    """Their pre-activations at the batch itself."""

    def outputs(self, u: Tensor) -> Tensor:
        if self.sigma is None:
            return F.softshrink(u, float(self.bias))
        return pair(u, self.bias, self.sigma)

    def both(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs of the neurons and their slopes, a mask where there is no noise."""
        outputs = self.outputs(u)
        if self.sigma is None:
            # A plain pair is on exactly where it gives something.
            return outputs, outputs != 0
        return outputs, gate(u, self.bias, self.sigma)

    def at_noise(self, u: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """The same at drawn noise: a pair may then have both its sides on, and the slope 2."""
        rho = 0.0 if self.sigma is None else self.sigma * normal(u, rng)
        up, down = u + rho - self.bias, -u + rho - self.bias
        return up.relu() - down.relu(), (up > 0).to(u) + (down > 0).to(u)


@dataclass(frozen=True)
class SymmetricLoss:
    """The loss of each input, and its gradients, under R networks; rows are R equal blocks."""

    nets: Sequence[Firing]
    y: Float[Tensor, " rows"]
    loss: PerExample
    center: Float[Tensor, "rows d"]

    @classmethod
    def around(
        cls, model: object, y: Tensor, loss: PerExample, x: Tensor, threat: Threat
    ) -> "SymmetricLoss":
        """For inputs in the threat sets around x only: neurons that are off there are left out.

        Args:
            model: a SymmetricReLU or a stack of them.
            y: labels in {-1, 1}, one per row.
            loss: of outputs and labels.
            x: the centers, one row per example, in blocks per replicate.
            threat: the threat set.
        """
        weight, bias, sigma = _parts(model)
        blocks = x.reshape(len(weight), -1, x.shape[-1])
        nets = [
            _firing(weight[r], bias[r], None if sigma is None else sigma[r], blocks[r], threat)
            for r in range(len(weight))
        ]
        return cls(nets, y, loss, x)

    def __call__(self, x: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        f = [net.outputs(u).sum(1) for net, _, u in self._blocks(x)]
        return self.loss(torch.cat(f), self.y)

    def value_and_gradient(
        self, x: Float[Tensor, "rows d"]
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "rows d"]]:
        with torch.no_grad():
            f, direction = [], []
            for net, _, u in self._blocks(x):
                outputs, slopes = net.both(u)
                f.append(outputs.sum(1))
                direction.append(sparse_product(slopes, net.weight))
            value, slope = value_and_slope(self.loss, torch.cat(f), self.y)
        return value, torch.cat(direction).mul_(slope[:, None])

    def under(self, model: nn.Module) -> ModelLoss:
        """The same examples under another model, for attacks that transfer."""
        return ModelLoss(model, self.y, self.loss)

    def weight_gradient(
        self, x: Float[Tensor, "rows d"], noise: Rng | None = None
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "R m d"]]:
        """Each row's loss, and each replicate's gradient of its mean loss in the weights."""
        values, grads = [], []
        for r, ((net, block, u), y) in enumerate(zip(self._blocks(x), self._labels(), strict=True)):
            outputs, slopes = net.both(u) if noise is None else net.at_noise(u, _one(noise, r))
            value, slope = value_and_slope(self.loss, outputs.sum(1), y)
            rows = sparse_product(slopes.mT, block * (slope / len(block))[:, None])
            values.append(value)
            grads.append(x.new_zeros(net.width, x.shape[1]).index_copy_(0, net.index, rows))
        return torch.cat(values), torch.stack(grads)

    def _blocks(self, x: Tensor) -> Iterator[tuple[Firing, Tensor, Tensor]]:
        """Each network, its rows, and their pre-activations, which are known at the center."""
        known = x.data_ptr() == self.center.data_ptr() and x.shape == self.center.shape
        for net, block in zip(self.nets, x.chunk(len(self.nets)), strict=True):
            yield net, block, net.clean if known else block @ net.weight.mT

    def _labels(self) -> Sequence[Tensor]:
        return self.y.chunk(len(self.nets))


def _firing(
    weight: Float[Tensor, "m d"], bias: Tensor, sigma: Tensor | None, x: Tensor, threat: Threat
) -> Firing:
    u = sparse_product(x, weight.mT)
    if not threat.within_radius:
        return Firing(weight, torch.arange(len(weight)), len(weight), bias, sigma, u)
    largest = u.abs().amax(0) + threat.radius * threat.dual_norm(weight)
    reach = largest if sigma is None else largest + SILENT * sigma
    # Rounding: a neuron within a few bits of its bias counts as one that fires.
    index = (reach * (1 + 1e-4) >= bias).nonzero()[:, 0]
    return Firing(
        weight.index_select(0, index), index, len(weight), bias, sigma, u.index_select(1, index)
    )


def _parts(model: object) -> tuple[Tensor, Tensor, Tensor | None]:
    """Weights (R, m, d), biases (R,) and noises (R,) or None, of a network or a stack of R."""
    net = model.skeleton if isinstance(model, Stack) else model
    if not isinstance(net, SymmetricReLU):
        raise AdvlabError("a SymmetricReLU network or a stack of them", type(net).__name__)
    kept = model if isinstance(model, Stack) else net
    weight, bias, sigma = (getattr(kept, name).detach() for name in ("weight", "bias", "sigma"))
    if isinstance(model, Stack):
        return weight, bias, sigma if net.smooth else None
    return weight[None], bias[None], sigma[None] if net.smooth else None


def _one(rng: Rng, r: int) -> torch.Generator:
    return rng if isinstance(rng, torch.Generator) else rng[r]
