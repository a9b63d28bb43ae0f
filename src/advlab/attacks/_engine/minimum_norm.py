"""Minimum-norm attacks: they look for the nearest input that the model gets wrong."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from pydantic import NonNegativeInt
from torch import Tensor

from ...core.randomness import Rng
from ...losses import is_error
from ...threats import Ball, Norm, Threat
from ...threats.base import per_example
from ..base import Attack, BestSoFar, Loss, in_full_precision
from .margins import Decision, rows_may_leave


@dataclass(frozen=True)
class Minimal:
    """The nearest adversarial input found for each row, and how far it is."""

    x: Float[Tensor, "batch *shape"]
    """The clean input where none was found, and where it is wrong already."""
    distance: Float[Tensor, " batch"]
    """Infinite where none was found, zero where the clean input is wrong already."""

    @property
    def found(self) -> Bool[Tensor, " batch"]:
        return self.distance.isfinite()


class MinimumNorm(Attack):
    """An attack that shortens adversarial moves. A new one writes `minimise` only.

    Inside a threat set its nearest point is offered, brought back into the set if it lies outside,
    and so is the point that the same direction reaches at the rim, where the loss is larger. Rows
    leave as soon as they are broken inside a convex set. Around a Cap the search is in l2.
    """

    refinements: NonNegativeInt = 5
    """Steps of a last search on the segment between the nearest point and the clean input."""

    def minimum(
        self,
        loss: Loss,
        x: Float[Tensor, "batch *shape"],
        norm: Norm,
        box: tuple[float, float] | None = None,
        *,
        rng: Rng,
    ) -> Minimal:
        """The nearest input in this norm, and in the box, that the model classifies wrongly.

        Args:
            loss: A ModelLoss with one label per row.
            x: The clean inputs.
            norm: The norm that is to be small: "l1", "l2" or "linf".
            box: The lower and upper end of every coordinate, if there are any.
            rng: One generator, or one per replicate.
        """
        everywhere = Ball(norm=norm, radius=0.0, box=box)
        everywhere.check_center(x)
        with in_full_precision(loss) as loss:
            return self._nearest(loss, x.detach(), everywhere, rng).found

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        nearest, x = self._nearest(best.loss, best.x, threat, rng), best.x
        best.note_clean()
        move = nearest.found.x - x
        stretch = threat.radius / threat.norm_of(move).clamp(min=1e-30)
        for point in (nearest.found.x, x + per_example(stretch, x) * move):
            best.value(threat.project(point, x))
        best.forwards += nearest.forwards
        best.backwards += nearest.backwards

    def _nearest(self, loss: Loss, x: Tensor, threat: Threat, rng: Rng) -> "NearestSoFar":
        decision = Decision.of(loss, type(self).__name__)
        nearest = NearestSoFar(decision, x, threat, leave=rows_may_leave(loss, rng))
        self.minimise(nearest, rng)
        nearest.refine(self.refinements)
        return nearest

    @abstractmethod
    def minimise(self, nearest: "NearestSoFar", rng: Rng) -> None:
        """Show adversarial points to `nearest`, which remembers the nearest of each row."""


class NearestSoFar:
    """What a minimum-norm attack knows: the nearest adversarial point of each row, and the work.

    Args:
        decision: The margins under attack.
        x: The clean inputs.
        threat: Measures distances, and knows where inputs can lie. Rows that are broken within its
            radius need no more work, if it is convex.
        leave: Whether rows may leave the batch.
    """

    def __init__(self, decision: Decision, x: Tensor, threat: Threat, *, leave: bool = True):
        self.decision, self.x, self.threat, self.leave = decision, x, threat, leave
        self.enough = threat.radius if threat.convex else 0.0
        self.forwards = self.backwards = 0
        self._point = x.clone()
        self.clean = decision.margin(x)
        self.distance = torch.where(is_error(self.clean), 0.0, math.inf).to(x)
        self.forwards += len(x)

    @property
    def found(self) -> Minimal:
        """The nearest point of each row."""
        return Minimal(self._point, self.distance)

    def active_rows(self) -> Int[Tensor, " rows"]:
        """The rows that are worth more work."""
        rows = torch.arange(len(self.x), device=self.x.device)
        return rows[self.distance > self.enough] if self.leave else rows

    def decision_of(self, rows: Int[Tensor, " rows"]) -> Decision:
        """The margins of these rows."""
        return self.decision.rows(rows) if self.leave else self.decision

    def margin(self, point: Tensor, rows: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """The margins at these points of these rows, noted."""
        found = self.decision_of(rows).margin(point)
        self.forwards += len(point)
        self.note(point, found, rows)
        return found

    def linearised(self, point: Tensor, rivals: Tensor, rows: Tensor):
        """`Decision.linearised`, noted."""
        margin, values, slopes = self.decision_of(rows).linearised(point, rivals)
        self.forwards += len(point)
        self.backwards += values.numel()
        self.note(point, margin, rows)
        return margin, values, slopes

    def note(self, point: Tensor, margin: Tensor, rows: Tensor) -> None:
        """Remember the points that are wrong and nearer than those before."""
        distance = self.threat.norm_of(point - self.x[rows])
        nearer = is_error(margin) & (distance < self.distance[rows])
        self._point[rows[nearer]] = point[nearer]
        self.distance[rows[nearer]] = distance[nearer]

    def still_active(self, rows: Tensor) -> Bool[Tensor, " rows"]:
        """Which of these rows are still worth work."""
        still = self.distance[rows] > self.enough
        return still if self.leave else torch.ones_like(still)

    def refine(self, steps: int) -> None:
        """Where the margin, taken for linear between a wrong and a right point, changes its sign.

        The final search of FAB, on the segment from the nearest point to the clean input.
        """
        rows = self.active_rows()
        if self.leave:
            rows = rows[self.distance[rows].isfinite()]
        if steps == 0 or len(rows) == 0:  # no model is asked for nothing
            return
        right, below, wrong = self.x[rows], self.clean[rows], self._point[rows]
        above = self.margin(wrong, rows)
        for _ in range(steps):
            share = (-below / (above - below).clamp(min=1e-30)).clamp(0.01, 0.99)
            # A little beyond the crossing, so that mostly it is the wrong side that moves.
            point = right + per_example(0.1 + 0.9 * share, right) * (wrong - right)
            margin = self.margin(point, rows)
            over = is_error(margin)
            right = torch.where(per_example(over, point), right, point)
            wrong = torch.where(per_example(over, point), point, wrong)
            below, above = torch.where(over, below, margin), torch.where(over, margin, above)


def at_least_single(*values: Tensor) -> tuple[Tensor, ...]:
    """Half-precision numbers as single-precision ones; all others as they are."""
    return tuple(one.to(torch.promote_types(one.dtype, torch.float32)) for one in values)
