"""EAD: the elastic-net attack, for moves that are short in l1."""

import torch
from jaxtyping import Bool, Float
from pydantic import PositiveFloat
from torch import Tensor

from ..threats.base import per_example
from ._engine.minimum_norm import NearestSoFar
from ._engine.penalised import Penalised


class EAD(Penalised):
    """min ||move||_1 + ridge ||move||^2 + c max(0, confidence - margin) (Chen et al. 2018).

    By FISTA: the l1 term is dealt with by its proximal step, a soft threshold around the clean
    input followed by the clip to the box, so that most coordinates do not move at all.

    Args:
        ridge: Weight of the squared l2 norm beside the l1 norm (in the paper 1 / beta).

    The other settings (rounds, steps, step_size, confidence, first_weight, refinements) are those
    of `CarliniWagner`.

    Example:
        >>> from advlab.attacks import EAD
        >>> from advlab.losses import ModelLoss, margin
        >>> found = EAD().minimum(ModelLoss(model, y, margin), x, "l1", (0, 1), rng=rng)
    """

    ridge: PositiveFloat = 0.1

    def descend(
        self, nearest: NearestSoFar, rows: Tensor, weight: Float[Tensor, " rows"]
    ) -> Bool[Tensor, " rows"]:
        x, unit = nearest.x[rows], self.boundary_distance(nearest, rows, float("inf"))
        scale = per_example(unit, x)
        point = ahead = x
        won = torch.zeros_like(rows, dtype=torch.bool)
        for step in range(self.steps):
            _, slope, sure = self.hinge(nearest, rows, ahead)
            won = won | sure
            rate = self.step_size * (1 - step / self.steps) ** 0.5
            grad = 2 * self.ridge * (ahead - x) / scale + per_example(weight, x) * slope * scale
            move = (ahead - x) / scale - rate * grad
            short = move.sign() * (move.abs() - rate).clamp(min=0.0)
            last, point = point, nearest.threat.to_domain(x + scale * short)
            ahead = nearest.threat.to_domain(point + step / (step + 3) * (point - last))
        return won
