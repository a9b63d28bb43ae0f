"""SmoothAdv: training on attacked and noisy inputs, with the noise that the attack saw."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ..attacks import SmoothPGD
from ..core.randomness import Rng
from .objectives import AttackedObjective, StepContext


class SmoothAdversarial(AttackedObjective):
    """The mean of loss(f(x~ + noise_k), y) over the noise draws with which the attack found x~ as
    the worst case of the smoothed classifier (Salman et al. 2019, SmoothAdv).

    Args:
        loss, ball, warmup: as in `AttackedObjective`.
        attack: PGD on the smoothed loss, with sigma and the number of draws.
        all_draws: train on every draw (the paper's `m_train` copies of each row), or on the first.

    Example:
        from advlab.attacks import SmoothPGD
        from advlab.threats import Ball
        from advlab.training import SmoothAdversarial
        SmoothAdversarial(ball=Ball("l2", 1.0), attack=SmoothPGD(sigma=0.25, samples=2, steps=4))
    """

    attack: SmoothPGD = SmoothPGD()  # type: ignore[assignment]
    all_draws: bool = True

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        noise = context.once("noise", lambda: self._noise(context))
        attacked = context.attacked()
        draws = noise if self.all_draws else noise[:1]
        # The draws of a row stand side by side, so that blocks of replicates stay whole.
        rows = (attacked + draws).transpose(0, 1).flatten(0, 1)
        y = context.y.repeat_interleave(len(draws), 0)
        each = context.loss(context.outputs(rows), y)
        return each.reshape(-1, len(draws)).mean(1)

    def _noise(self, context: StepContext) -> Tensor:
        """The noise that the attack of this step will draw first; without a radius it draws none,
        and the noise is this step's own."""
        searches = context.ball.radius > 0
        return self.attack.noise(context.x, _copied(context.rng) if searches else context.rng)


def _copied(rng: Rng) -> Rng:
    """Generators that go on as these would, without moving them."""
    if isinstance(rng, Sequence):
        return [_copy(one) for one in rng]
    return _copy(rng)


def _copy(rng: torch.Generator) -> torch.Generator:
    return torch.Generator(rng.device).set_state(rng.get_state())
