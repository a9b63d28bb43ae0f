"""PGD on a smoothed model: the attack of SmoothAdv."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor

from ..core.randomness import Rng, normal
from ..losses import ModelLoss, cross_entropy, logistic
from ..threats import Threat
from .base import Attack, BestSoFar, Loss
from .pgd import PGD


@dataclass(frozen=True)
class SmoothedLoss:
    """The loss of a model that answers with its mean over some noise draws.

    For cross entropy and the logistic loss that is -log of the mean probability of the label, for
    other losses their mean.
    """

    loss: Loss
    noise: Float[Tensor, "samples batch *shape"]

    def __call__(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        values = torch.stack([self.loss(x + draw) for draw in self.noise])
        if isinstance(self.loss, ModelLoss) and self.loss.loss in (cross_entropy, logistic):
            return math.log(len(values)) - (-values).logsumexp(0)
        return values.mean(0)


class SmoothPGD(Attack):
    """Steps of 2 radius / steps from the clean input up the smoothed loss, whose noise stays the
    same from step to step (Salman et al. 2019; purification, section 1.5).

    It answers with the worst point by the smoothed loss, not by the loss itself.

    Args:
        sigma: Standard deviation of the noise.
        samples: How many noise draws are averaged.
        steps: How many gradients.

    Example:
        >>> from advlab.attacks import SmoothPGD
        >>> from advlab.losses import ModelLoss, cross_entropy
        >>> attack = SmoothPGD(sigma=0.25, samples=8)
        >>> found = attack(ModelLoss(model, y, cross_entropy), x, ball, rng=rng)
    """

    ascends: ClassVar[bool] = False
    sigma: NonNegativeFloat = 0.25
    samples: PositiveInt = 2
    steps: PositiveInt = 4

    def noise(
        self, x: Float[Tensor, "batch *shape"], rng: Rng
    ) -> Float[Tensor, "samples batch *shape"]:
        """The noise of a search: its first draws from rng.

        To train on x~ + noise with the same noise, ask again with a copy of the generator that was
        made before the attack: torch.Generator().set_state(rng.get_state()).
        """
        return self.sigma * torch.stack([normal(x, rng) for _ in range(self.samples)])

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        smoothed = BestSoFar(SmoothedLoss(best.loss, self.noise(best.x, rng)), best.x)
        pgd = PGD(steps=self.steps, step_size=2 / self.steps, random_start=False, jump=False)
        pgd.search(smoothed, threat, rng)
        best.settle(smoothed.worst.x)
