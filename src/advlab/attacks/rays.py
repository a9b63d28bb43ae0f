"""RayS: the direction of signs in which the boundary is nearest, by labels alone."""

from typing import ClassVar

import torch
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from ..core.randomness import Rng
from ..threats.base import per_example
from ._engine.label_queries import LabelQueries
from ._engine.minimum_norm import MinimumNorm, NearestSoFar

BISECTIONS = 10


class RayS(MinimumNorm):
    """Search over rays x + r s with signs s for the smallest r that is wrong (Chen & Gu 2020).

    In linf the worst points are often corners of the ball, so only signs are searched. Blocks of
    signs are flipped, all of them at first, then halves, quarters and so on down to one coordinate;
    a flip is kept if the ray is wrong nearer to x. That takes one query at the best distance so far
    and, if the answer there is wrong, a bisection. After single coordinates the blocks begin anew
    over a random order of coordinates.

    It starts from the signs of the move to the nearest example of another class in the batch. Other
    norms are searched along the same directions, which suits linf alone. Only labels are used, so
    that it works on `advlab.models.LabelsOnly`.

    Args:
        queries: How many labels it may ask for per row, in all restarts together.
        restarts: How many searches, each from an example of another class than the one before.
        refinements: Steps of a last search between the nearest point and the clean input.

    Example:
        >>> from advlab.attacks import RayS
        >>> from advlab.losses import ModelLoss, margin
        >>> from advlab.models import LabelsOnly
        >>> from advlab.threats import Ball
        >>> loss = ModelLoss(LabelsOnly(predict, classes=10), y, margin)
        >>> found = RayS(queries=1000)(loss, x, Ball("linf", 0.1, box=(0, 1)), rng=0)
        >>> broken = found.loss >= 0
    """

    uses_gradient: ClassVar[bool] = False
    queries: PositiveInt = 10_000
    restarts: PositiveInt = 1
    refinements: NonNegativeInt = 0

    def minimise(self, nearest: NearestSoFar, rng: Rng) -> None:
        asked = LabelQueries(nearest, self.queries, rng)
        for restart in range(self.restarts):
            asked.budget = self.queries * (restart + 1) // self.restarts
            self._search_from(asked, restart)

    def _search_from(self, asked: LabelQueries, restart: int) -> None:
        nearest = asked.nearest
        rows, start = asked.wrong_starts(restart)
        if len(rows) == 0:
            return
        x, size = nearest.x[rows], nearest.x[0].numel()
        signs = torch.where((start - x).flatten(1) >= 0, 1.0, -1.0).to(x)
        far = nearest.threat.norm_of(start - x) * 2
        best = torch.full_like(far, float("inf"))
        order = torch.arange(size, device=x.device).expand(len(rows), size)
        blocks, place = 1, 0
        best = self._nearer(asked, signs, torch.minimum(best, far), best, rows)
        while len(rows):
            width = -(-size // blocks)
            tried = signs.clone()
            block = order[:, place * width : (place + 1) * width]
            tried.scatter_(1, block, -tried.gather(1, block))
            found = self._nearer(asked, tried, torch.minimum(best, far), best, rows)
            signs = torch.where((found < best)[:, None], tried, signs)
            best, place = found, place + 1
            if place * width >= size:
                blocks, place = (2 * blocks, 0) if width > 1 else (1, 0)
                if blocks == 1:
                    order = asked.draw(rows, size, flat=True).argsort(1)
            keep = asked.active(rows)
            if not nearest.leave and not bool((asked.spent[rows] < asked.budget).any()):
                return
            rows, signs, far, best, order = (t[keep] for t in (rows, signs, far, best, order))

    def _nearer(
        self,
        asked: LabelQueries,
        signs: Float[Tensor, "rows d"],
        distance: Float[Tensor, " rows"],
        best: Float[Tensor, " rows"],
        rows: Tensor,
    ) -> Float[Tensor, " rows"]:
        """The distance of the boundary along the rays where it is below this one, else the best."""
        if not asked.nearest.leave:
            return self._bisected(asked, signs, distance, best, rows)
        place = self._wrong_at(asked, signs, distance, rows).nonzero()[:, 0]
        found = best.clone()
        if len(place):
            there = self._bisected(
                asked, signs[place], distance[place], best[place], rows[place], known=True
            )
            found[place] = there
        return found

    def _bisected(
        self,
        asked: LabelQueries,
        signs: Tensor,
        distance: Tensor,
        best: Tensor,
        rows: Tensor,
        known: bool = False,
    ) -> Tensor:
        """The same by bisection, of rays known to be wrong at the distance, or asked first."""
        hit = torch.ones_like(rows, dtype=torch.bool)
        if not known:
            hit = self._wrong_at(asked, signs, distance, rows)
        low, high = torch.zeros_like(distance), distance
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            wrong = self._wrong_at(asked, signs, middle, rows)
            low, high = torch.where(wrong, low, middle), torch.where(wrong, middle, high)
        return torch.where(hit & (high < best), high, best)

    def _wrong_at(
        self, asked: LabelQueries, signs: Tensor, distance: Tensor, rows: Tensor
    ) -> Tensor:
        x, threat = asked.nearest.x[rows], asked.nearest.threat
        ray = (signs / threat.norm_of(signs)[:, None]).reshape(x.shape)
        return asked.wrong(threat.to_domain(x + per_example(distance, x) * ray), rows)
