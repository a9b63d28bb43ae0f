"""Clean and adversarial loss together."""

from typing import ClassVar, Literal

from pydantic import Field, PositiveFloat, SerializeAsAny

from ...attacks import Attack
from ...threats import Threat
from ..objectives import Mixed
from .base import AttackedRecipe, Stage
from .pgd import SEVEN_STEPS


class MixedRecipe(AttackedRecipe):
    """(1 - lam) clean + lam adversarial, the objective of the CGRO paper (Li and Li 2025), with the
    cyclic rates of its runs on images (those of Wong et al. 2020, 15 epochs for CIFAR-10).

    Args:
        lam: the share of the adversarial loss, from 0 to 1.
        attack: how x~ is found.
    """

    name: ClassVar[str] = "mixed"
    citation: ClassVar[str] = "Li and Li, ICML 2025"
    formula: ClassVar[str] = (
        "(1 - {lam:g}) {loss}(f(x), y) + {lam:g} {loss}(f(x~), y), x~ found by {adversary}"
    )
    epochs: PositiveFloat = 15
    lr: PositiveFloat = 0.2
    schedule: Literal["constant", "drops", "steps", "cosine", "cyclic"] = "cyclic"
    lam: float = Field(default=0.5, ge=0.0, le=1.0)
    attack: SerializeAsAny[Attack] = SEVEN_STEPS

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch)
        objective = Mixed(lam=self.lam, attack=self.attack, **about)
        return [self.stage("mixed", objective, steps_per_epoch)]
