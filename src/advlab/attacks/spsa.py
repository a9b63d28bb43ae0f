"""SPSA: ascent on gradients estimated from losses alone."""

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from ..core.randomness import Rng, uniform
from ..threats import Ball, Threat
from ..threats.base import unit_l2
from ._engine.queries import Query
from .base import Attack, Scout


class SPSA(Attack):
    """Spall 1992, as an attack by Uesato et al. 2018: for models without usable gradients.

    A step looks at pairs x +- probe * v with random signs v; the mean of (difference) * v is, up to
    scale, an unbiased estimate of a linear function's gradient. Estimates are averaged over the
    steps by momentum, steps are steepest in the norm (in l1 by Euclidean length: one noisy largest
    coordinate would be no step), and the last average's own worst point is tried at the end.

    It climbs the margin of a classifier, and rows leave once that is positive; other losses, or all
    with `climb_margin` off, are climbed themselves.
    """

    steps: PositiveInt = 100
    samples: PositiveInt = 32
    """Pairs of queries for one estimate."""
    probe: PositiveFloat = 0.1
    """Length of a probe in each coordinate, as a fraction of what the radius gives to each."""
    step_size: PositiveFloat = 0.1
    momentum: float = Field(default=0.8, ge=0, lt=1)
    climb_margin: bool = True

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        query = Query(scout, rng, self.climb_margin)
        x = scout.x.flatten(1)[query.rows]
        best = point = x
        average, highest = torch.zeros_like(x), query.value(x)
        for _ in range(self.steps):
            if len(query.rows) == 0:
                break
            estimate = self._estimate(query, threat, point)
            average = self.momentum * average + (1 - self.momentum) * estimate
            point = self._step(threat, point, average, x)
            for tried in (point, threat.maximiser(average, x)):
                value = query.value(tried)
                best = torch.where((value > highest)[:, None], tried, best)
                highest = torch.maximum(highest, value)
            kept = query.leave(highest, best)
            if kept is not None:
                x, best, point, average, highest = (
                    t[kept] for t in (x, best, point, average, highest)
                )
        query.keep(best)
        scout.value(threat.project(query.found.reshape(scout.x.shape), scout.x))

    def _estimate(self, query: Query, threat: Threat, point: Tensor) -> Tensor:
        box = threat.box if isinstance(threat, Ball) else None
        each = threat.radius / point.shape[1] ** _share(threat)
        total = torch.zeros_like(point)
        for _ in range(self.samples):
            sign = torch.where(query.draw(uniform, point.shape[1]) < 0.5, -1.0, 1.0).to(point)
            ends = [point + self.probe * each * s for s in (sign, -sign)]
            up, down = (query.value(e if box is None else e.clamp(*box)) for e in ends)
            total = total + (up - down)[:, None] * sign
        return unit_l2(total)

    def _step(self, threat: Threat, point: Tensor, average: Tensor, x: Tensor) -> Tensor:
        l1 = isinstance(threat, Ball) and threat.norm == "l1"
        toward = unit_l2(average) if l1 else threat.steepest(average)
        return threat.project(point + self.step_size * threat.radius * toward, x)


def _share(threat: Threat) -> float:
    """The radius over d to this power is what a move with equal coordinates gives to each."""
    return {"l1": 1.0, "linf": 0.0}.get(threat.norm, 0.5) if isinstance(threat, Ball) else 0.5
