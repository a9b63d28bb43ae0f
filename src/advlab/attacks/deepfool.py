"""DeepFool: step after step to the nearest boundary of the linearised classifier."""

import torch
from pydantic import NonNegativeFloat, PositiveInt

from ..core.randomness import Rng
from ..losses import is_error
from ._engine.minimum_norm import MinimumNorm, NearestSoFar, at_least_single


class DeepFool(MinimumNorm):
    """Steps onto linearised boundaries (Moosavi-Dezfooli et al. 2016), for every norm.

    Each step goes to the nearest of the hyperplanes on which some rival class would draw level with
    the label if the scores were linear; the sum of the steps is stretched by the overshoot. The
    first adversarial point of a row is its answer.

    Args:
        steps: How many steps at most.
        overshoot: How much longer the whole move is made, to cross the boundary.
        candidates: Rivals considered: those with the highest scores at the clean input.
        refinements: Steps of a last search between the point found and the clean input.

    Example:
        >>> from advlab.attacks import DeepFool
        >>> from advlab.losses import ModelLoss, margin
        >>> loss = ModelLoss(model, y, margin)
        >>> found = DeepFool().minimum(loss, x, "l2", box=(0, 1), rng=rng)
        >>> found.x, found.distance
    """

    steps: PositiveInt = 50
    overshoot: NonNegativeFloat = 0.02
    candidates: PositiveInt = 10

    def minimise(self, nearest: NearestSoFar, rng: Rng) -> None:
        rows = nearest.active_rows()
        if len(rows) == 0:
            return
        rivals = nearest.decision_of(rows).rivals(nearest.x[rows], self.candidates)
        total = torch.zeros_like(nearest.x[rows]).flatten(1)
        point = nearest.x[rows]
        for _ in range(self.steps):
            margin, values, slopes = nearest.linearised(point, rivals, rows)
            still = ~is_error(margin)
            if not bool(still.any()):
                return
            if nearest.leave:
                rows, rivals, total, point, values, slopes = (
                    t[still] for t in (rows, rivals, total, point, values, slopes)
                )
                still = still[still]
            # Planes of half-precision scores are met in single precision.
            planes = at_least_single(values, slopes, point.flatten(1))
            move, _, _ = nearest.threat.nearest_plane(*planes)
            total = total + still[:, None] * move
            stretched = (1 + self.overshoot) * total
            moved = nearest.x[rows] + stretched.reshape(point.shape)
            point = nearest.threat.to_domain(moved.to(nearest.x.dtype))
        nearest.margin(point, rows)
