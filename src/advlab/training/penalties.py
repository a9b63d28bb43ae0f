"""Penalties on the weights, added to the objective."""

from abc import abstractmethod
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat
from torch import Tensor

from ..core.config import Config


class Penalty(Config):
    """weight * P(W) over all weights but biases; every replicate has its own."""

    weight: NonNegativeFloat

    @abstractmethod
    def value(self, w: Float[Tensor, "replicates *shape"]) -> Float[Tensor, " replicates"]:
        """P of one weight array, replicate by replicate (the factor `weight` included)."""

    @abstractmethod
    def gradient(self, w: Float[Tensor, "replicates *shape"]) -> Tensor:
        """What the penalty adds to the gradient."""

    def shrink(self, w: Float[Tensor, "replicates *shape"], lr: float) -> Tensor | None:
        """The weights after a proximal step, for penalties that take one."""
        return None


class L1(Penalty):
    """weight * sum |w|, by the proximal step soft(w - lr grad, lr weight) or by its subgradient.

    The proximal step gives exact zeros (adversarial LASSO); the subgradient is what deep-learning
    code usually does (the MNIST and CIFAR runs of the generalization paper).
    """

    how: Literal["prox", "subgradient"] = "prox"

    def value(self, w: Float[Tensor, "replicates *shape"]) -> Float[Tensor, " replicates"]:
        return self.weight * w.abs().flatten(1).sum(1)

    def gradient(self, w: Float[Tensor, "replicates *shape"]) -> Tensor:
        return w.sign().mul_(self.weight) if self.how == "subgradient" else torch.zeros_like(w)

    def shrink(self, w: Float[Tensor, "replicates *shape"], lr: float) -> Tensor | None:
        if self.how == "subgradient":
            return None
        return w.sign() * (w.abs() - lr * self.weight).clamp(min=0.0)


class L2(Penalty):
    """weight / 2 * sum w^2: weight decay."""

    def value(self, w: Float[Tensor, "replicates *shape"]) -> Float[Tensor, " replicates"]:
        return self.weight / 2 * (w**2).flatten(1).sum(1)

    def gradient(self, w: Float[Tensor, "replicates *shape"]) -> Tensor:
        return self.weight * w


class L2L3(Penalty):
    """weight * sum over neurons of |w_i|^2/2 + |w_i|^3/3, gradient (1 + |w_i|) w_i.

    The regulariser of the purification paper; a neuron is a row of a weight matrix.
    """

    def value(self, w: Float[Tensor, "replicates *shape"]) -> Float[Tensor, " replicates"]:
        length = w.norm(dim=-1)
        return self.weight * (length**2 / 2 + length**3 / 3).flatten(1).sum(1)

    def gradient(self, w: Float[Tensor, "replicates *shape"]) -> Tensor:
        return self.weight * (1 + w.norm(dim=-1, keepdim=True)) * w
