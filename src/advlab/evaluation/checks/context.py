"""What a check may look at."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from ...attacks._engine.channels_last import relaid
from ...attacks._engine.random_models import MeanOverDraws, error_rate, judge
from ...core.devices import device_of
from ...core.randomness import generator
from ...losses import ModelLoss, PerExample, evaluating, is_error, margin
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
    loss: PerExample = margin
    """What rows are judged by: the margin, or a loss where there are no classes."""
    rows: Tensor | None = None
    """Where x is some of the data only: the places of its rows there."""
    budget: float | None = None
    """Seconds for the whole evaluation, if there is a limit."""
    unchosen: int | None = None
    """Where some rows were kept for what became of them: how many, the first, were not."""

    def rng(self, check: str) -> torch.Generator:
        """The random numbers of one check."""
        return generator("evaluate", "doubts", check, self.seed)

    def inputs(self, index: Tensor) -> Tensor:
        """Some rows, where the model is."""
        return self.x[index].to(device_of(self.model, self.x))

    def margin(self, index: Tensor) -> ModelLoss:
        """The margin of some rows, by which they are judged."""
        y = self.y[index].to(device_of(self.model, self.x))
        return ModelLoss(self.model, y, self.loss)

    def climbed(self, index: Tensor) -> ModelLoss:
        """The same for attacks to climb: with channels last where that is faster."""
        return self.margin(index).under(self._fast)

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
    def _fast(self) -> Callable[[Tensor], Tensor]:
        if self.plan.randomness is not None:
            return MeanOverDraws(self.model, self.plan.climbing)
        first = self.few[:2]
        return relaid(self.margin(first), self.inputs(first)).model  # type: ignore[attr-defined]

    @cached_property
    def few(self) -> Tensor:
        """Some rows, spread evenly."""
        return spread(torch.arange(len(self.x) if self.unchosen is None else self.unchosen))

    def places(self, rows: Tensor) -> Tensor:
        """Where some rows of the data are in x."""
        if self.rows is None:
            return rows
        found = {row: place for place, row in enumerate(self.rows.tolist())}
        return torch.tensor([found[row] for row in rows.tolist()], dtype=torch.int64)

    @cached_property
    def outputs(self) -> Tensor:
        """The model's answers to the few."""
        with torch.no_grad(), evaluating(self.model):
            return self.model(self.inputs(self.few))

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
        """How many scores the model gives, of which one is the answer; 0 if that is not so."""
        if self.loss is not margin or self.y.ndim > 1:
            return 0
        return self.outputs.shape[1] if self.outputs.ndim == 2 else 1


def spread(index: Tensor, most: int = FEW) -> Tensor:
    """At most so many of the rows, spread evenly."""
    if len(index) <= most:
        return index
    return index[torch.linspace(0, len(index) - 1, most).round().long()]


def notable(count: int, tried: int) -> bool:
    """More than a few rows on the border: at least three, and at least one in fifty."""
    return count >= max(3, tried / 50)
