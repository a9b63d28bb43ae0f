"""How a gradient becomes a step. State is plain tensors, so that checkpoints hold all of it."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from ..core.config import Config


class Optimizer(Config):
    """Elementwise updates: a stack of replicates trains as each replicate would alone."""

    @abstractmethod
    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """The state before the first step."""

    @abstractmethod
    def step(
        self,
        weights: Sequence[Tensor],
        grads: Sequence[Tensor],
        state: list[Tensor],
        lr: float,
        count: int,
    ) -> None:
        """Change weights and state in place; count is 1 at the first step."""


class SGD(Optimizer):
    """w <- w - lr * v, v <- momentum * v + grad (plain gradient descent by default)."""

    momentum: float = Field(default=0.0, ge=0.0, lt=1.0)
    nesterov: bool = False

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        return [torch.zeros_like(w) for w in weights] if self.momentum else []

    def step(self, weights, grads, state, lr, count) -> None:
        if not self.momentum:
            torch._foreach_add_(list(weights), list(grads), alpha=-lr)
            return
        for w, grad, v in zip(weights, grads, state, strict=True):
            v.mul_(self.momentum).add_(grad)
            w.add_(grad.add(v, alpha=self.momentum) if self.nesterov else v, alpha=-lr)


class Adam(Optimizer):
    """Adam with bias correction."""

    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    beta2: float = Field(default=0.999, ge=0.0, lt=1.0)
    epsilon: PositiveFloat = 1e-8

    def start(self, weights: Sequence[Tensor]) -> list[Tensor]:
        return [torch.zeros_like(w) for w in (*weights, *weights)]

    def step(self, weights, grads, state, lr, count) -> None:
        means, squares = state[: len(weights)], state[len(weights) :]
        for w, grad, m, s in zip(weights, grads, means, squares, strict=True):
            m.lerp_(grad, 1 - self.beta1)
            s.lerp_(grad**2, 1 - self.beta2)
            scale = (s / (1 - self.beta2**count)).sqrt_().add_(self.epsilon)
            w.addcdiv_(m, scale, value=-lr / (1 - self.beta1**count))
