"""Minimum-norm attacks: they look for the nearest input that the model gets wrong."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from pydantic import NonNegativeInt
from torch import Tensor

from ...core.randomness import Rng
from ...threats import Ball, Cap, Norm, Threat
from ...threats.ball import ORDER
from ...threats.base import per_example, unit_l2
from ..base import Attack, Loss, Scout
from .hyperplane import Box
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
    """An attack that shortens adversarial moves. A new one writes `hunt` only.

    Inside a threat set its nearest point is offered, brought back into the set if it lies outside,
    and so is the point that the same direction reaches at the rim, where the loss is larger. Rows
    leave as soon as they are broken inside a Ball. Around a Cap the search is in l2.
    """

    refinements: NonNegativeInt = 5
    """Steps of a last search on the segment between the nearest point and the clean input."""

    def minimum(
        self,
        loss: Loss,
        x: Float[Tensor, "batch *shape"],
        norm: Norm,
        box: Box = None,
        *,
        rng: Rng,
    ) -> Minimal:
        """The nearest input in this norm, and in the box, that the model classifies wrongly."""
        Ball(norm=norm, radius=0.0, box=box).check_center(x)
        chase = Chase(Decision.of(loss, type(self).__name__), x.detach(), norm, box)
        chase.leaving = rows_may_leave(loss, rng)
        self.hunt(chase, rng)
        chase.refine(self.refinements)
        return chase.nearest

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        norm: Norm = threat.norm if isinstance(threat, Ball) else "l2"
        box = threat.box if isinstance(threat, Ball) else None
        decision = Decision.of(scout.loss, type(self).__name__)
        chase = Chase(decision, scout.x, norm, box)
        chase.leaving = rows_may_leave(scout.loss, rng)
        chase.enough = threat.radius if isinstance(threat, Ball) else 0.0
        chase.sphere = isinstance(threat, Cap)
        self.hunt(chase, rng)
        chase.refine(self.refinements)
        scout.start()
        nearest, x = chase.nearest, scout.x
        stretch = threat.radius / chase.norm_of(nearest.x - x).clamp(min=1e-30)
        for point in (nearest.x, x + per_example(stretch, x) * (nearest.x - x)):
            scout.value(threat.project(point, x))
        scout.forwards += chase.forwards
        scout.backwards += chase.backwards

    @abstractmethod
    def hunt(self, chase: "Chase", rng: Rng) -> None:
        """Show adversarial points to `chase.note`; it remembers the nearest of each row."""


class Chase:
    """What a minimum-norm attack knows: the nearest adversarial point of each row, and the work."""

    leaving: bool = True
    """Whether rows may leave the batch."""
    enough: float = 0.0
    """Rows broken within this distance need no more work."""
    sphere: bool = False

    def __init__(self, decision: Decision, x: Tensor, norm: Norm, box: Box):
        self.decision, self.x, self.box = decision, x, box
        self.norm: Norm = norm
        self.forwards = self.backwards = 0
        self._point = x.clone()
        self.clean = decision.margin(x)
        self.distance = torch.where(self.clean > 0, 0.0, math.inf).to(x)
        self.forwards += len(x)

    @property
    def nearest(self) -> Minimal:
        return Minimal(self._point, self.distance)

    def left(self) -> Int[Tensor, " rows"]:
        """The rows that are worth more work."""
        rows = torch.arange(len(self.x), device=self.x.device)
        return rows[self.distance > self.enough] if self.leaving else rows

    def at(self, rows: Int[Tensor, " rows"]) -> Decision:
        return self.decision.rows(rows) if self.leaving else self.decision

    def margin(self, point: Tensor, rows: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """The margins at these points of these rows, noted."""
        found = self.at(rows).margin(point)
        self.forwards += len(point)
        self.note(point, found, rows)
        return found

    def linearised(self, point: Tensor, rivals: Tensor, rows: Tensor):
        """`Decision.linearised`, noted."""
        margin, values, slopes = self.at(rows).linearised(point, rivals)
        self.forwards += len(point)
        self.backwards += values.numel()
        self.note(point, margin, rows)
        return margin, values, slopes

    def note(self, point: Tensor, margin: Tensor, rows: Tensor) -> None:
        distance = self.norm_of(point - self.x[rows])
        nearer = (margin > 0) & (distance < self.distance[rows])
        self._point[rows[nearer]] = point[nearer]
        self.distance[rows[nearer]] = distance[nearer]

    def keep(self, rows: Tensor) -> Bool[Tensor, " rows"]:
        """Which of these rows are still worth work."""
        still = self.distance[rows] > self.enough
        return still if self.leaving else torch.ones_like(still)

    def refine(self, steps: int) -> None:
        """Where the margin, taken for linear between a wrong and a right point, changes its sign.

        The final search of FAB, on the segment from the nearest point to the clean input.
        """
        rows = self.left()
        if self.leaving:
            rows = rows[self.distance[rows].isfinite()]
        right, below, wrong = self.x[rows], self.clean[rows], self._point[rows]
        above = self.margin(wrong, rows)
        for _ in range(steps):
            share = (-below / (above - below).clamp(min=1e-30)).clamp(0.01, 0.99)
            # A little beyond the crossing, so that mostly it is the wrong side that moves.
            point = right + per_example(0.1 + 0.9 * share, right) * (wrong - right)
            margin = self.margin(point, rows)
            over = margin > 0
            right = torch.where(per_example(over, point), right, point)
            wrong = torch.where(per_example(over, point), point, wrong)
            below, above = torch.where(over, below, margin), torch.where(over, margin, above)

    def norm_of(self, move: Tensor) -> Float[Tensor, " rows"]:
        return torch.linalg.vector_norm(move.flatten(1), ORDER[self.norm], dim=1)

    def tidy(self, point: Tensor) -> Tensor:
        """The point in the box or, where the threat is a Cap, on the unit sphere."""
        if self.sphere:
            return unit_l2(point.flatten(1)).reshape(point.shape)
        return point if self.box is None else point.clamp(*self.box)
