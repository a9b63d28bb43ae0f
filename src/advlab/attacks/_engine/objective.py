"""What an ascent climbs: the loss that the attack was given, or another of the same outputs."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...core.randomness import Rng
from ...losses import (
    ModelLoss,
    PerExample,
    cross_entropy,
    dlr,
    is_error,
    logistic,
    margin,
    targeted_dlr,
)
from ...threats import Threat
from ..base import Attacked, BestSoFar, input_gradient, value_and_gradient
from .margins import classifies, rows_may_leave, single_output

Objective = Literal["given", "cross_entropy", "dlr", "margin"]
"""The loss that the attack was given, or one of the model's outputs. A loss that is no ModelLoss,
or one of real targets, has no outputs to take another from: it is climbed itself."""

CLASSES: dict[str, PerExample] = {"cross_entropy": cross_entropy, "dlr": dlr, "margin": margin}
SINGLE: dict[str, PerExample] = {"cross_entropy": logistic, "dlr": margin, "margin": margin}

Target = Int[Tensor, " batch"] | None
"""One class per row to move to; None to move away from the label."""


def starts(
    best: BestSoFar,
    threat: Threat,
    rng: Rng,
    *,
    objective: Objective,
    targets: list[Target],
    restarts: int,
    random_start: bool,
    early_exit: bool,
    draws: int = 1,
) -> Iterator[tuple[BestSoFar, Tensor]]:
    """The objective of an ascent and a point to start from, per restart and target.

    Args:
        best: Remembers what is found, by the loss that was given.
        threat: The set that starts are drawn from.
        rng: One generator, or one per replicate.
        objective: The loss to climb.
        targets: The classes to move to, one ascent each.
        restarts: How often all of that is done. Starts after the first are random in any case, or
            they would repeat its work.
        random_start: Whether the first start is a draw from the set, or the clean input.
        early_exit: Whether rows leave once they are broken, where they can.
        draws: Evaluations to average, for models that are random even in eval mode.
    """
    leave = early_exit and rows_may_leave(best.loss, rng, one_generator=True)
    climbed = best
    if objective != "given" or leave or draws > 1:
        climbed = AttackObjective(best, objective, leave=leave, draws=draws)
    for restart in range(restarts):
        for target in targets:
            if len(climbed.x) == 0:
                break
            if isinstance(climbed, AttackObjective):
                climbed.set_target(target)
            anywhere = random_start or restart > 0
            yield climbed, threat.sample(climbed.x, rng=rng) if anywhere else climbed.x
    if isinstance(climbed, AttackObjective):
        climbed.merge()


class PointValues(NamedTuple):
    """A point by the loss climbed, the loss given, and the margin where rows may leave by it."""

    climbed: Float[Tensor, " batch"]
    given: Float[Tensor, " batch"]
    margin: Float[Tensor, " batch"] | None


class AttackObjective(BestSoFar):
    """Another loss to climb, or rows that leave, for the rows of a BestSoFar.

    The model runs once per point: both losses are computed from the same outputs. What `value` and
    `value_and_gradient` return is the loss climbed; what is remembered is worst by the loss given.
    `merge` hands it back to `whole`.

    Args:
        whole: Who remembers all rows.
        objective: The loss to climb.
        leave: Whether rows seen broken (a positive margin) are dropped by `drop_broken`.
        draws: How many evaluations are averaged.
    """

    def __init__(
        self,
        whole: BestSoFar,
        objective: Objective = "given",
        *,
        leave: bool = False,
        draws: int = 1,
    ):
        super().__init__(whole.loss, whole.x)
        self.whole, self.leave, self.draws = whole, leave, draws
        self.remembers = whole.remembers
        self.objective: Objective = objective
        self.target: Target = None
        self._worst, self._clean_noted = whole._worst, whole._clean_noted
        self.broken = torch.zeros(len(self.x), dtype=torch.bool, device=self.x.device)
        self.rows = torch.arange(len(self.x), device=self.x.device)
        if leave or draws > 1:
            # One draw of the clean inputs, by luck, would beat the mean of many elsewhere.
            self.value(self.x)
            self.drop_broken()

    def set_target(self, target: Int[Tensor, " all"] | None) -> None:
        """Move to these classes, one per row of the whole; None: away from the label."""
        self.target = None if target is None else target[self.rows]

    def value(self, point: Tensor) -> Float[Tensor, " batch"]:
        with torch.no_grad():
            seen = [self._evaluate(point) for _ in range(self.draws)]
        self.forwards += self.draws * len(point)
        return self._noted(point, seen)

    def value_and_gradient(
        self, point: Tensor
    ) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch *shape"]]:
        seen, total = [], torch.zeros(())
        for draw in range(self.draws):
            one, grad = self._evaluate_with_gradient(point)
            seen.append(one)
            total = grad if draw == 0 else total + grad
        self.forwards += self.draws * len(point)
        self.backwards += self.draws * len(point)
        return self._noted(point, seen), total / self.draws if self.draws > 1 else total

    def drop_broken(self) -> Int[Tensor, " kept"] | None:
        """Drop the rows seen broken; the places of those that stay, or None if all do."""
        if not (self.leave and bool(self.broken.any())):
            return None
        kept = (~self.broken).nonzero()[:, 0]
        self.merge()
        self.rows, self.broken = self.rows[kept], self.broken[kept]
        self.target = None if self.target is None else self.target[kept]
        self.loss, self.x = self.whole._loss_of(self.rows), self.whole.x[self.rows]
        if self._worst is not None:
            self._worst = Attacked(self._worst.x[kept], self._worst.loss[kept])
        return kept

    def merge(self) -> None:
        """Tell the whole what was found."""
        whole = self.whole
        if len(self.rows) < len(whole.x):
            whole.join(self.rows, self)
        else:
            whole._worst, whole._clean_noted = self._worst, self._clean_noted
            whole._answer, whole.settled = self._answer, self.settled
            whole.forwards += self.forwards
            whole.backwards += self.backwards
        self.forwards = self.backwards = 0

    def _evaluate_with_gradient(self, point: Tensor) -> tuple[PointValues, Tensor]:
        if not isinstance(self.loss, ModelLoss):
            value, grad = value_and_gradient(self.loss, point)
            return PointValues(value, value, None), grad
        with torch.enable_grad():
            leaf = point.detach().requires_grad_()
            seen = self._evaluate(leaf)
            grad = input_gradient(seen.climbed, leaf)
        return PointValues(seen.climbed.detach(), seen.given.detach(), seen.margin), grad

    def _evaluate(self, point: Tensor) -> PointValues:
        loss = self.loss
        if not isinstance(loss, ModelLoss):
            value = loss(point)
            return PointValues(value, value, None)
        outputs = loss.outputs(point)
        classes = classifies(loss, outputs)
        if self.objective == "given" or not classes:
            climbed = given = loss.loss(outputs, loss.y)
        else:
            climbed = self._climbed(outputs, loss.y)
            with torch.no_grad():
                given = loss.loss(outputs, loss.y)
        if not self.leave or not classes:
            return PointValues(climbed, given, None)
        with torch.no_grad():
            lead = given.detach() if loss.loss is margin else margin(outputs, loss.y)
        return PointValues(climbed, given, lead)

    def _climbed(self, outputs: Tensor, y: Tensor) -> Tensor:
        if single_output(outputs):
            return SINGLE[self.objective](outputs, y)
        if self.target is None:
            return CLASSES[self.objective](outputs, y)
        if y.ndim == 2:  # many labels, of which the target is to become wrong
            return (-y * outputs).gather(1, self.target[:, None])[:, 0]
        if self.objective == "cross_entropy":
            return -cross_entropy(outputs, self.target)
        if self.objective == "dlr":
            return targeted_dlr(outputs, y, self.target)
        gap = outputs.gather(1, self.target[:, None]) - outputs.gather(1, y[:, None])
        return gap[:, 0]

    def _noted(self, point: Tensor, seen: list[PointValues]) -> Tensor:
        climbed, given, lead = seen[0] if len(seen) == 1 else _mean(seen)
        self.note(point, given)
        if lead is not None:
            self.broken |= is_error(lead)
        return climbed


def _mean(seen: list[PointValues]) -> PointValues:
    leads = [one.margin for one in seen if one.margin is not None]
    return PointValues(
        torch.stack([one.climbed for one in seen]).mean(0),
        torch.stack([one.given for one in seen]).mean(0),
        torch.stack(leads).mean(0) if leads else None,
    )
