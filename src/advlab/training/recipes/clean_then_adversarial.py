"""Clean training, then adversarial training of the same network."""

from typing import ClassVar

from pydantic import NonNegativeFloat, PositiveFloat, SerializeAsAny

from ...attacks import Attack
from ...threats import Threat
from ..objectives import Adversarial, Clean
from .base import AttackedRecipe, Stage
from .pgd import SEVEN_STEPS


class CleanThenAdversarialRecipe(AttackedRecipe):
    """A clean stage, then an adversarial one that starts from its weights: the purification paper
    (Allen-Zhu and Li 2021; Algorithms 1 and 2, "adversarial from clean" of its Table 1), and the
    pre-training of the generalization paper (appendix A.3). SGD with momentum 0.9, weight decay
    1e-4; each stage starts at lr 0.1 and divides it by 10 at four fifths.

    Args:
        epochs: of the clean stage.
        adversarial_epochs: of the adversarial stage.
        attack: how x~ is found.
    """

    name: ClassVar[str] = "clean_then_adversarial"
    citation: ClassVar[str] = "Allen-Zhu and Li, FOCS 2021"
    formula: ClassVar[str] = (
        "{loss}(f(x), y) for {epochs:g} epochs, then {loss}(f(x~), y) for {adversarial_epochs:g}, "
        "x~ found by {adversary}"
    )
    epochs: PositiveFloat = 50
    weight_decay: NonNegativeFloat = 1e-4
    drops: tuple[float, ...] = (0.8,)
    adversarial_epochs: PositiveFloat = 50
    attack: SerializeAsAny[Attack] = SEVEN_STEPS

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch)
        robust = Adversarial(attack=self.attack, **about)
        longer = self.adversarial_epochs
        return [
            self.stage("clean", Clean(loss=self.per_example_loss()), steps_per_epoch),
            self.stage("adversarial", robust, steps_per_epoch, epochs=longer),
        ]
