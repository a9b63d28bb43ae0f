"""Minimum-norm attacks by a penalty: shared parts of Carlini-Wagner and EAD."""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Float
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from ...core.randomness import Rng
from ...threats.base import per_example
from ..base import input_gradient
from .minimum_norm import MinimumNorm, NearestSoFar


class Penalised(MinimumNorm):
    """min over moves of size(move) + c max(0, confidence - margin), with a search over c.

    Moves are measured in units of the distance to the linearised boundary, margins in units of the
    clean margin: with linear scores c then has the same value for every row, model and scale of
    inputs. That leaves the problem as it is and makes one step size and one first c fit all.
    """

    rounds: PositiveInt = 6
    """Values of c that are tried: ten times larger while nothing is found, then halfway."""
    steps: PositiveInt = 200
    step_size: PositiveFloat = 0.05
    confidence: NonNegativeFloat = 0.0
    """The margin asked for, in units of the clean one."""
    first_weight: PositiveFloat = 4.0

    def minimise(self, nearest: NearestSoFar, rng: Rng) -> None:
        weight = torch.full_like(nearest.clean, self.first_weight)
        low, high = torch.zeros_like(weight), torch.full_like(weight, float("inf"))
        for _ in range(self.rounds):
            rows = nearest.active_rows()
            if len(rows) == 0:
                return
            won = torch.zeros_like(weight, dtype=torch.bool)
            won[rows] = self.descend(nearest, rows, weight[rows])
            high = torch.where(won, torch.minimum(high, weight), high)
            low = torch.where(won, low, torch.maximum(low, weight))
            weight = torch.where(high.isfinite(), (low + high) / 2, 10 * weight)

    @abstractmethod
    def descend(
        self, nearest: NearestSoFar, rows: Tensor, weight: Float[Tensor, " rows"]
    ) -> Bool[Tensor, " rows"]:
        """Minimise for one c per row, noting every point; whether an adversarial one was seen."""

    def boundary_distance(
        self, nearest: NearestSoFar, rows: Tensor, dual: float
    ) -> Float[Tensor, " rows"]:
        """The distance to the linearised boundary: clean margin over dual norm of its slope."""
        x = nearest.x[rows]
        rivals = nearest.decision_of(rows).rivals(x, 1)
        margin, _, slopes = nearest.linearised(x, rivals, rows)
        length = torch.linalg.vector_norm(slopes[:, 0], dual, dim=1)
        flat = (length == 0) | (margin == 0)
        return torch.where(flat, 1.0, margin.abs() / torch.where(flat, 1.0, length))

    def hinge(
        self, nearest: NearestSoFar, rows: Tensor, point: Tensor
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, "rows *shape"], Bool[Tensor, " rows"]]:
        """max(0, confidence - margin) by the clean margin, its slope, and where it is zero."""
        scale = nearest.clean[rows].abs()
        scale = torch.where(scale > 0, scale, 1.0)
        with torch.enable_grad():
            leaf = point.detach().requires_grad_()
            margin = nearest.decision_of(rows).differences(leaf).amax(1)
            slope = input_gradient(margin, leaf)
        margin = margin.detach()
        nearest.forwards += len(point)
        nearest.backwards += len(point)
        sure = ~(margin / scale <= self.confidence)  # as is a margin that is not a number
        nearest.note(point, torch.where(sure, margin, -1.0), rows)
        value = (self.confidence - margin / scale).clamp(min=0.0)
        return value, -slope * per_example(~sure / scale, slope), sure
