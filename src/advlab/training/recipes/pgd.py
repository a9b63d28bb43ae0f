"""Adversarial training with PGD."""

from typing import ClassVar

from pydantic import NonNegativeFloat, PositiveFloat, SerializeAsAny

from ...attacks import PGD, Attack
from ...threats import Threat
from ..objectives import Adversarial
from .base import AttackedRecipe, Stage

SEVEN_STEPS = PGD(steps=7, step_size=0.25, jump=False, keep="last")
"""Steps of 2/255 in a ball of 8/255."""


class PGDRecipe(AttackedRecipe):
    """Cross entropy at points that PGD found (Madry et al. 2018): seven steps of a quarter of the
    radius from a random start, SGD with momentum 0.9, weight decay 2e-4, lr 0.1 divided by 10 at
    half and three quarters of 80 000 steps of 128 (about 200 epochs of CIFAR-10).

    Args:
        attack: how x~ is found.
    """

    name: ClassVar[str] = "pgd"
    citation: ClassVar[str] = "Madry, Makelov, Schmidt, Tsipras and Vladu, ICLR 2018"
    formula: ClassVar[str] = "{loss}(f(x~), y), x~ found by {adversary}"
    epochs: PositiveFloat = 200
    weight_decay: NonNegativeFloat = 2e-4
    attack: SerializeAsAny[Attack] = SEVEN_STEPS

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch)
        objective = Adversarial(attack=self.attack, **about)
        return [self.stage("adversarial", objective, steps_per_epoch)]
