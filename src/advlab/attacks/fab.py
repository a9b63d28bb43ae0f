"""FAB: the fast adaptive boundary attack."""

import torch
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt
from torch import Tensor

from ..core.randomness import Rng
from ..losses import is_error
from ..threats.base import per_example
from ._engine.minimum_norm import MinimumNorm, NearestSoFar, at_least_single


class FAB(MinimumNorm):
    """Follow the boundary, drawn towards the clean input (Croce & Hein 2020).

    With the scores linearised at the current point, the nearest of the planes on which a rival
    draws level with the label is found in the norm and the box, exactly. The next point lies a
    little beyond that plane, between the moves onto it from here and, with weight alpha, from the
    clean input. A point that is adversarial is noted and then pulled back towards the clean input.

    Without `targets` every rival's gradient is taken at every step. With `targets` the rivals are
    gone after one at a time, the likeliest first: one gradient per step, of two scores.

    Args:
        steps: How many steps per start and target.
        restarts: How many starts: the clean input, then random points around it.
        targets: How many rivals to go after one at a time; all of them at once by default.
        alpha: The largest pull towards the clean input.
        overshoot: How far beyond the plane a step goes, as a multiple of the move onto it.
        back: What is left of an adversarial move after the backward step.
        refinements: Steps of a last search between the nearest point and the clean input.

    Example:
        >>> from advlab.attacks import FAB
        >>> from advlab.losses import ModelLoss, margin
        >>> from advlab.threats import Ball
        >>> loss = ModelLoss(model, y, margin)
        >>> distance = FAB(targets=9).minimum(loss, x, "linf", box=(0, 1), rng=rng).distance
        >>> broken = FAB()(loss, x, Ball(norm="linf", radius=0.1), rng=rng).loss >= 0
    """

    steps: PositiveInt = 100
    restarts: PositiveInt = 1
    targets: PositiveInt | None = None
    alpha: float = Field(default=0.1, gt=0, le=1)
    overshoot: float = Field(default=1.05, ge=1)
    back: float = Field(default=0.9, gt=0, lt=1)

    def minimise(self, nearest: NearestSoFar, rng: Rng) -> None:
        for restart in range(self.restarts):
            starts = nearest.x if restart == 0 else self._random_start(nearest, rng)
            rivals = nearest.decision.rivals(nearest.x, self.targets)
            nearest.forwards += len(nearest.x)
            for group in rivals.split(1, dim=1) if self.targets else [rivals]:
                self._follow_boundary(nearest, starts, group)

    def _random_start(self, nearest: NearestSoFar, rng: Rng) -> Tensor:
        """Uniform in a ball of half the distance that is to be beaten."""
        beaten = nearest.distance.clamp(max=nearest.enough) if nearest.enough else nearest.distance
        unit = nearest.threat.uniform_move(nearest.x, rng=rng)
        # Where nothing is known of the distance the restart cannot be scaled, and starts at x.
        half = torch.where(beaten.isfinite(), beaten / 2, 0.0)
        return nearest.threat.to_domain(nearest.x + per_example(half, unit) * unit)

    def _follow_boundary(
        self, nearest: NearestSoFar, starts: Tensor, rivals: Int[Tensor, "batch rivals"]
    ) -> None:
        rows = nearest.active_rows()
        x, point, rivals = nearest.x[rows], starts[rows], rivals[rows]
        for _ in range(self.steps):
            if len(rows) == 0:
                return
            margin, values, slopes = nearest.linearised(point, rivals, rows)
            keep = nearest.still_active(rows)
            if not bool(keep.all()):
                rows, x, point, rivals, margin, values, slopes = (
                    t[keep] for t in (rows, x, point, rivals, margin, values, slopes)
                )
            point = self._step(nearest, x, point, margin, values, slopes)
        nearest.margin(point, rows)

    def _step(
        self,
        nearest: NearestSoFar,
        x: Tensor,
        point: Tensor,
        margin: Float[Tensor, " batch"],
        values: Float[Tensor, "batch rivals"],
        slopes: Float[Tensor, "batch rivals d"],
    ) -> Tensor:
        """The next point of each row, from its margin and its linearised scores."""
        # Planes of half-precision scores are met in single precision.
        clean, here, values, slopes = at_least_single(
            x.flatten(1), point.flatten(1), values, slopes
        )
        # The backward step; the planes stay those of the point it leaves, just over the boundary.
        back = torch.where(is_error(margin)[:, None], clean + self.back * (here - clean), here)
        values = values + (slopes * (back - here)[:, None]).sum(2)
        move, slope, value = nearest.threat.nearest_plane(values, slopes, back)
        rise = -(value + (slope * (clean - back)).sum(1))
        from_clean, _ = nearest.threat.onto_plane(slope, rise, clean)
        length = nearest.threat.norm_of(move)
        whole = (length + nearest.threat.norm_of(from_clean)).clamp(min=1e-30)
        alpha = (length / whole).clamp(max=self.alpha)[:, None]
        moved = (1 - alpha) * (back + self.overshoot * move) + alpha * (
            clean + self.overshoot * from_clean
        )
        return nearest.threat.to_domain(moved.reshape(x.shape).to(x.dtype))
