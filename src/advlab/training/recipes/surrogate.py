"""The surrogate attack in training, with xi tied to the learning rate."""

from typing import ClassVar, Literal

from pydantic import NonNegativeFloat, PositiveFloat, SerializeAsAny

from ...attacks import FGM, Attack
from ...threats import Threat
from ..surrogate_training import SurrogateAdversarial
from .base import AttackedRecipe, Stage


class SurrogateRecipe(AttackedRecipe):
    """Algorithm 1 of the generalization paper (Xing et al. 2021) as it trains deep networks: 100
    epochs, lr 0.1 times 0.1 at epochs 75 and 90, xi = 0.001 times 0.1 wherever the rate is. The
    paper leaves momentum and weight decay open: 0.9 and 5e-4 here.

    Args:
        xi: how large a gradient must be for a whole move, at the largest learning rate.
        tie_xi: multiply xi as the learning rate is; or keep it.
        gradient: what xi is compared with: "per_example" or "batch_mean".
        attack: the attack whose moves are shrunk.
    """

    name: ClassVar[str] = "surrogate"
    citation: ClassVar[str] = "Xing, Song and Cheng, AISTATS 2021"
    formula: ClassVar[str] = "{loss}(f(x~), y), x~ = x + a move shrunk by xi = {xi:g} lr_t / {lr:g}"
    epochs: PositiveFloat = 100
    drops: tuple[float, ...] = (0.75, 0.9)
    xi: NonNegativeFloat = 0.001
    tie_xi: bool = True
    gradient: Literal["per_example", "batch_mean"] = "per_example"
    attack: SerializeAsAny[Attack] = FGM()

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        objective = SurrogateAdversarial(
            attack=self.attack,
            xi=self.xi,
            lr=self.lr if self.tie_xi else None,
            gradient=self.gradient,
            **self.adversary(ball, steps_per_epoch),
        )
        return [self.stage("adversarial", objective, steps_per_epoch)]
