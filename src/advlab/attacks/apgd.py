"""Auto-PGD: projected gradient ascent that sets its own steps."""

from pydantic import PositiveInt, model_validator
from torch import Tensor

from ..core.randomness import Rng
from ..threats import Threat
from ._engine.gradient_ascent import Fence
from ._engine.objective import Climb, Hill, may_leave
from ._engine.step_sizes import Progress, step_rule
from ._engine.targets import Targets, aims, check_climb
from .base import Attack, Scout


class APGD(Attack):
    """Steps with momentum whose sizes halve, row by row, where the climb stalls; each halving goes
    on from the best point so far (Croce & Hein 2020). l1 has steps of its own: see `Sparse`.

    At the end it jumps, as PGD does, to where the linearisation at the best point is largest. Best
    is meant by the loss that is climbed; what is returned is the worst by the loss given.
    """

    steps: PositiveInt = 100
    restarts: PositiveInt = 1
    random_start: bool = True
    climb: Climb = "given"
    target: Targets | None = None
    """The classes to climb to, each with walks of its own: away from the label by default."""
    classes: PositiveInt = 9
    """How many targets, at most all other classes."""
    draws: PositiveInt = 1
    """Gradients to average at each point, for models that are random."""
    early_exit: bool = False
    """Rows leave the batch once they are broken, as in PGD."""

    @model_validator(mode="after")
    def _has_a_slope(self) -> "APGD":
        check_climb(self.climb, self.target)
        return self

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        targets = aims(self.target, scout, self.classes, rng)
        leave = self.early_exit and may_leave(scout.loss, rng)
        hill = Hill(scout, self.climb, leave=leave, draws=self.draws)
        for restart in range(self.restarts):
            for target in targets:
                if len(hill.index) == 0:
                    break
                hill.aim(target)
                anywhere = self.random_start or restart > 0
                start = threat.sample(hill.center, rng=rng) if anywhere else hill.center
                self._climb(hill, threat, start)
        hill.come_home()
        scout.start()

    def _climb(self, hill: Hill, threat: Threat, start: Tensor) -> None:
        fence = Fence(threat, hill.center)
        rule = step_rule(threat, hill.center, self.steps)
        seen = Progress.at(start, *hill.value_and_gradient(start))
        for step in range(1, self.steps + 1):
            if (places := hill.stay()) is not None:
                for part in (fence, rule, seen):
                    part.keep(places)
            if len(hill.index) == 0:
                return
            point = fence.project(seen.point + rule.move(seen.grad))
            if step > 1 and rule.momentum < 1:
                along = rule.momentum * (point - seen.point)
                along += (1 - rule.momentum) * (seen.point - seen.previous)
                point = fence.project(seen.point + along)
            if step == self.steps:
                hill.value(point)
                hill.value(threat.maximiser(seen.best_grad, hill.center))
                break
            seen.arrive(point, *hill.value_and_gradient(point))
            back = rule.look(step, seen)
            if back is not None and bool(back.any()):
                seen.go_back(back)
        hill.stay()
