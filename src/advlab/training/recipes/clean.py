"""Standard training."""

from pydantic import NonNegativeFloat, PositiveFloat

from ...threats import Threat
from ..objectives import Clean
from .base import Recipe, Stage


class CleanRecipe(Recipe):
    """Cross entropy on the inputs as they are, with the settings of residual networks on CIFAR-10:
    SGD with momentum 0.9, weight decay 1e-4, lr 0.1 divided by 10 at half and three quarters of
    164 epochs (He et al. 2016)."""

    name = "clean"
    citation = "He, Zhang, Ren and Sun, CVPR 2016"
    formula = "{loss}(f(x), y)"
    epochs: PositiveFloat = 164
    weight_decay: NonNegativeFloat = 1e-4

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        return [self.stage("clean", Clean(loss=self.per_example_loss()), steps_per_epoch)]
