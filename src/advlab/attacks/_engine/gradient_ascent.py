"""The settings of projected gradient ascent, and how it starts and ends: shared by PGD and MIM."""

from collections.abc import Iterator
from typing import Literal

from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from ...core.errors import AdvlabError
from ...core.randomness import Rng
from ...threats import Threat
from ..base import Attack, BestSoFar
from .objective import Objective, starts
from .targets import Targets, check_target, choose_targets


class GradientAscent(Attack):
    """Steps of one length in a steepest direction, each projected on the threat set."""

    steps: PositiveInt = 20
    step_size: PositiveFloat = 0.1
    """Length of one step, as a fraction of the radius."""
    restarts: PositiveInt = 1
    random_start: bool = True
    jump: bool = True
    """Try, at the end, the last gradient's own worst point in the set: with few steps an ascent
    from a random start ends beside the optimum of even a linear loss, the jump lands on it."""
    climb: Objective = "given"
    """The loss to climb."""
    target: Targets | None = None
    """The classes to move to: away from the label by default."""
    early_exit: bool = False
    """Rows leave the batch once they are broken, before the first step if the clean input is. What
    is returned then breaks, but is not the worst. Stacks of replicates keep all rows."""
    keep: Literal["worst", "last"] = "worst"
    """The worst point seen, or the last whatever its loss, as other libraries do."""

    @model_validator(mode="after")
    def _consistent(self) -> "GradientAscent":
        check_target(self.climb, self.target)
        if self.keep == "last" and (self.restarts > 1 or self.early_exit or self.jump):
            raise AdvlabError(
                "one whole ascent, where its last point is kept",
                f"restarts={self.restarts}, early_exit={self.early_exit}, jump={self.jump}",
            )
        return self

    @property
    def settles(self) -> bool:  # type: ignore[override]
        return self.keep == "last"

    def starts(
        self, best: BestSoFar, threat: Threat, rng: Rng
    ) -> Iterator[tuple[BestSoFar, Tensor]]:
        """The loss to climb and a point to start from, per restart."""
        yield from starts(
            best,
            threat,
            rng,
            objective=self.climb,
            targets=choose_targets(self.target, best, 1, rng),
            restarts=self.restarts,
            random_start=self.random_start,
            early_exit=self.early_exit,
        )
        if self.keep == "worst":
            best.note_clean()

    def finish(self, objective: BestSoFar, threat: Threat, point: Tensor, grad: Tensor) -> None:
        """Evaluate the last point, and the worst one by the last gradient."""
        if len(point) == 0:
            return
        if self.keep == "last":
            objective.settle(point)
            return
        objective.value(point)
        if self.jump:
            objective.value(threat.maximiser(grad, objective.x))
        objective.drop_broken()
