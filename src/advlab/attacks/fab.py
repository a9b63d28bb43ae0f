"""FAB: the fast adaptive boundary attack."""

import torch
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt
from torch import Tensor

from ..core.randomness import Rng
from ..threats import Ball
from ..threats.base import per_example
from ._engine.hyperplane import nearest_plane, onto_plane
from ._engine.minimum_norm import Chase, MinimumNorm


class FAB(MinimumNorm):
    """Croce and Hein 2020: walk along the boundary, drawn towards the clean input.

    With the scores linearised at the current point, the nearest of the planes on which a rival
    draws level with the label is found in the norm and the box, exactly. The next point lies a
    little beyond that plane, between the moves onto it from here and, with weight alpha, from the
    clean input. A point that is adversarial is noted and then pulled back towards the clean input.

    Without `targets` every rival's gradient is taken at every step. With `targets` the rivals are
    gone after one at a time, the likeliest first: one gradient a step, of two scores.
    """

    steps: PositiveInt = 100
    restarts: PositiveInt = 1
    targets: PositiveInt | None = None
    alpha: float = Field(default=0.1, gt=0, le=1)
    """The largest pull towards the clean input."""
    overshoot: float = Field(default=1.05, ge=1)
    back: float = Field(default=0.9, gt=0, lt=1)
    """What is left of an adversarial move after the backward step."""

    def hunt(self, chase: Chase, rng: Rng) -> None:
        for restart in range(self.restarts):
            starts = chase.x if restart == 0 else self._random_start(chase, rng)
            rivals = chase.decision.rivals(chase.x, self.targets)
            chase.forwards += len(chase.x)
            for group in rivals.split(1, dim=1) if self.targets else [rivals]:
                self._walk(chase, starts, group)

    def _random_start(self, chase: Chase, rng: Rng) -> Tensor:
        """Uniform in a ball of half the distance that is to be beaten."""
        beaten = chase.distance.clamp(max=chase.enough) if chase.enough else chase.distance
        unit = Ball(norm=chase.norm, radius=1.0).sample(torch.zeros_like(chase.x), rng=rng)
        # Where nothing is known of the distance the restart cannot be scaled, and starts at x.
        half = torch.where(beaten.isfinite(), beaten / 2, 0.0)
        return chase.tidy(chase.x + per_example(half, unit) * unit)

    def _walk(self, chase: Chase, starts: Tensor, rivals: Int[Tensor, "batch rivals"]) -> None:
        rows = chase.left()
        x, point, rivals = chase.x[rows], starts[rows], rivals[rows]
        for _ in range(self.steps):
            if len(rows) == 0:
                return
            margin, values, slopes = chase.linearised(point, rivals, rows)
            keep = chase.keep(rows)
            if not bool(keep.all()):
                rows, x, point, rivals, margin, values, slopes = (
                    t[keep] for t in (rows, x, point, rivals, margin, values, slopes)
                )
            point = self._step(chase, x, point, margin, values, slopes)
        chase.margin(point, rows)

    def _step(
        self,
        chase: Chase,
        x: Tensor,
        point: Tensor,
        margin: Float[Tensor, " batch"],
        values: Float[Tensor, "batch rivals"],
        slopes: Float[Tensor, "batch rivals d"],
    ) -> Tensor:
        clean, here = x.flatten(1), point.flatten(1)
        # The backward step; the planes stay those of the point it leaves, just over the boundary.
        back = torch.where((margin > 0)[:, None], clean + self.back * (here - clean), here)
        values = values + (slopes * (back - here)[:, None]).sum(2)
        near, slope, value = nearest_plane(chase.norm, values, slopes, back, chase.box)
        rise = -(value + (slope * (clean - back)).sum(1))
        home, _ = onto_plane(chase.norm, slope, rise, clean, chase.box)
        length = chase.norm_of(near)
        whole = (length + chase.norm_of(home)).clamp(min=1e-30)
        alpha = (length / whole).clamp(max=self.alpha)[:, None]
        moved = (1 - alpha) * (back + self.overshoot * near) + alpha * (
            clean + self.overshoot * home
        )
        return chase.tidy(moved.reshape(x.shape))
