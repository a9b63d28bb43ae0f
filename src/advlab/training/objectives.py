"""What a step descends: clean loss, adversarial loss, or a mixture."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from ..attacks import Attack, Loss
from ..config import Config
from ..losses import ModelLoss, PerExample
from ..randomness import Rng
from ..threats import Threat


@dataclass(frozen=True)
class Scene:
    """One step's material: the model, the rows of its batch (R equal blocks), and the adversary."""

    model: Callable[[Tensor], Tensor]
    x: Tensor
    y: Tensor
    loss: PerExample
    attack: Attack
    ball: Threat
    rng: Rng
    replicates: int = 1
    step: int = 0
    lr: float = 0.0
    """The rate of the update that follows, for objectives that look ahead."""
    _kept: dict[str, Tensor] = field(default_factory=dict)

    def attacked(self, loss: Loss | None = None) -> Tensor:
        """x~ = A(f_W, x, y), found in eval mode and then held fixed: once, whoever asks.

        `loss` is the first caller's faster way to what ModelLoss gives.
        """
        if "attacked" not in self._kept:
            loss = loss or ModelLoss(self.model, self.y, self.loss)
            self._kept["attacked"] = self.attack(loss, self.x, self.ball, rng=self.rng).x
        return self._kept["attacked"]

    def per_replicate(self, values: Float[Tensor, " rows"]) -> Float[Tensor, " replicates"]:
        return values.reshape(self.replicates, -1).mean(1)


class Objective(Config):
    """A per-example function of the model that training lowers on average."""

    @abstractmethod
    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        """One value an example, differentiable in the weights."""

    def value_and_grad(
        self, scene: Scene, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        """Each replicate's mean, and its gradient in the weights (replicates do not mix)."""
        values = scene.per_replicate(self.per_example(scene))
        grads = torch.autograd.grad(values.sum(), weights)
        return values.detach(), grads


class Clean(Objective):
    """loss(f(x), y): standard training."""

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        return scene.loss(scene.model(scene.x), scene.y)


class Adversarial(Objective):
    """loss(f(x~), y) with x~ fixed: Algorithm 1 of the generalization paper, PGD training."""

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        return scene.loss(scene.model(scene.attacked()), scene.y)


class Mixed(Objective):
    """(1 - lam) * clean + lam * adversarial: the objective of the CGRO paper."""

    lam: float = Field(default=0.5, ge=0.0, le=1.0)

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        clean = scene.loss(scene.model(scene.x), scene.y)
        attacked = scene.loss(scene.model(scene.attacked()), scene.y)
        return (1 - self.lam) * clean + self.lam * attacked
