"""HopSkipJump: along the decision boundary, by labels alone."""

import math
from typing import ClassVar

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from ..core.randomness import Rng
from ..threats import Threat
from ..threats.base import per_example, unit_l2
from ._engine.label_queries import LabelQueries
from ._engine.minimum_norm import MinimumNorm, NearestSoFar

HALVINGS = 20


class HopSkipJump(MinimumNorm):
    """Steps along a boundary whose normal is estimated from labels (Chen et al. 2020).

    From a point on the boundary, where the label changes, probes at random directions u_b around it
    are wrong (phi = 1) or right (phi = -1). The normal of the boundary is estimated by

        sum over b of (phi_b - mean of phi) u_b.

    A jump along it (its signs, where the set is a product of intervals) of distance / sqrt(t),
    halved until it ends at a wrong point, is followed by a bisection back to the boundary, towards
    the clean input. Step t takes `probes` sqrt(t) probes, as published. Probes are a d-th of the
    distance away at first; where they all agree, as on the steps of a quantised model, twice that.

    It starts from the nearest example of another class in the batch, or from random points. Only
    labels are used, so that it works on `advlab.models.LabelsOnly`.

    Args:
        queries: How many labels it may ask for per row, in all restarts together.
        restarts: How many searches, each from an example of another class than the one before.
        probes: Probes of the first step.
        refinements: Steps of a last search between the nearest point and the clean input.

    Example:
        >>> from advlab.attacks import HopSkipJump
        >>> from advlab.losses import ModelLoss, margin
        >>> from advlab.models import LabelsOnly
        >>> from advlab.threats import Ball
        >>> loss = ModelLoss(LabelsOnly(predict, classes=10), y, margin)
        >>> found = HopSkipJump(queries=2000)(loss, x, Ball("l2", 0.5, box=(0, 1)), rng=0)
        >>> broken = found.loss >= 0
    """

    uses_gradient: ClassVar[bool] = False
    queries: PositiveInt = 10_000
    restarts: PositiveInt = 1
    probes: PositiveInt = 100
    refinements: NonNegativeInt = 0

    def minimise(self, nearest: NearestSoFar, rng: Rng) -> None:
        asked = LabelQueries(nearest, self.queries, rng)
        for restart in range(self.restarts):
            asked.budget = self.queries * (restart + 1) // self.restarts
            self._search_from(asked, restart)

    def _search_from(self, asked: LabelQueries, restart: int) -> None:
        nearest = asked.nearest
        rows, point = asked.wrong_starts(restart)
        width, t = torch.ones_like(nearest.clean[rows]), 1
        while len(rows):
            point = self._to_boundary(asked, point, rows)
            keep = asked.active(rows)
            rows, point, width = rows[keep], point[keep], width[keep]
            if len(rows) == 0 or not bool((asked.spent[rows] < asked.budget).any()):
                return
            normal, width = self._normal(asked, point, rows, width, t)
            point = self._jump(asked, point, normal, rows, t)
            t += 1

    def _to_boundary(self, asked: LabelQueries, point: Tensor, rows: Tensor) -> Tensor:
        """A wrong point beside the boundary, by bisection from a wrong one to the clean input."""
        x, threat = asked.nearest.x[rows], asked.nearest.threat
        low, high = torch.zeros_like(x.flatten(1)[:, 0]), torch.ones_like(x.flatten(1)[:, 0])
        for _ in range(math.ceil(1.5 * math.log2(max(2, x[0].numel()))) + 3):
            middle = (low + high) / 2
            wrong = asked.wrong(shrunk(threat, point, x, middle), rows)
            low, high = torch.where(wrong, low, middle), torch.where(wrong, middle, high)
        return shrunk(threat, point, x, high)

    def _normal(
        self, asked: LabelQueries, point: Tensor, rows: Tensor, width: Tensor, t: int
    ) -> tuple[Tensor, Tensor]:
        """The estimated normal of the boundary, and how much wider the next probes should be."""
        nearest, size = asked.nearest, point[0].numel()
        left = int((asked.budget - asked.spent[rows]).max())
        count = max(1, min(int(self.probes * math.sqrt(t)), left))
        away = nearest.threat.norm_of(point - nearest.x[rows]) / size * width
        probes = asked.draw(rows, count, size).transpose(0, 1)
        probes = unit_l2(probes.flatten(0, 1)).reshape(probes.shape)
        around = point.flatten(1) + away[:, None] * probes
        around = nearest.threat.to_domain(around.reshape(count, *point.shape))
        moved = around.flatten(2) - point.flatten(1)
        phi = 2.0 * asked.wrong_around(around, rows).to(point) - 1
        mean = phi.mean(0)
        agree = mean.abs() == 1
        weights = torch.where(agree, phi, phi - mean)
        normal = unit_l2((weights[..., None] * moved).sum(0))
        return normal.reshape(point.shape), torch.where(agree, 2 * width, width)

    def _jump(
        self, asked: LabelQueries, point: Tensor, normal: Tensor, rows: Tensor, t: int
    ) -> Tensor:
        """The farthest of halved jumps along the normal that ends at a wrong point, if any does."""
        nearest, threat = asked.nearest, asked.nearest.threat
        direction = normal if threat.sparse else threat.steepest(normal)
        length = threat.norm_of(point - nearest.x[rows]) / math.sqrt(t)
        landed, open_ = point.clone(), torch.arange(len(rows), device=rows.device)
        for _ in range(HALVINGS):
            tried = threat.to_domain(point + per_example(length, point) * direction)
            if nearest.leave:
                wrong = asked.wrong(tried[open_], rows[open_])
                landed[open_[wrong]] = tried[open_[wrong]]
                open_ = open_[~wrong]
            else:
                wrong = asked.wrong(tried, rows)
                first = wrong[open_]
                landed[open_[first]] = tried[open_[first]]
                open_ = open_[~first]
            if len(open_) == 0:
                break
            length = length / 2
        return landed


def shrunk(threat: Threat, point: Tensor, x: Tensor, share: Tensor) -> Tensor:
    """The point brought to this share of its distance from x: of every coordinate's limits in a
    product of intervals, along the segment elsewhere."""
    move = point - x
    if threat.ends(x) is None:
        return x + per_example(share, x) * move
    reach = per_example(share * threat.norm_of(move), x)
    return x + move.clamp(-reach, reach)
