"""Fast adversarial training: one step from a random start."""

from typing import ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, SerializeAsAny

from ...attacks import Attack
from ...threats import Threat
from ..objectives import Adversarial
from ..overfitting import FGSM, CatastrophicOverfitting
from .base import AttackedRecipe, Stage


class FastRecipe(AttackedRecipe):
    """Cross entropy at one FGSM step of 1.25 radius from a uniform random start, projected (Wong et
    al. 2020): 15 epochs of SGD with momentum 0.9, weight decay 5e-4, and a triangle of learning
    rates up to 0.2. Catastrophic overfitting is looked for and said.

    The gradient is taken in eval mode, like all attacks here; the paper's code has train mode.

    Args:
        attack: how x~ is found.
        check_every: steps from one look for catastrophic overfitting to the next; 0 for none.
        collapsed: what share of the accuracy under FGSM that under PGD must be at most.
        stop_on_collapse: end the stage when it is seen.
    """

    name: ClassVar[str] = "fast"
    citation: ClassVar[str] = "Wong, Rice and Kolter, ICLR 2020"
    formula: ClassVar[str] = "{loss}(f(x~), y), x~ found by {adversary}"
    epochs: PositiveFloat = 15
    lr: PositiveFloat = 0.2
    weight_decay: NonNegativeFloat = 5e-4
    schedule: Literal["constant", "drops", "steps", "cosine", "cyclic"] = "cyclic"
    attack: SerializeAsAny[Attack] = FGSM
    check_every: int = Field(default=100, ge=0)
    collapsed: float = Field(default=0.3, gt=0.0, lt=1.0)
    stop_on_collapse: bool = False

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        objective = Adversarial(attack=self.attack, **self.adversary(ball, steps_per_epoch))
        watch = ()
        if self.check_every:
            watch = (
                CatastrophicOverfitting(
                    self.check_every,
                    collapsed=self.collapsed,
                    stop=self.stop_on_collapse,
                    one_step=self.attack,
                ),
            )
        return [self.stage("adversarial", objective, steps_per_epoch, hooks=watch)]
