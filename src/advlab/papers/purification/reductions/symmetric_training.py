"""Training of symmetric ReLU networks without autograd, on the neurons that can fire.

A neuron is off in the whole ball around a batch if max |<w_i, x>| + radius |w_i|_dual <= b: it adds
nothing to f, to its input gradient or to its weight gradient, and no attack can open it. After the
clean phase that is most of the network. What is left is mostly zeros: inputs in the basis of the
dictionary, and gates without noise (`sparse_products`). Numbers are those of `Adversarial` with
autograd, as a test shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from ....core.errors import AdvlabError
from ....core.randomness import Rng, normal
from ....losses import ModelLoss, PerExample, value_and_slope
from ....models import Stack
from ....threats import Threat
from ....training.objectives import AttackedObjective, StepContext
from ..models import SymmetricReLU
from ..models.symmetric_relu import gate, pair
from .sparse_products import Rows, sparse_product, transposed_product

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
    bias: Float[Tensor, ""]
    sigma: Float[Tensor, ""] | None
    index: Int[Tensor, " firing"] | None = None
    """None: these are all neurons."""

    def active(self, u: Float[Tensor, "n firing"]) -> "Active":
        """What the neurons do at these pre-activations."""
        if self.sigma is not None:
            return Active(
                self, pair(u, self.bias, self.sigma).sum(1), gate(u, self.bias, self.sigma)
            )
        outputs = F.softshrink(u, float(self.bias))
        # A plain pair is on exactly where it gives something.
        return Active(self, outputs.sum(1), outputs.bool())

    def active_at_noise(self, u: Float[Tensor, "n firing"], rng: torch.Generator) -> "Active":
        """The same at drawn noise: a pair may then have both its sides on, and the slope 2."""
        rho = 0.0 if self.sigma is None else self.sigma * normal(u, rng)
        up, down = u + rho - self.bias, -u + rho - self.bias
        return Active(self, (up.relu() - down.relu()).sum(1), (up > 0).to(u) + (down > 0).to(u))

    def at(self, x: Float[Tensor, "n d"]) -> "Active":
        """What the neurons do at inputs."""
        return self.active(self.rows(x))

    @cached_property
    def rows(self) -> Rows:
        """The product with inputs; an attack asks for it at every step."""
        return Rows(self.weight)


@dataclass(frozen=True)
class Active:
    """What a network's neurons do at some inputs."""

    net: Firing
    f: Float[Tensor, " n"]
    slopes: Shaped[Tensor, "n firing"]
    """A mask where there is no noise."""

    def direction(self) -> Float[Tensor, "n d"]:
        """The gradient of f in each input."""
        return sparse_product(self.slopes, self.net.weight)

    def changed(self, rows: Int[Tensor, " rows"], new: "Active") -> "Active":
        """With some rows replaced."""
        f, slopes = self.f.index_copy(0, rows, new.f), self.slopes.index_copy(0, rows, new.slopes)
        return Active(self.net, f, slopes)


@dataclass
class SymmetricLoss:
    """The loss of each input, and its gradients, under R networks; rows are R equal blocks."""

    clean: Sequence[Active]
    """What all neurons of each network do at the centers."""
    nets: Sequence[Firing]
    """The networks without the neurons that are off around the centers."""
    y: Float[Tensor, " rows"]
    loss: PerExample
    center: Float[Tensor, "rows d"]
    last: tuple[Tensor, Sequence[Active]] | None = None
    """The last point that was evaluated: attacks mostly end there."""

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
        clean, nets = [], []
        networks = _networks(model)
        for net, block in zip(networks, x.chunk(len(networks)), strict=True):
            u = sparse_product(block, net.weight.mT)
            clean.append(net.active(u))
            nets.append(_firing(net, u, threat))
        return cls(clean, nets, y, loss, x)

    def __call__(self, x: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        return self.loss(torch.cat([active.f for active in self._at(x)]), self.y)

    def value_and_gradient(
        self, x: Float[Tensor, "rows d"]
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "rows d"]]:
        with torch.no_grad():
            found = self._at(x)
            value, slope = value_and_slope(self.loss, torch.cat([one.f for one in found]), self.y)
            direction = torch.cat([one.direction() for one in found])
        return value, direction.mul_(slope[:, None])

    def under(self, model: nn.Module) -> ModelLoss:
        """The same examples under another model, for attacks that transfer."""
        return ModelLoss(model, self.y, self.loss)

    def weight_gradient(
        self, x: Float[Tensor, "rows d"], noise: Rng | None = None
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "R m d"]]:
        """Each row's loss, and each replicate's gradient of its mean loss in the weights."""
        found = self._at_end(x) if noise is None else self._at_noise(x, noise)
        value, slope = value_and_slope(self.loss, torch.cat([one.f for one in found]), self.y)
        weighted = self._blocks(x * (slope * (len(found) / len(x)))[:, None])
        grads = [self._spread(r, one, weighted[r]) for r, one in enumerate(found)]
        return value, torch.stack(grads) if len(grads) > 1 else grads[0][None]

    def _spread(self, r: int, active: Active, weighted: Tensor) -> Float[Tensor, "m d"]:
        """The gradient in the weights of all neurons of network r."""
        rows, index = transposed_product(active.slopes, weighted), active.net.index
        if index is None:
            return rows
        every = rows.new_zeros(self.clean[r].net.weight.shape)
        return every.index_copy_(0, index, rows)

    def _at(self, x: Tensor) -> Sequence[Active]:
        """What each network does at its rows."""
        if x.data_ptr() == self.center.data_ptr() and x.shape == self.center.shape:
            return self.clean
        found = [net.at(block) for net, block in zip(self.nets, self._blocks(x), strict=True)]
        # A copy: the caller's point may move on in place.
        self.last = x.clone(), found
        return found

    def _at_end(self, x: Tensor) -> Sequence[Active]:
        """The same where an attack ended: most rows are those of the last point."""
        if self.last is None:
            return self._at(x)
        point, before = self.last
        elsewhere = (x - point).abs_().amax(1) != 0
        found = []
        for net, one, block, new in zip(
            self.nets, before, self._blocks(x), self._blocks(elsewhere), strict=True
        ):
            rows = new.nonzero()[:, 0]
            found.append(one.changed(rows, net.at(block[rows])) if len(rows) else one)
        return found

    def _at_noise(self, x: Tensor, rng: Rng) -> Sequence[Active]:
        return [
            net.active_at_noise(sparse_product(block, net.weight.mT), _one(rng, r))
            for r, (net, block) in enumerate(zip(self.nets, self._blocks(x), strict=True))
        ]

    def _blocks(self, rows: Tensor) -> Sequence[Tensor]:
        return rows.chunk(len(self.nets))


def _firing(net: Firing, u: Float[Tensor, "n m"], threat: Threat) -> Firing:
    """The neurons of a network that may be on in the threat sets around inputs.

    u are the pre-activations at these inputs.
    """
    if threat.radius == 0 or not threat.within_radius:
        return net
    reach = u.abs().amax(0) + threat.radius * threat.dual_norm(net.weight)
    reach = reach if net.sigma is None else reach + SILENT * net.sigma
    # Rounding: a neuron within a few bits of its bias counts as one that fires.
    fires = reach * (1 + 1e-4) >= net.bias
    index = fires.nonzero()[:, 0]
    # Products are up to a sixth faster where the number of neurons is a multiple of 8.
    few = (~fires).nonzero()[: -len(index) % 8, 0]
    index = torch.cat([index, few])
    return Firing(net.weight.index_select(0, index), net.bias, net.sigma, index)


def _networks(model: object) -> Sequence[Firing]:
    """A network, or each of a stack, with all its neurons."""
    net = model.skeleton if isinstance(model, Stack) else model
    if not isinstance(net, SymmetricReLU):
        raise AdvlabError("a SymmetricReLU network or a stack of them", type(net).__name__)
    kept = model if isinstance(model, Stack) else net
    parts = (getattr(kept, name).detach() for name in ("weight", "bias", "sigma"))
    weights, biases, sigmas = parts if isinstance(model, Stack) else (one[None] for one in parts)
    return [
        Firing(weight, bias, sigma if net.smooth else None)
        for weight, bias, sigma in zip(weights, biases, sigmas, strict=True)
    ]


def _one(rng: Rng, r: int) -> torch.Generator:
    return rng if isinstance(rng, torch.Generator) else rng[r]
