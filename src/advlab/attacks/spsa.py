"""SPSA: ascent on gradients estimated from losses alone."""

from typing import ClassVar

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from ..core.randomness import Rng, uniform
from ..threats import Threat
from ..threats.base import unit_l2
from ._engine.queries import Query, clip
from .base import Attack, BestSoFar


class SPSA(Attack):
    """Ascent for models without usable gradients (Spall 1992; Uesato et al. 2018).

    A step looks at pairs x +- probe * v with random signs v; the mean of (difference) * v is, up to
    scale, an unbiased estimate of a linear function's gradient. Estimates are averaged over the
    steps by momentum, steps are steepest in the norm (in l1 by Euclidean length: one noisy largest
    coordinate would be no step), and the last average's own worst point is tried at the end.

    It climbs the margin of a classifier, and rows leave once that is positive; other losses, or all
    with `climb_margin` off, are climbed themselves.

    Args:
        steps: How many steps.
        samples: Pairs of queries per estimate.
        probe: Length of a probe in each coordinate, as a fraction of what the radius gives to each.
        step_size: Length of a step, as a fraction of the radius.
        momentum: What is left of the average estimate after a step.
        climb_margin: Climb the margin where the loss is about classes.

    Example:
        >>> from advlab.attacks import SPSA
        >>> from advlab.losses import ModelLoss, margin
        >>> found = SPSA(samples=128)(ModelLoss(model, y, margin), x, ball, rng=rng)
    """

    uses_gradient: ClassVar[bool] = False
    steps: PositiveInt = 100
    samples: PositiveInt = 32
    probe: PositiveFloat = 0.1
    step_size: PositiveFloat = 0.1
    momentum: float = Field(default=0.8, ge=0, lt=1)
    climb_margin: bool = True

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        query = Query(best, rng, self.climb_margin)
        x = best.x.flatten(1)[query.rows]
        found = point = x
        average, highest = torch.zeros_like(x), query.value(x)
        for _ in range(self.steps):
            if len(query.rows) == 0:
                break
            estimate = self._estimate(query, threat, point)
            average = self.momentum * average + (1 - self.momentum) * estimate
            point = self._step(threat, point, average, x)
            for tried in (point, threat.maximiser(average, x)):
                value = query.value(tried)
                found = torch.where((value > highest)[:, None], tried, found)
                highest = torch.maximum(highest, value)
            kept = query.drop_broken(highest, found)
            if kept is not None:
                x, found, point, average, highest = (
                    t[kept] for t in (x, found, point, average, highest)
                )
        query.store(found)
        best.value(threat.project(query.found.reshape(best.x.shape), best.x))

    def _estimate(self, query: Query, threat: Threat, point: Tensor) -> Tensor:
        # What a move with equal coordinates, as long as the radius, gives to each of them.
        each = threat.radius / point.shape[1] ** (1 / threat.order)
        total = torch.zeros_like(point)
        for _ in range(self.samples):
            sign = torch.where(query.draw(uniform, point.shape[1]) < 0.5, -1.0, 1.0).to(point)
            ends = [point + self.probe * each * s for s in (sign, -sign)]
            up, down = (query.value(clip(end, threat)) for end in ends)
            total = total + (up - down)[:, None] * sign
        return unit_l2(total)

    def _step(self, threat: Threat, point: Tensor, average: Tensor, x: Tensor) -> Tensor:
        toward = unit_l2(average) if threat.sparse else threat.steepest(average)
        return threat.project(point + self.step_size * threat.radius * toward, x)
