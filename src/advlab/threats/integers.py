"""Features that move in whole steps: counts, ages in years, grades."""

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import model_validator
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng, uniform
from .base import check_finite
from .feature_ball import FeatureBall

TENTHS = 6.0
"""A tenth of this many steps is more than half a step, and so rounds to a whole one."""


class Integers(FeatureBall):
    """center_i + m_i step_i with whole m_i, |m_i| step_i <= radius_i and low_i <= x_i <= high_i.

    A product of finite sets, one per feature, so that everything is exact: projection (each feature
    to its nearest step), maximiser (each at one end), support function. The set is what the center
    can be moved to: centers need not be whole numbers themselves, and in standardised units the
    step of a count is 1 / its standard deviation.

    Args:
        radius: One number, or one per feature; 0 freezes a feature.
        step: What one step is, one number or one per feature.
        low: The least value, one number or one per feature; None for no limit.
        high: The largest value.
        mask: Which features may move, one flag each; all of them if left out.

    Example:
        >>> import torch
        >>> from advlab.threats import Integers
        >>> age_rooms = Integers([5.0, 1.0], low=[18.0, 1.0])      # 5 years, one room
        >>> age_rooms.project(torch.tensor([[40.7, 9.0]]), torch.tensor([[38.0, 3.0]]))
        tensor([[41.,  4.]])
    """

    norm: Literal["linf"] = "linf"
    step: float | tuple[float, ...] = 1.0
    arguments = ("radius", "step", "low", "high", "mask")

    if TYPE_CHECKING:

        def __init__(
            self, radius: Any, step: Any = 1.0, low: Any = None, high: Any = None, mask: Any = None
        ) -> None: ...

    @model_validator(mode="after")
    def _has_steps(self) -> "Integers":
        steps = self.step if isinstance(self.step, tuple) else (self.step,)
        if not steps or min(steps) <= 0:
            raise AdvlabError("steps above 0", min(steps, default=None))
        sizes = {len(one) for one in (self.weights, self.low, self.high, self.step)
                 if isinstance(one, tuple)}  # fmt: skip
        if len(sizes) > 1:
            raise AdvlabError("radius, step, low, high and mask of as many features", sorted(sizes))
        return self

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """Each feature to the nearest of its values: exact."""
        down, up = self._room(center)
        count = ((point - center).flatten(1) / self._step(center)).round()
        return self._moved(center, torch.minimum(torch.maximum(count, down), up))

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """Each feature at the end that its slope points to: exact."""
        down, up = self._room(center)
        slope = grad.flatten(1)
        count = torch.where(slope > 0, up, torch.where(slope < 0, down, 0.0))
        return self._moved(center, count)

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The signs, each as long as its radius, or so that a tenth of it is a whole step."""
        weights = self._weights(grad)
        least = TENTHS * self._step(grad) / max(self.radius, torch.finfo(grad.dtype).tiny)
        length = torch.where(weights > 0, torch.maximum(weights, least), 0.0)
        return (length * grad.flatten(1).sign()).reshape(grad.shape)

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """One uniform draw: every value of every feature is as likely."""
        down, up = self._room(center)
        count = (down + uniform(down, rng) * (up - down + 1)).floor()
        return self._moved(center, torch.minimum(count, up))

    def contains(
        self,
        point: Float[Tensor, "batch *shape"],
        center: Float[Tensor, "batch *shape"],
        slack: float | None = None,
    ) -> Bool[Tensor, " batch"]:
        """Whether each point is one of the set, up to the rounding of its dtype (or `slack`)."""
        nearest = self.project(point, center).flatten(1)
        flat = center.flatten(1)
        if slack is None:
            scale = self.radius + flat.abs().amax(1, keepdim=True)
            edge = 16 * torch.finfo(point.dtype).eps * scale
        else:
            edge = torch.full_like(flat[:, :1], slack)
        return ((point.flatten(1) - nearest).abs() <= edge).all(1)

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """The least and the largest value of every feature."""
        down, up = self._room(center)
        return self._moved(center, down), self._moved(center, up)

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """max of <direction, x> over the set: every feature at its better end."""
        low, high = self.interval(center)
        return torch.where(direction > 0, direction * high, direction * low).flatten(1).sum(1)

    @property
    def within_radius(self) -> bool:
        """It is a part of the ball with these radii."""
        return True

    @property
    def convex(self) -> bool:
        return False

    @property
    def gaps(self) -> bool:
        return True

    def ends(self, center: Tensor) -> tuple[Tensor, Tensor] | None:
        """None: between its ends a feature has no values but whole steps."""
        return None

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        features = center[0].numel() if len(center) else 0
        if isinstance(self.step, tuple) and len(center) and len(self.step) != features:
            raise AdvlabError(f"inputs of {len(self.step)} features, as the set has", features)
        super().check_center(center)

    def unit_moves(self, like: Tensor) -> Float[Tensor, "moves *shape"] | None:
        """One step up and one step down, for each feature that moves."""
        d = like.flatten(1).shape[1]
        free = self._weights(like).expand(1, d)[0] > 0
        steps = (torch.eye(d, dtype=like.dtype, device=like.device) * self._step(like))[free]
        return torch.cat([steps, -steps]).reshape(-1, *like.shape[1:])

    def points(self, center: Float[Tensor, "batch *shape"], most: int) -> Iterator[Tensor] | None:
        """All of them, where there are few: the product of the values of each feature."""
        down, up = self._room(center)
        if len(center) == 0:
            return iter(())
        ranges = list(zip(down.amin(0).tolist(), up.amax(0).tolist(), strict=True))
        if math.prod(int(b - a) + 1 for a, b in ranges) > most:
            return None
        counts = itertools.product(*(range(int(a), int(b) + 1) for a, b in ranges))
        row = down.new_tensor
        return (
            self._moved(center, torch.minimum(torch.maximum(row(count), down), up))
            for count in counts
        )

    def _room(self, center: Tensor) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch d"]]:
        """How many whole steps down (at most 0) and up each feature may go."""
        low, high = self._bounds(center)
        flat, step = center.flatten(1), self._step(center)
        # A step that ends a rounding beyond the radius or the limits is still one.
        edge = 16 * torch.finfo(center.dtype).eps * (1 + (flat.abs() + self.radius) / step)
        down = -((flat - low.flatten(1)) / step + edge).floor()
        up = ((high.flatten(1) - flat) / step + edge).floor()
        frozen = self._weights(center) == 0
        return torch.where(frozen, 0.0, down), torch.where(frozen, 0.0, up)

    def _moved(self, center: Tensor, count: Float[Tensor, "batch d"]) -> Tensor:
        moved = center.flatten(1) + count * self._step(center)
        return moved.reshape(center.shape)

    def _step(self, like: Tensor) -> Float[Tensor, "1 d"]:
        steps = list(self.step) if isinstance(self.step, tuple) else [self.step]
        return torch.tensor([steps], dtype=like.dtype, device=like.device)
