"""MART."""

from typing import ClassVar

from pydantic import NonNegativeFloat, PositiveFloat, SerializeAsAny

from ...attacks import Attack
from ...threats import Threat
from ..objectives import MART
from .base import AttackedRecipe, Stage
from .trades import TEN_STEPS


class MARTRecipe(AttackedRecipe):
    """Boosted cross entropy at x~ and beta = 5 times the divergence, weighted by how wrong the
    answer at x is (Wang et al. 2020): ten steps of a quarter of the radius, 120 epochs of SGD with
    momentum 0.9, weight decay 3.5e-3, lr 0.01 divided by 10 at epochs 75 and 90.

    Args:
        beta: weight of the divergence, lambda in the paper.
        attack: how x~ is found.
    """

    name: ClassVar[str] = "mart"
    citation: ClassVar[str] = "Wang, Zou, Yi, Bailey, Ma and Gu, ICLR 2020"
    formula: ClassVar[str] = "BCE(p(x~), y) + {beta:g} KL(p(x) || p(x~)) (1 - p_y(x))"
    epochs: PositiveFloat = 120
    lr: PositiveFloat = 0.01
    weight_decay: NonNegativeFloat = 3.5e-3
    drops: tuple[float, ...] = (0.625, 0.75)
    beta: NonNegativeFloat = 5.0
    attack: SerializeAsAny[Attack] = TEN_STEPS

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch)
        objective = MART(beta=self.beta, attack=self.attack, **about)
        return [self.stage("adversarial", objective, steps_per_epoch)]
