"""Balls in l1, l2 and linf, alone or cut by a box."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from pydantic import model_validator
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng
from .base import Threat, check_finite, distances, per_example, unit_l2
from .norms import ORDER, Norm
from .sampling import uniform_in_ball
from .solve import fill_l1, shrink_to_l1, stretch_to_l2


class Ball(Threat):
    """Every point within `radius` of the center in the norm and, where one is given, in the box.

    Args:
        norm: "l1", "l2" or "linf".
        radius: At least zero; at zero the set is its center.
        box: The least and the largest value that any coordinate may have. There is no default box:
            data in R^d is never clamped.

    Example:
        >>> from advlab.threats import Ball
        >>> ball = Ball("linf", 8 / 255, box=(0, 1))
        >>> attacked = ball.project(x + noise, x)
        >>> highest = ball.support(weight.expand_as(x), x)   # max of <weight, .>, one value per row
    """

    norm: Norm
    box: tuple[float, float] | None = None
    arguments = ("norm", "radius", "box")

    if TYPE_CHECKING:

        def __init__(
            self, norm: Norm, radius: float, box: tuple[float, float] | None = None
        ) -> None: ...

    @model_validator(mode="after")
    def _box_is_ordered(self) -> "Ball":
        if self.box is not None and not self.box[0] < self.box[1]:
            raise AdvlabError("box: low must be below high", self.box)
        return self

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The point of ball and box together nearest to `point`: exact, not clip after project."""
        if self.radius == 0:
            return center.clone()
        if self.norm == "linf":
            low, high = self._bounds(center)
            return torch.minimum(torch.maximum(point, low), high)
        move = (point - center).flatten(1)
        if self.norm == "l2" and self.box is None:
            length = move.norm(dim=1, keepdim=True).clamp(min=torch.finfo(point.dtype).tiny)
            move *= (self.radius / length).clamp(max=1.0)
            return center + move.reshape(center.shape)
        inside = self.contains(point, center, slack=0.0)
        if self.norm == "l2":
            nearest = move.sign() * stretch_to_l2(
                move.abs(), self._room(move, center), self.radius, most=1.0
            )
        else:
            room = self._room(move, center)
            nearest = move.sign() * shrink_to_l1(move.abs(), room, self.radius)
        moved = self._clamp(center + nearest.reshape(center.shape))
        return torch.where(per_example(inside, point), point, moved)

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The point of ball and box where the linear function with this gradient is largest."""
        if self.box is None or self.radius == 0:
            return torch.add(center, self.steepest(grad), alpha=self.radius)
        if self.norm == "linf":
            low, high = self._bounds(center)
            moved = torch.where(grad > 0, high, low)
            return torch.where(grad == 0, center, moved)
        gain = grad.flatten(1)
        room = self._room(gain, center)
        fill = stretch_to_l2 if self.norm == "l2" else fill_l1
        move = gain.sign() * fill(gain.abs(), room, self.radius)
        return self._clamp(center + move.reshape(center.shape))

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The direction of unit norm that raises a function with this gradient fastest."""
        if self.norm == "linf":
            return grad.sign()
        flat = grad.flatten(1)
        if self.norm == "l2":
            return unit_l2(flat).reshape(grad.shape)
        largest = flat.abs().argmax(1, keepdim=True)
        return (
            torch.zeros_like(flat)
            .scatter(1, largest, flat.gather(1, largest).sign())
            .reshape(grad.shape)
        )

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """One uniform draw from ball and box around each center.

        Exact without a box and for linf. Where a box cuts an l1 or l2 ball, rejection is exact, and
        rows it gives up on (many dimensions) are uniform up to O(1/sqrt(d)).
        """
        if self.radius == 0:
            return center.clone()
        low, high = self._bounds(center)
        move = uniform_in_ball(
            self.norm, self.radius, (low - center).flatten(1), (high - center).flatten(1), rng
        )
        return self._clamp(center + move.reshape(center.shape))

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """max of <direction, x> over ball and box: exact for every norm."""
        if self.box is None:
            return self._over_ball(direction, center)
        if self.norm == "linf":
            return self._over_interval(direction, center)
        return _inner(direction, self.maximiser(direction, center))

    def support_bound(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "rows *shape"]
    ) -> Float[Tensor, " batch"]:
        """The support function, or where a box cuts an l1 or l2 ball, whose exact value takes a
        sort, the smaller of the ball's and that of the interval around ball and box."""
        if self.box is None:
            return self._over_ball(direction, center)
        over_interval = self._over_interval(direction, center)
        if self.norm == "linf":
            return over_interval
        return torch.minimum(self._over_ball(direction, center), over_interval)

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """The least and the largest value of every coordinate over ball and box."""
        return self._bounds(center)

    def _bounds(self, center: Tensor) -> tuple[Tensor, Tensor]:
        """The interval, for what a subclass inherits although it is another set."""
        low, high = center - self.radius, center + self.radius
        if self.box is None:
            return low, high
        # A center a rounding outside the box must still be inside its own set.
        low = torch.minimum(low.clamp(min=self.box[0]), center)
        return low, torch.maximum(high.clamp(max=self.box[1]), center)

    @property
    def order(self) -> float:
        """The p of the norm."""
        return ORDER[self.norm]

    @property
    def within_radius(self) -> bool:
        return True

    @property
    def ball_norm(self) -> Norm | None:
        return self.norm if self.box is None else None

    def box_and_ball(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[tuple[Tensor, Tensor] | None, float | None] | None:
        """For linf and l2; l1 balls are neither."""
        if self.norm == "l1":
            return None
        if self.norm == "linf":
            return self._bounds(center), None
        return None if self.box is None else self._bounds(center), self.radius

    def meeting_radius(
        self, x: Float[Tensor, "n *shape"], other: Float[Tensor, "m *shape"]
    ) -> Float[Tensor, "n m"]:
        """Half the distance: the point halfway is in every box that holds both centers."""
        return distances(x.flatten(1), other.flatten(1), self.order) / 2

    def contains(
        self,
        point: Float[Tensor, "batch *shape"],
        center: Float[Tensor, "batch *shape"],
        slack: float | None = None,
    ) -> Bool[Tensor, " batch"]:
        """Whether each point is in ball and box, up to the rounding of its dtype (or `slack`)."""
        if slack is None:
            scale = self.radius + self.norm_of(center)
            slack_rows = 16 * torch.finfo(point.dtype).eps * scale
        else:
            slack_rows = torch.full_like(center.flatten(1)[:, 0], slack)
        inside = self.norm_of(point - center) <= self.radius + slack_rows
        if self.box is None:
            return inside
        flat, edge = point.flatten(1), slack_rows[:, None]
        return inside & ((flat >= self.box[0] - edge) & (flat <= self.box[1] + edge)).all(1)

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        if self.box is None or center.numel() == 0:
            return
        low, high = float(center.min()), float(center.max())
        edge = 1e-6 * (self.box[1] - self.box[0])
        if low < self.box[0] - edge or high > self.box[1] + edge:
            raise AdvlabError(
                f"inputs must lie in the declared box {self.box}",
                f"values from {low:.4g} to {high:.4g}",
                "declare the box of your data, or put normalisation inside the model",
            )

    def _over_ball(self, direction: Tensor, center: Tensor) -> Tensor:
        return _inner(direction, center) + self.radius * self.dual_norm(direction)

    def _over_interval(self, direction: Tensor, center: Tensor) -> Tensor:
        low, high = self._bounds(center)
        return _inner(direction, torch.where(direction > 0, high, low))

    def _room(self, move: Float[Tensor, "batch d"], center: Tensor) -> Float[Tensor, "batch d"]:
        """How far each coordinate may go in the direction of `move` before it meets the box."""
        if self.box is None:
            return torch.full_like(move, float("inf"))
        flat = center.flatten(1)
        return torch.where(move > 0, self.box[1] - flat, flat - self.box[0]).clamp(min=0.0)

    def _clamp(self, point: Tensor) -> Tensor:
        return point if self.box is None else point.clamp(*self.box)

    @property
    def convex(self) -> bool:
        """Balls and boxes are."""
        return True

    @property
    def isotropic(self) -> bool:
        """All coordinates are alike."""
        return True

    @property
    def limits(self) -> tuple[float, float] | None:
        """The box."""
        return self.box

    def ends(self, center: Tensor) -> tuple[Tensor, Tensor] | None:
        """The ends of each coordinate in linf; balls of other norms are no products."""
        if self.norm != "linf":
            return None
        far = torch.full_like(center, float("inf"))
        return self.project(-far, center), self.project(far, center)

    def uniform_move(self, like: Float[Tensor, "batch *shape"], *, rng: Rng) -> Tensor:
        """One uniform draw per row from the unit ball of the norm, without the box."""
        ones = torch.ones_like(like).flatten(1)
        return uniform_in_ball(self.norm, 1.0, -ones, ones, rng).reshape(like.shape)


def _inner(a: Tensor, b: Tensor) -> Float[Tensor, " batch"]:
    return (a * b).flatten(1).sum(1)
