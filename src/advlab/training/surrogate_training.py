"""Adversarial training with the surrogate attack, whose xi follows the learning rate."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from pydantic import NonNegativeFloat, PositiveFloat, SerializeAsAny
from torch import Tensor

from ..attacks import FGM, Attack, Surrogate
from ..core.randomness import Rng
from .objectives import Adversarial, StepContext


class SurrogateAdversarial(Adversarial):
    """loss(f(x~), y) with x~ = A_{eps, xi_t}(x), xi_t = xi * lr_t / lr: Algorithm 1 of the
    generalization paper (Xing et al. 2021), with xi multiplied wherever the learning rate is
    (section 3.2 and appendix A.3).

    Args:
        loss, ball, warmup: as in `AttackedObjective`.
        attack: the attack whose moves are shrunk.
        xi: how large a gradient must be for a whole move, at the learning rate `lr`.
        lr: the learning rate at which xi is xi; None keeps xi as it is all along.
        gradient: the gradient that xi is compared with: "per_example", of each example's own loss
            (the definition), or "batch_mean", of the mean over the batch, which is what a backward
            pass from the mean gives: n times smaller, so that xi counts n times as much.
    """

    attack: SerializeAsAny[Attack] = FGM()
    xi: NonNegativeFloat = 0.001
    lr: PositiveFloat | None = None
    gradient: Literal["per_example", "batch_mean"] = "per_example"

    def context(
        self,
        model: Callable[[Tensor], Tensor],
        x: Tensor,
        y: Tensor,
        rng: Rng,
        replicates: int = 1,
        step: int = 0,
        lr: float = 0.0,
    ) -> StepContext:
        made = super().context(model, x, y, rng, replicates, step, lr)
        xi = self.xi if self.lr is None else self.xi * lr / self.lr
        if self.gradient == "batch_mean":
            xi *= len(x) // replicates
        return replace(made, attack=Surrogate(xi=xi, inner=made.attack))
