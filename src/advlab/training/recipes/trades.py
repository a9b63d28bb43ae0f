"""TRADES."""

from typing import ClassVar

from pydantic import NonNegativeFloat, PositiveFloat, SerializeAsAny

from ...attacks import PGD, Attack
from ...threats import Threat
from ..objectives import TRADES
from .base import AttackedRecipe, Stage

TEN_STEPS = PGD(steps=10, step_size=0.25, jump=False, keep="last")
"""Steps of 2/255 in a ball of 8/255."""


class TRADESRecipe(AttackedRecipe):
    """Cross entropy at x and beta = 6 times the divergence of the answers at x and x~, which ten
    steps of a quarter of the radius climb (Zhang et al. 2019): 100 epochs of SGD with momentum 0.9,
    weight decay 2e-4, lr 0.1 divided by 10 at epochs 75 and 90.

    The attack starts from a uniform draw of the ball; the paper's from a normal draw of 0.001.

    Args:
        beta: weight of the divergence, 1/lambda in the paper.
        attack: how x~ is found.
    """

    name: ClassVar[str] = "trades"
    citation: ClassVar[str] = "Zhang, Yu, Jiao, Xing, El Ghaoui and Jordan, ICML 2019"
    formula: ClassVar[str] = (
        "{loss}(f(x), y) + {beta:g} KL(p(x) || p(x~)), x~ climbs the KL ({adversary})"
    )
    epochs: PositiveFloat = 100
    weight_decay: NonNegativeFloat = 2e-4
    drops: tuple[float, ...] = (0.75, 0.9)
    beta: NonNegativeFloat = 6.0
    attack: SerializeAsAny[Attack] = TEN_STEPS

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch)
        objective = TRADES(beta=self.beta, attack=self.attack, **about)
        return [self.stage("adversarial", objective, steps_per_epoch)]
