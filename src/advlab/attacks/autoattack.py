"""AutoAttack: an ensemble without knobs, each member only on what the others left."""

import time
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool
from pydantic import PositiveInt
from torch import Tensor

from ..core.randomness import Rng
from ..losses import ModelLoss, margin
from ..threats import Threat
from ._engine.channels_last import relaid
from ._engine.margins import classifies, rows_may_leave
from ._engine.objective import AttackObjective, Objective
from .apgd import APGD
from .base import Attack, Attacked, BestSoFar, Loss
from .fab import FAB
from .square import Square

TARGETS = 9
DRAWS = 20
"""Evaluations averaged at each point of a random model; both as published."""


@dataclass(frozen=True)
class Stage:
    """What one member of an ensemble did."""

    name: str
    rows: int
    """How many it was sent to."""
    broken: int
    """How many of these it broke; none where the loss knows no classes."""
    seconds: float
    forwards: int
    """Rows that went through the model, and, for `backwards`, back."""
    backwards: int


class AutoAttack(Attack):
    """The ensembles of Croce & Hein 2020, for any number of classes from two up.

    standard  APGD on cross entropy, APGD on the targeted DLR, FAB targeted, Square
    plus      APGD on cross entropy and DLR with 5 restarts, FAB with 5, Square, the targeted two
    rand      APGD on cross entropy and DLR, gradients averaged over 20 draws of a random model

    Rows leave once their margin is positive, those wrong at the clean input at once, so each member
    works on what the cheaper ones left. Targets are the 9 likeliest other classes or all there are;
    of two classes a target says nothing. The answer is the largest margin found: hand it the margin
    as loss to read off what was broken. Losses without classes meet APGD and Square on themselves.
    Stacks of replicates keep all rows.
    """

    version: Literal["standard", "plus", "rand"] = "standard"
    steps: PositiveInt = 100
    queries: PositiveInt = 5000

    def __init__(self, version: str = "standard", **settings: Any):
        super().__init__(**{"version": version, **settings})

    def run(self, loss: Loss, x: Tensor, ball: Threat, *, rng: Rng) -> tuple[Attacked, list[Stage]]:
        """What a call returns, and the account of its members, the clean inputs first."""
        ball.check_center(x)
        best = BestSoFar(loss, x.detach())
        stages = self._ensemble(best, ball, rng) if ball.radius > 0 else []
        self._check_inside(best.worst.x, best.x, ball)
        return best.worst, stages

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        self._ensemble(best, threat, rng)

    def members(self) -> dict[str, Attack]:
        """The attacks of this version, in their order."""

        def apgd(climb: Objective, **more: Any) -> APGD:
            return APGD(steps=self.steps, climb=climb, early_exit=True, **more)

        targeted = apgd("dlr", target="most_likely", classes=TARGETS)
        fab = FAB(steps=self.steps, targets=TARGETS)
        square = Square(queries=self.queries)
        if self.version == "rand":
            return {
                "APGD cross entropy": apgd("cross_entropy", draws=DRAWS),
                "APGD DLR": apgd("dlr", draws=DRAWS),
            }
        if self.version == "standard":
            return {
                "APGD cross entropy": apgd("cross_entropy"),
                "APGD targeted DLR": targeted,
                "FAB targeted": fab,
                "Square": square,
            }
        return {
            "APGD cross entropy": apgd("cross_entropy", restarts=5),
            "APGD DLR": apgd("dlr", restarts=5),
            "FAB": FAB(steps=self.steps, restarts=5),
            "Square": square,
            "APGD targeted DLR": targeted,
            "FAB targeted": fab,
        }

    def _ensemble(self, best: BestSoFar, threat: Threat, rng: Rng) -> list[Stage]:
        begun, draws = time.perf_counter(), DRAWS if self.version == "rand" else 1
        judge = _judge(best)
        if judge is None:
            members = {"APGD": APGD(steps=self.steps), "Square": Square(queries=self.queries)}
            return [_stage(*one, best, threat, rng) for one in members.items()]
        AttackObjective(judge, draws=draws).merge()  # evaluates the clean inputs
        wrong = int((judge.worst.loss > 0).sum())
        clean = Stage("clean", len(best.x), wrong, _since(begun), judge.forwards, 0)
        stages = [_stage(*one, judge, threat, rng) for one in self.members().items()]
        if judge is not best:
            objective = AttackObjective(best, draws=draws)
            objective.value(judge.worst.x)
            objective.merge()
            best.note_clean()
            best.forwards += judge.forwards
            best.backwards += judge.backwards
        return [clean, *stages]


def _judge(best: BestSoFar) -> BestSoFar | None:
    """A best-so-far by margin for the same rows; None where there are no classes."""
    if not isinstance(best.loss, ModelLoss):
        return None
    with torch.no_grad():
        outputs = best.loss.outputs(best.x)
    best.forwards += len(best.x)
    if not classifies(best.loss, outputs):
        return None
    judged = best.loss if best.loss.loss is margin else best.loss.climbing(margin)
    loss = relaid(judged, best.x)
    return best if loss is best.loss else BestSoFar(loss, best.x)


def _stage(name: str, attack: Attack, best: BestSoFar, threat: Threat, rng: Rng) -> Stage:
    """Send an attack to the rows that are not broken yet, and book what it did."""
    begun, forwards, backwards = time.perf_counter(), best.forwards, best.backwards
    before = _broken(best)
    stay = before & rows_may_leave(best.loss, rng, one_generator=True)
    index = (~stay).nonzero()[:, 0]
    if not bool(stay.any()):
        attack.search(best, threat, rng)
    elif len(index):
        part = best.part(index)
        attack.search(part, threat, rng)
        best.join(index, part)
    return Stage(
        name,
        len(index),
        int((_broken(best) & ~before).sum()),
        _since(begun),
        best.forwards - forwards,
        best.backwards - backwards,
    )


def _broken(best: BestSoFar) -> Bool[Tensor, " batch"]:
    judged = isinstance(best.loss, ModelLoss) and best.loss.loss is margin
    return (best.worst.loss > 0) & judged


def _since(begun: float) -> float:
    return time.perf_counter() - begun
