"""Free adversarial training."""

from typing import ClassVar

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from ...threats import Threat
from ..free_replays import Free
from .base import AttackedRecipe, Stage


class FreeRecipe(AttackedRecipe):
    """Each batch m = 8 times in a row, one backward pass for weights and perturbation, which stays
    from batch to batch (Shafahi et al. 2019). The settings are those of PGD-AT, with the epochs
    divided by m, so that as many steps are taken.

    Args:
        epochs: passes over the data; each has m steps per batch.
        m: replays of a batch.
        step_size: the move of the perturbation per step, as a fraction of the radius.
    """

    name: ClassVar[str] = "free"
    citation: ClassVar[str] = "Shafahi et al., NeurIPS 2019"
    formula: ClassVar[str] = (
        "{loss}(f(x + delta), y), delta moved by the same backward pass, {m} replays of a batch"
    )
    epochs: PositiveFloat = 25
    weight_decay: NonNegativeFloat = 2e-4
    m: PositiveInt = 8
    step_size: PositiveFloat = 1.0

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch * self.m)
        objective = Free(m=self.m, step_size=self.step_size, **about)
        return [self.stage("adversarial", objective, steps_per_epoch)]
