"""SmoothAdv: adversarial training of a smoothed classifier."""

from typing import ClassVar, Literal

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from ...attacks import SmoothPGD
from ...threats import Threat
from ..smoothed_training import SmoothAdversarial
from .base import AttackedRecipe, Stage


class SmoothAdvRecipe(AttackedRecipe):
    """Cross entropy at x~ + noise, where x~ is the worst case of the smoothed classifier and the
    noise is that of the attack (Salman et al. 2019): 150 epochs of SGD with momentum 0.9, batches
    of 256, weight decay 1e-4, lr 0.1 divided by 10 after every third of them. The attack is that of
    the purification paper: sigma 0.25, two draws, four steps, the radius grows over 10 epochs.

    Args:
        attack: sigma, samples (draws per row) and steps of the attack on the smoothed loss.
        all_draws: train on every draw, or on the first.
    """

    name: ClassVar[str] = "smoothadv"
    citation: ClassVar[str] = "Salman et al., NeurIPS 2019; Allen-Zhu and Li, FOCS 2021"
    formula: ClassVar[str] = (
        "mean of {loss}(f(x~ + noise), y) over {attack.samples} draws of sigma {attack.sigma:g}, "
        "x~ climbs the smoothed loss with the same draws"
    )
    epochs: PositiveFloat = 150
    batch: PositiveInt = 256
    weight_decay: NonNegativeFloat = 1e-4
    schedule: Literal["constant", "drops", "steps", "cosine", "cyclic"] = "steps"
    radius_warmup: NonNegativeFloat = 10.0
    attack: SmoothPGD = SmoothPGD(sigma=0.25, samples=2, steps=4)
    all_draws: bool = True

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch)
        objective = SmoothAdversarial(attack=self.attack, all_draws=self.all_draws, **about)
        return [self.stage("adversarial", objective, steps_per_epoch)]
