"""Symmetric ReLU networks as plain tensors, with replicate axes in front (section 4)."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....core.errors import AdvlabError
from ....losses import ModelLoss, margin
from ....models import Stack
from ....threats import Ball
from ..models import SymmetricReLU
from ..models.symmetric_relu import gate, pair
from ..reductions.sparse_products import sparse_product


@dataclass(frozen=True)
class Nets:
    """f(x) = sum_i S(u_i - b) - S(-u_i - b) with u_i = <w_i, x>, for each replicate.

    S(v) = E ReLU(v + rho) with rho ~ N(0, sigma^2). `*R` may be no axis at all: one network.
    """

    weight: Float[Tensor, "*R m d"]
    bias: Float[Tensor, "*R"]
    sigma: Float[Tensor, "*R"]

    @classmethod
    def of(cls, model: nn.Module) -> "Nets":
        """The present weights, bias and noise of a `SymmetricReLU`, or of a stack of them."""
        alone = model.skeleton if isinstance(model, Stack) else model
        if not isinstance(alone, SymmetricReLU):
            raise AdvlabError("a SymmetricReLU, or a stack of them", type(alone).__name__)
        sigma = model.get_buffer("sigma").detach()
        return cls(
            model.get_parameter("weight").detach(),
            model.get_buffer("bias").detach(),
            sigma if alone.smooth else torch.zeros_like(sigma),
        )

    @classmethod
    def at(cls, weight: Float[Tensor, "*R m d"], bias: float, sigma: float = 0.0) -> "Nets":
        """Networks with one bias and one noise for all."""
        shape = weight.shape[:-2]
        return cls(weight.detach(), weight.new_full(shape, bias), weight.new_full(shape, sigma))

    def __post_init__(self):
        noisy = self.sigma > 0
        if bool(noisy.any()) != bool(noisy.all()) or not bool((self.bias >= 0).all()):
            raise AdvlabError(
                "biases of 0 or more, and noise in all networks or in none",
                f"biases {self.bias.tolist()}, sigmas {self.sigma.tolist()}",
            )

    @property
    def smooth(self) -> bool:
        """Whether there is noise inside."""
        return bool((self.sigma > 0).all())

    def inner(self, x: Float[Tensor, "*R n d"]) -> Float[Tensor, "*R n m"]:
        """u_i = <w_i, x>"""
        return x @ self.weight.mT

    def units(self, u: Float[Tensor, "*R n m"]) -> Float[Tensor, "*R n m"]:
        """S(u - b) - S(-u - b): odd, rising, with slope at most 1 because b >= 0."""
        return pair(u, _wide(self.bias), _wide(self.sigma) if self.smooth else None)

    def gates(self, u: Float[Tensor, "*R n m"]) -> Float[Tensor, "*R n m"]:
        """G_i, the slope of a unit: the sum of its two sides."""
        return gate(u, _wide(self.bias), _wide(self.sigma) if self.smooth else None)

    def side(self, u: Float[Tensor, "*R n m"]) -> Float[Tensor, "*R n m"]:
        """Pr[u + rho > b], the gate of the first ReLU; the second has side(-u)."""
        b = _wide(self.bias)
        if not self.smooth:
            return (u > b).to(u)
        return torch.special.ndtr((u - b) / _wide(self.sigma))

    def value(self, x: Float[Tensor, "*R n d"]) -> Float[Tensor, "*R n"]:
        """f(x)"""
        return self.units(self.inner(x)).sum(-1)

    def gradient(self, x: Float[Tensor, "*R n d"]) -> Float[Tensor, "*R n d"]:
        """grad_x f = sum_i G_i w_i"""
        return self.gates(self.inner(x)) @ self.weight

    def value_and_gradient(
        self, x: Float[Tensor, "*R n d"]
    ) -> tuple[Float[Tensor, "*R n"], Float[Tensor, "*R n d"]]:
        """f and its gradient in x, from the same pre-activations."""
        u = self.inner(x)
        if self.smooth or u.ndim > 2:
            return self.units(u).sum(-1), self.gates(u) @ self.weight
        units = self.units(u)
        return units.sum(-1), sparse_product(units != 0, self.weight)

    def firing(self, x: Float[Tensor, "n d"], ball: Ball) -> "Nets":
        """One network without the neurons that are off in the whole ball around every input."""
        if self.smooth or self.weight.ndim > 2 or not ball.within_radius:
            return self
        largest = self.inner(x).abs().amax(0) + ball.radius * ball.dual_norm(self.weight)
        # Rounding: a neuron within a few bits of its bias counts as one that fires.
        return replace(self, weight=self.weight[largest * (1 + 1e-4) >= self.bias])


def _wide(values: Float[Tensor, "*R"]) -> Float[Tensor, "*R 1 1"]:
    return values[..., None, None]


@dataclass(frozen=True)
class NetMargin:
    """-y f for each row under networks with an explicit gradient: positive where they are wrong.

    Rows are blocks in the order of the replicates, as for a `Stack`.
    """

    nets: Nets
    y: Float[Tensor, " rows"]

    def __call__(self, x: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        return -self.y * self.nets.value(self._blocks(x)).reshape(-1)

    def value_and_gradient(
        self, x: Float[Tensor, "rows d"]
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "rows d"]]:
        """-y f of each row, and its gradient in that row."""
        f, grad = self.nets.value_and_gradient(self._blocks(x))
        return -self.y * f.reshape(-1), -self.y[:, None] * grad.reshape(x.shape)

    def rows(self, index: Tensor) -> "NetMargin":
        """For one network: the same for some of its rows."""
        return replace(self, y=self.y[index])

    def under(self, model: nn.Module) -> "NetMargin":
        """The same examples under other networks."""
        return NetMargin(Nets.of(model), self.y)

    def _blocks(self, x: Tensor) -> Tensor:
        return x.reshape(*self.nets.weight.shape[:-2], -1, x.shape[-1])


def margin_of(model: nn.Module | Nets, y: Tensor) -> NetMargin | ModelLoss:
    """The loss -y f of any model with one output; by explicit gradients where they are known."""
    if isinstance(model, Nets):
        return NetMargin(model, y)
    alone = model.skeleton if isinstance(model, Stack) else model
    if isinstance(alone, SymmetricReLU):
        return NetMargin(Nets.of(model), y)
    return ModelLoss(model, y, margin)
