"""What a check may look at."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from ...attacks._engine.channels_last import relaid
from ...attacks._engine.random_models import MeanOverDraws, error_rate, judge
from ...core.randomness import generator
from ...losses import ModelLoss, evaluating, is_error, margin
from ...threats import Threat
from ..outcomes import Outcomes
from ..suites import Plan

FEW = 64
"""Rows that a check tries: enough to see a habit, cheap beside the attack itself."""

LUCK = 0.3
"""Error rates of a few draws differ by this much by chance: nearly three standard deviations."""


@dataclass(frozen=True)
class CheckContext:
    """A model and examples before the attack, or (with `outcomes`) after it."""

    model: Callable[[Tensor], Tensor]
    x: Tensor
    y: Tensor
    ball: Threat
    plan: Plan
    seed: int
    outcomes: Outcomes | None = None
    transfer: nn.Module | None = None

    def rng(self, check: str) -> torch.Generator:
        """The random numbers of one check."""
        return generator("evaluate", "doubts", check, self.seed)

    def margin(self, index: Tensor) -> ModelLoss:
        """The margin of some rows, by which they are judged."""
        return ModelLoss(self.model, self.y[index], margin)

    def climbed(self, index: Tensor) -> ModelLoss:
        """The same for attacks to climb: with channels last where that is faster."""
        return self._climbed.rows(index)

    def judged(self, index: Tensor, point: Tensor) -> tuple[Tensor, Tensor]:
        """The margins of some rows at one point each, and which rows that breaks.

        Of a random model the mean margin over draws, and rows of which at least half the draws are
        wrong, by more than luck above what is known of them.
        """
        if self.plan.draws == 1:
            with torch.no_grad():
                margins = self.margin(index)(point)
            return margins, is_error(margins)
        seen, known = judge(self.margin(index), point, self.plan.draws), torch.zeros(())
        if self.outcomes is not None and self.outcomes.worst_errors is not None:
            known = error_rate(self.outcomes.worst_errors[:, index])
        return seen.margin, (seen.rate >= 0.5) & (seen.rate >= known + LUCK)

    @cached_property
    def _climbed(self) -> ModelLoss:
        if self.plan.randomness is not None:
            model = MeanOverDraws(self.model, self.plan.climbing)
            return ModelLoss(model, self.y, margin)
        return relaid(ModelLoss(self.model, self.y, margin), self.x)  # type: ignore[return-value]

    @cached_property
    def few(self) -> Tensor:
        """Some rows, spread evenly."""
        return spread(torch.arange(len(self.x)))

    @cached_property
    def outputs(self) -> Tensor:
        """The model's answers to the few."""
        with torch.no_grad(), evaluating(self.model):
            return self.model(self.x[self.few])

    @cached_property
    def standing(self) -> Tensor:
        """Some of the rows that no attack has broken and no certificate proved robust."""
        return self.few if self.outcomes is None else spread(self.all_standing)

    @cached_property
    def all_standing(self) -> Tensor:
        """All of them."""
        if self.outcomes is None:
            return torch.arange(len(self.x))
        return (self.outcomes.uncertain & ~self.outcomes.broken).nonzero()[:, 0]

    @property
    def classes(self) -> int:
        """How many scores the model gives."""
        return self.outputs.shape[1] if self.outputs.ndim == 2 else 1


def spread(index: Tensor, most: int = FEW) -> Tensor:
    """At most so many of the rows, spread evenly."""
    if len(index) <= most:
        return index
    return index[torch.linspace(0, len(index) - 1, most).round().long()]


def notable(count: int, tried: int) -> bool:
    """More than a few rows on the border: at least three, and at least one in fifty."""
    return count >= max(3, tried / 50)
