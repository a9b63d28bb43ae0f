"""DeepFool: step after step to the nearest boundary of the linearised classifier."""

import torch
from pydantic import NonNegativeFloat, PositiveInt

from ..core.randomness import Rng
from ._engine.hyperplane import nearest_plane
from ._engine.minimum_norm import Chase, MinimumNorm


class DeepFool(MinimumNorm):
    """Moosavi-Dezfooli et al. 2016, for every norm: the first point found is the answer.

    Each step goes to the nearest of the hyperplanes on which some rival would draw level with the
    label if the scores were linear; the sum of the steps is stretched by the overshoot.
    """

    steps: PositiveInt = 50
    overshoot: NonNegativeFloat = 0.02
    candidates: PositiveInt = 10
    """Rivals considered: those with the highest scores at the clean input."""

    def hunt(self, chase: Chase, rng: Rng) -> None:
        rows = chase.left()
        if len(rows) == 0:
            return
        rivals = chase.at(rows).rivals(chase.x[rows], self.candidates)
        total = torch.zeros_like(chase.x[rows]).flatten(1)
        point = chase.x[rows]
        for _ in range(self.steps):
            margin, values, slopes = chase.linearised(point, rivals, rows)
            still = margin <= 0
            if not bool(still.any()):
                return
            if chase.leaving:
                rows, rivals, total, point, values, slopes = (
                    t[still] for t in (rows, rivals, total, point, values, slopes)
                )
                still = still[still]
            move, _, _ = nearest_plane(chase.norm, values, slopes, point.flatten(1), chase.box)
            total = total + still[:, None] * move
            stretched = (1 + self.overshoot) * total
            point = chase.tidy(chase.x[rows] + stretched.reshape(point.shape))
        chase.margin(point, rows)
