"""The cascade of an ensemble: members in turn, each on the rows that the ones before it left."""

import time
from contextlib import suppress
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ...core.randomness import Rng
from ...losses import ModelLoss, is_error, margin
from ...threats import Threat
from ..base import Attack, Attacked, BestSoFar, Loss
from .channels_last import relaid
from .margins import classifies, rows_may_leave
from .random_models import FRESH, Judgement, MeanOverDraws, error_rate, judge, unhurried
from .time_limit import OutOfTime, is_over, time_limit

CLEAN, FINAL = "clean", "fresh draws"
"""The names under which the looks at the clean inputs, and at what was found, are accounted for."""
PART = 64
"""Rows at a time where there is a deadline."""


@dataclass(frozen=True)
class MemberResult:
    """What one member of an ensemble was given, what it broke, and what that took."""

    name: str
    rows: int
    """Rows that it was given: those that still stood."""
    broken: int
    """Rows of these that it broke; none where the loss knows no classes."""
    seconds: float
    forwards: int
    """Rows that it sent forward through the model, and, for `backwards`, back."""
    backwards: int
    skipped: int = 0
    """Rows of these that it was not sent to, or not to its end, for lack of time."""

    @property
    def queries_per_row(self) -> float:
        """How often the model was asked about a row, on average over those that were given."""
        return self.forwards / max(1, self.rows)

    def __add__(self, other: "MemberResult") -> "MemberResult":
        """The account of the same member on the rows of both."""
        return MemberResult(
            self.name,
            self.rows + other.rows,
            self.broken + other.broken,
            self.seconds + other.seconds,
            self.forwards + other.forwards,
            self.backwards + other.backwards,
            self.skipped + other.skipped,
        )


class Cascade:
    """Attacks in turn on the examples of one batch, each on the rows that still stand.

    A row falls when its margin is not below zero (`losses.is_error`): at the clean input, or at a
    point that a member found. Fallen rows are attacked no more, nor are rows that the caller
    excludes, such as those that a certificate proved robust. Stacks of replicates keep all rows in
    every member. Models that convolve images on a CPU are attacked with channels last; what was
    found is judged in the layout that was given.

    A loss without classes has no rows that fall: members climb it one after the other.

    With `draws` above 1 the model is random. Members then climb the mean over draws. Each point
    that one returns is judged by draws of its own, and is taken over where more of them are wrong;
    rows fall when half are, and are attacked until all are. `finish` judges once more.

    Args:
        loss: any loss of the inputs; of a classifier's loss only model and labels are used.
        x: the clean inputs, shape (batch, ...).
        threat: the set around each input that is searched.
        rng: one generator, or one per replicate of a stack.
        draws: evaluations averaged wherever a value is judged, for models that are random.
        climbing: evaluations averaged where members climb; as many if left out.
        deadline: when members stop, by the clock `time.monotonic`. What they have found by then is
            kept; their accounts say which rows were left.

    Attributes:
        clean: the margin of each clean input (the loss itself where there are no classes).
        worst: the largest value found so far; of a random model the mean at the point kept.
        points: the inputs at which it was found.
        clean_errors, worst_errors: of a random model, which draws were wrong there, (draws, batch).
        results: one account per member run, the look at the clean inputs first.
    """

    def __init__(
        self, loss: Loss, x: Tensor, threat: Threat, rng: Rng, draws: int = 1,
        climbing: int | None = None, deadline: float | None = None,
    ):  # fmt: skip
        begun = time.perf_counter()
        self.x, self.threat, self.rng, self.draws = x, threat, rng, draws
        self.climbing = draws if climbing is None else climbing
        self.deadline = deadline
        self.clean_errors = self.worst_errors = torch.zeros(0, len(x), dtype=torch.bool)
        self.loss, value, self.classes = self._judged(loss)
        self.clean = BestSoFar(loss, x).checked(value)
        self.worst, self.points = self.clean.clone(), x.clone()
        self._climbed = relaid(self.loss, x) if self.classes else self.loss
        self._leaving = self.classes and rows_may_leave(self.loss, rng, one_generator=True)
        self._excluded = torch.zeros_like(self.broken)
        wrong, seconds = int(self.broken.sum()), time.perf_counter() - begun
        self.results = [MemberResult(CLEAN, len(x), wrong, seconds, draws * len(x), 0)]

    @property
    def random(self) -> bool:
        """Whether rows are judged by several draws."""
        return self.draws > 1 and self.classes

    @property
    def broken(self) -> Bool[Tensor, " batch"]:
        """Rows that are wrong at the clean input or at a point that was found: in half the draws,
        where the model is random."""
        if self.random:
            return error_rate(self.worst_errors) >= 0.5
        return is_error(self.worst) & self.classes

    @property
    def standing(self) -> Bool[Tensor, " batch"]:
        """Rows worth an attack: not excluded, and not broken, or not in all draws."""
        done = self.worst_errors.all(0) if self.random else self.broken
        return ~(done | self._excluded)

    def finish(self) -> None:
        """Judge what was found for a random model by draws that had no part in choosing it."""
        if not self.random:
            return
        begun = time.perf_counter()
        clean, worst = (judge(self.loss, x, FRESH) for x in (self.x, self.points))  # type: ignore[arg-type]
        self.clean, self.clean_errors = _number(clean.margin), clean.errors
        self.worst, self.worst_errors = _number(worst.margin), worst.errors
        seconds, rows = time.perf_counter() - begun, len(self.x)
        self.results.append(MemberResult(FINAL, rows, 0, seconds, 2 * FRESH * rows, 0))

    def exclude(self, rows: Bool[Tensor, " batch"]) -> None:
        """Attack these rows no more."""
        self._excluded |= rows

    def run_member(self, name: str, attack: Attack) -> MemberResult:
        """Send an attack to the rows that stand, and account for it."""
        begun, before = time.perf_counter(), self.broken
        index = (self.standing if self._leaving else torch.ones_like(before)).nonzero()[:, 0]
        forwards = backwards = skipped = 0
        if len(index) and self.threat.radius > 0:
            forwards, backwards, skipped = self._search_in_time(attack, index)
        broken = int((self.broken & ~before).sum())
        seconds = time.perf_counter() - begun
        result = MemberResult(name, len(index), broken, seconds, forwards, backwards, skipped)
        self.results.append(result)
        return result

    def _search_in_time(self, attack: Attack, index: Tensor) -> tuple[int, int, int]:
        """Rows forward, rows back, and rows left for lack of time. Under a deadline rows go in
        small parts: what a part has found is kept, one that is cut may lose some of it."""
        forwards = backwards = skipped = 0
        small = self.deadline is not None and self._leaving
        for part in index.split(PART) if small else (index,):
            if is_over(self.deadline):
                skipped += len(part)
                continue
            passes = self._search(attack, part)
            forwards, backwards = forwards + passes[0], backwards + passes[1]
            skipped += len(part) if is_over(self.deadline) else 0
        return forwards, backwards, skipped

    def _search(self, attack: Attack, index: Tensor) -> tuple[int, int]:
        """Take over the worst points of some rows; the rows that went forward and back for it."""
        if self.random:
            return self._search_mean(attack, index)
        climbed, x, clean = _rows(self._climbed, index), self.x[index], self.clean[index]
        found, forwards, backwards = search(
            attack, climbed, x, self.threat, self.rng, clean, self.deadline
        )
        value = found.loss
        if self._climbed is not self.loss:
            value = mean_value(_rows(self.loss, index), found.x, self.draws)
            forwards += self.draws * len(x)
        # Also keeps the clean input where an attack that does not ascend ends below it.
        value = _number(value)
        worse = value > self.worst[index]
        self.worst[index[worse]], self.points[index[worse]] = value[worse], found.x[worse]
        return forwards, backwards

    def _search_mean(self, attack: Attack, index: Tensor) -> tuple[int, int]:
        """The same for a random model: climb the mean over draws, judge by other draws."""
        climbed, x = _rows(self._climbed, index), self.x[index]
        inside = 1 if getattr(attack, "draws", 1) > 1 else self.climbing
        if inside > 1 and isinstance(climbed, ModelLoss):
            climbed = climbed.under(MeanOverDraws(climbed.model, inside))
        clean = self.clean[index]
        found, *passes = search(
            unhurried(attack), climbed, x, self.threat, self.rng, clean, self.deadline
        )
        seen = judge(_rows(self.loss, index), found.x, self.draws)  # type: ignore[arg-type]
        self._take_over(seen, found.x, index)
        forwards, backwards = (inside * rows for rows in passes)
        return forwards + self.draws * len(x), backwards

    def _take_over(self, seen: Judgement, points: Tensor, index: Tensor) -> None:
        """Points at which more draws are wrong, or as many and the mean margin is larger."""
        before, value = error_rate(self.worst_errors[:, index]), _number(seen.margin)
        worse = seen.rate > before
        worse |= (seen.rate == before) & (value > self.worst[index])
        self.worst[index[worse]], self.points[index[worse]] = value[worse], points[worse]
        self.worst_errors[:, index[worse]] = seen.errors[:, worse]

    def _judged(self, loss: Loss) -> tuple[Loss, Float[Tensor, " batch"], bool]:
        """The margin where there are classes, else the loss itself; its clean values; which."""
        if not isinstance(loss, ModelLoss):
            return loss, mean_value(loss, self.x, self.draws), False
        with torch.no_grad():
            outputs = [loss.outputs(self.x) for _ in range(self.draws)]
            classes = classifies(loss, outputs[0])
            if classes and loss.loss is not margin:
                loss = loss.climbing(margin)
            values = torch.stack([loss.loss(one, loss.y) for one in outputs])
        if classes and self.draws > 1:
            self.clean_errors, self.worst_errors = is_error(values), is_error(values)
        return loss, values.mean(0), classes


def search(
    attack: Attack, loss: Loss, x: Tensor, threat: Threat, rng: Rng, clean: Tensor | None = None,
    deadline: float | None = None,
) -> tuple[Attacked, int, int]:  # fmt: skip
    """An attack's answer, and the rows that it sent forward and back through the model.

    Args:
        attack: the attack; its points are checked to lie in the threat set.
        loss: what it climbs.
        x: the clean inputs.
        threat: the set around each.
        rng: where it draws from.
        clean: the loss at the clean inputs, if it is known.
        deadline: when to stop with what was found, by the clock `time.monotonic`.
    """
    best = BestSoFar(loss, x)
    if clean is not None:
        best.note(best.x, clean)
    with suppress(OutOfTime), time_limit(getattr(loss, "model", loss), deadline):
        attack.search(best, threat, rng)
    attack._check_inside(best.worst.x, best.x, threat)
    return best.worst, best.forwards, best.backwards


def mean_value(loss: Loss, x: Tensor, draws: int) -> Float[Tensor, " batch"]:
    """The loss at some inputs, averaged over evaluations of a model that is random."""
    with torch.no_grad():
        values = [loss(x) for _ in range(draws)]
    return values[0] if draws == 1 else torch.stack(values).mean(0)


def _number(value: Tensor) -> Tensor:
    """Values that compare: not a number is the worst."""
    return value.nan_to_num(float("inf"), float("inf"), float("-inf"))


def _rows(loss: Loss, index: Tensor) -> Loss:
    """The loss of some rows; of a loss that cannot be cut all are wanted."""
    return loss.rows(index) if isinstance(loss, ModelLoss) else loss
