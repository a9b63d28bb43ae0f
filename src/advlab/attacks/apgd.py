"""Auto-PGD: projected gradient ascent that sets its own steps."""

from pydantic import PositiveInt, model_validator

from ..core.randomness import Rng
from ..threats import Threat
from ._engine.objective import Objective, starts
from ._engine.step_sizes import AscentState, step_rule
from ._engine.targets import Targets, check_target, choose_targets
from .base import Attack, BestSoFar


class APGD(Attack):
    """Ascent with momentum whose steps halve, row by row, where it stalls (Croce & Hein 2020).

    A row whose step is halved goes on from its best point so far. In l1 steps follow the largest
    entries of the gradient (Croce & Hein 2021; `SparseSteps`). At the end it jumps, as PGD does, to
    where the linearisation at the best point is largest. Best is meant by the loss that is climbed;
    what is returned is the worst by the loss given.

    Args:
        steps: How many gradients per start.
        restarts: How many starts; those after the first are always random.
        random_start: Start from a uniform draw of the set, or from the clean input.
        climb: The loss to climb: "given", or "cross_entropy", "dlr" or "margin" of the outputs.
        target: The classes to move to, one ascent each; see `PGD`.
        classes: How many targets, at most all other classes.
        draws: Gradients to average at each point, for models that are random.
        early_exit: Rows leave the batch once they are broken.

    Example:
        >>> from advlab.attacks import APGD
        >>> from advlab.core.randomness import generator
        >>> from advlab.losses import ModelLoss, margin
        >>> attack = APGD(climb="dlr", target="most_likely", early_exit=True)
        >>> found = attack(ModelLoss(model, y, margin), x, ball, rng=generator("mine"))
        >>> broken = found.loss >= 0
    """

    steps: PositiveInt = 100
    restarts: PositiveInt = 1
    random_start: bool = True
    climb: Objective = "given"
    target: Targets | None = None
    classes: PositiveInt = 9
    draws: PositiveInt = 1
    early_exit: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> "APGD":
        check_target(self.climb, self.target)
        return self

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        for objective, point in starts(
            best,
            threat,
            rng,
            objective=self.climb,
            targets=choose_targets(self.target, best, self.classes, rng),
            restarts=self.restarts,
            random_start=self.random_start,
            early_exit=self.early_exit,
            draws=self.draws,
        ):
            project = threat.projector(objective.x)
            rule = step_rule(threat, objective.x, self.steps)
            state = AscentState.at(point, *objective.value_and_gradient(point))
            for step in range(1, self.steps + 1):
                if self.early_exit and (kept := objective.drop_broken()) is not None:
                    rule.keep_rows(kept)
                    state.keep_rows(kept)
                    project = threat.projector(objective.x)
                if len(objective.x) == 0:
                    break
                point = project(state.point + rule.move(state.grad))
                if step > 1 and rule.momentum < 1:
                    along = rule.momentum * (point - state.point)
                    along += (1 - rule.momentum) * (state.point - state.previous)
                    point = project(state.point + along)
                if step == self.steps:
                    objective.value(point)
                    objective.value(threat.maximiser(state.best_grad, objective.x))
                    break
                state.advance(point, *objective.value_and_gradient(point))
                stalled = rule.update(step, state)
                if stalled is not None and (not stalled.is_cpu or bool(stalled.any())):
                    state.restart_from_best(stalled)
            objective.drop_broken()
        best.note_clean()
