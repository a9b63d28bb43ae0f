"""What an attack by labels asks: is this point classified wrongly, and how often it may ask."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ...core.randomness import Rng, normal, uniform
from ...losses import is_error
from ...threats.base import per_example
from .minimum_norm import NearestSoFar

AT_ONCE = 4096
"""Points that are asked for in one call of the model."""
TRIES = 20
"""Random points that are tried as starts where no other example can be one."""


class LabelQueries:
    """Right or wrong at points of some rows, within a budget of queries for each row.

    Args:
        nearest: remembers the nearest wrong point of each row; of margins only the sign is used.
        budget: queries per row. The first look at the clean input counts.
        rng: one generator, or one per replicate.
    """

    def __init__(self, nearest: NearestSoFar, budget: int, rng: Rng):
        self.nearest, self.budget, self.rng = nearest, budget, rng
        self.spent = torch.ones(len(nearest.x), dtype=torch.long, device=nearest.x.device)

    def active(self, rows: Int[Tensor, " rows"]) -> Bool[Tensor, " rows"]:
        """Which rows are worth more work, and may still ask."""
        return self.nearest.still_active(rows) & (self.spent[rows] < self.budget)

    def wrong(self, point: Tensor, rows: Int[Tensor, " rows"]) -> Bool[Tensor, " rows"]:
        """Whether each row is classified wrongly at its point, which is noted."""
        self.spent[rows] += 1
        return is_error(self.nearest.margin(point, rows))

    def wrong_around(
        self, points: Float[Tensor, "count rows *shape"], rows: Int[Tensor, " rows"]
    ) -> Bool[Tensor, "count rows"]:
        """Whether each row is classified wrongly at several points, which are not noted."""
        nearest, count = self.nearest, len(points)
        self.spent[rows] += count
        nearest.forwards += count * len(rows)
        # The blocks of a stack cannot be repeated.
        step = max(1, AT_ONCE // max(1, len(rows))) if nearest.leave else 1
        found = []
        for some in points.split(step):
            decision = nearest.decision_of(rows)
            if nearest.leave:
                decision = nearest.decision.rows(rows.repeat(len(some)))
            found.append(is_error(decision.margin(some.flatten(0, 1))).reshape(len(some), -1))
        return torch.cat(found)

    def draw(self, rows: Int[Tensor, " rows"], *shape: int, flat: bool = False) -> Tensor:
        """Standard normal numbers, or uniform ones on [0, 1), in this shape for each row.

        Rows with generators of their own get the same ones whoever has left.
        """
        kind, like = (uniform if flat else normal), self.nearest.x
        if isinstance(self.rng, torch.Generator):
            return kind(like.new_empty(len(rows), *shape), self.rng)
        return kind(like.new_empty(len(like), *shape), self.rng)[rows]

    def wrong_starts(
        self, restart: int = 0
    ) -> tuple[Int[Tensor, " rows"], Float[Tensor, "rows *shape"]]:
        """Rows that are right, each with a point, however far, at which it is wrong.

        The nearest example of another class that the model gets right, which costs no query; else
        random points, of the box or ever farther away. Rows without any are left out.

        Args:
            restart: how often rows were started before: each time another class is taken.
        """
        nearest, x = self.nearest, self.nearest.x
        rows = nearest.active_rows()
        point, found = self._other_examples(rows, restart)
        for k in range(TRIES):
            lost = (~found & self.active(rows)).nonzero()[:, 0]
            if len(lost) == 0:
                break
            tried = self._anywhere(rows[lost], k)
            hit = self.wrong(tried, rows[lost])
            point[lost[hit]], found[lost[hit]] = tried[hit], True
        # Rows of a stack stay together; those without a start stay where they are.
        keep = found & self.active(rows) if nearest.leave else torch.ones_like(found)
        return rows[keep], torch.where(per_example(found, x), point, x[rows])[keep]

    def _other_examples(self, rows: Tensor, restart: int) -> tuple[Tensor, Bool[Tensor, " rows"]]:
        x, y = self.nearest.x, self.nearest.decision.loss.y
        right = ~is_error(self.nearest.clean)
        point, found = x[rows].clone(), torch.zeros_like(rows, dtype=torch.bool)
        for place, row in enumerate(rows.tolist()):
            others = (right & (y != y[row])).nonzero()[:, 0]
            if len(others) == 0:
                continue
            near = others[self.nearest.threat.norm_of(x[others] - x[row]).argsort(stable=True)]
            classes = list(dict.fromkeys(y[near].tolist()))
            wanted = classes[restart % len(classes)]
            same = near[y[near] == wanted]
            point[place], found[place] = x[same[restart // len(classes) % len(same)]], True
        return point, found

    def _anywhere(self, rows: Tensor, k: int) -> Tensor:
        x, threat = self.nearest.x[rows], self.nearest.threat
        noise = self.draw(rows, *x.shape[1:], flat=True)
        if threat.limits is not None:
            return threat.limits[0] + (threat.limits[1] - threat.limits[0]) * noise
        width = max(threat.radius, float(x.abs().amax())) or 1.0
        return x + width * 2 ** (k / 2) * (2 * noise - 1)
