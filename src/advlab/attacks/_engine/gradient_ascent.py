"""Gradient walks: steps of one size in a steepest direction, each projected on the threat set."""

from abc import abstractmethod
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from ...core.errors import AdvlabError
from ...core.randomness import Rng
from ...threats import Ball, Threat
from ..base import Attack, Scout
from .objective import Climb, Hill, may_leave
from .targets import Targets, aims, check_climb


class Fence:
    """Projection on the sets around given centers; the ends of linf balls are computed once."""

    def __init__(self, threat: Threat, center: Tensor):
        self.threat, self.center = threat, center
        self.ends: tuple[Tensor, Tensor] | None = None
        if isinstance(threat, Ball) and threat.norm == "linf":
            far = torch.full_like(center, float("inf"))
            self.ends = threat.project(-far, center), threat.project(far, center)

    def project(self, point: Tensor) -> Tensor:
        if self.ends is not None:
            return torch.clamp(point, *self.ends)
        return self.threat.project(point, self.center)

    def keep(self, places: Tensor) -> None:
        """Forget all rows but these."""
        self.center = self.center[places]
        if self.ends is not None:
            self.ends = self.ends[0][places], self.ends[1][places]


class Walk(Attack):
    """An attack that walks; how past gradients count is the business of each.

    The last gradient's own worst point in the set is tried at the end (`jump`): with few steps a
    walk from a random start ends beside the optimum of even a linear loss, the jump lands on it.
    """

    steps: PositiveInt = 20
    step_size: PositiveFloat = 0.1
    """Length of one step, as a fraction of the radius."""
    restarts: PositiveInt = 1
    random_start: bool = True
    jump: bool = True
    climb: Climb = "given"
    target: Targets | None = None
    """The classes to walk to: away from the label by default."""
    early_exit: bool = False
    """Rows leave the batch once they are broken, before the first step if the clean input is. What
    is returned then breaks, but is not the worst. Stacks of replicates keep all rows."""
    keep: Literal["worst", "last"] = "worst"
    """The worst point seen, or the end of the walk whatever it costs, as other libraries do."""

    @model_validator(mode="after")
    def _consistent(self) -> "Walk":
        check_climb(self.climb, self.target)
        if self.keep == "last" and (self.restarts > 1 or self.early_exit or self.jump):
            raise AdvlabError(
                "one whole walk, where its last point is kept",
                f"restarts={self.restarts}, early_exit={self.early_exit}, jump={self.jump}",
            )
        return self

    @abstractmethod
    def mixed(self, memory: Tensor | None, grad: Tensor) -> Tensor:
        """What the next step climbs, by the newest gradient and what was climbed before."""

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        targets = aims(self.target, scout, 1, rng)
        leave = self.early_exit and may_leave(scout.loss, rng)
        hill = Hill(scout, self.climb, leave=leave)
        hill.aim(targets[0])
        for restart in range(self.restarts):
            if len(hill.index) == 0:
                break
            # Starts after the first must differ from it, or they would repeat its work.
            anywhere = self.random_start or restart > 0
            self._walk(hill, threat, threat.sample(hill.center, rng=rng) if anywhere else None)
        hill.come_home()
        if self.keep == "worst":
            scout.start()

    def _walk(self, hill: Hill, threat: Threat, start: Tensor | None) -> None:
        fence, size = Fence(threat, hill.center), self.step_size * threat.radius
        point = fence.center if start is None else start
        grad = hill.clean_gradient() if start is None else hill.value_and_gradient(point)[1]
        memory = self.mixed(None, grad)
        for step in range(self.steps):
            if step > 0:
                memory = self.mixed(memory, hill.value_and_gradient(point)[1])
            if (places := hill.stay()) is not None:
                fence.keep(places)
                point, memory = point[places], memory[places]
                if len(places) == 0:
                    return
            point = fence.project(point + size * threat.steepest(memory))
        if self.keep == "last":
            hill.scout.settle(point)
            return
        hill.value(point)
        if self.jump:
            hill.value(threat.maximiser(memory, hill.center))
        hill.stay()
