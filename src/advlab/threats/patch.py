"""Patches: a window of an image, wherever the adversary puts it."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from pydantic import NonNegativeFloat, PositiveInt, model_validator
from torch import Tensor
from torch.nn.functional import avg_pool2d

from ..core.errors import AdvlabError
from ..core.randomness import Rng, uniform
from .ball import Ball
from .base import Threat, check_finite


class Patch(Threat):
    """Pixels of one window of an image move by at most `radius`, all others stay.

    The union over all places of the window. Every operation looks at all places at once (what each
    pixel saves or gains, summed over windows), so that projection, maximiser and support function
    are exact at the cost of a pooling. A patch at a known place is `FeatureBall(mask=...)`.

    Args:
        size: Height and width of the window.
        shape: Channels, height and width of the images.
        radius: The largest change of a pixel, in linf; the width of the box for any change.
        box: The least and the largest value of a pixel.

    Example:
        >>> import advlab
        >>> from advlab.attacks import PGD
        >>> from advlab.threats import Patch
        >>> sticker = Patch(size=(5, 5), shape=(1, 28, 28), radius=1.0, box=(0, 1))
        >>> adv = advlab.attack(model, x, y, sticker, PGD(restarts=20))
    """

    size: tuple[PositiveInt, PositiveInt]
    shape: tuple[PositiveInt, PositiveInt, PositiveInt]
    radius: NonNegativeFloat = 1.0
    box: tuple[float, float] | None = (0.0, 1.0)
    arguments = ("size", "shape", "radius", "box")

    if TYPE_CHECKING:

        def __init__(
            self,
            size: tuple[int, int],
            shape: tuple[int, int, int],
            radius: float = 1.0,
            box: tuple[float, float] | None = (0.0, 1.0),
        ) -> None: ...

    @model_validator(mode="after")
    def _fits(self) -> "Patch":
        if self.size[0] > self.shape[1] or self.size[1] > self.shape[2]:
            raise AdvlabError(f"a window inside images of {self.shape[1:]}", self.size)
        if self.box is not None and not self.box[0] < self.box[1]:
            raise AdvlabError("box: low must be below high", self.box)
        return self

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The window in which most of the move can stay; pixels there are clipped, others reset."""
        clipped = self._pixels.project(point, center)
        saved = (point - center).square() - (point - clipped).square()
        return torch.where(self._window(saved), clipped, center)

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """All pixels at their better ends, in the window that gains most."""
        best = self._pixels.maximiser(grad, center)
        return torch.where(self._window(grad * (best - center)), best, center)

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The sign of the gradient; `project` finds the window."""
        return grad.sign()

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """A window at random, uniform values in it."""
        drawn = self._pixels.sample(center, rng=rng)
        _, height, width = self.shape
        rows, columns = height - self.size[0] + 1, width - self.size[1] + 1
        place = uniform(center.new_empty(len(center), 1), rng)[:, 0] * rows * columns
        place = place.long().clamp(max=rows * columns - 1)
        return torch.where(self._at(place, center), drawn, center)

    def contains(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Bool[Tensor, " batch"]:
        """Whether all changes are small enough and fit in one window."""
        scale = self.radius + center.abs().flatten(1).amax(1)
        edge = 16 * torch.finfo(point.dtype).eps * scale
        moved = ((point - center).abs().flatten(1) > edge[:, None]).to(center)
        most = self._sums(moved.reshape(center.shape)).flatten(1).amax(1)
        return self._pixels.contains(point, center) & (most >= moved.sum(1) - 0.5)

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        if len(center) and center[0].numel() != self.shape[0] * self.shape[1] * self.shape[2]:
            raise AdvlabError(f"images of shape {self.shape}", tuple(center.shape[1:]))
        self._pixels.check_center(center)

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """<direction, center> and the gain of the best window."""
        best = self._pixels.maximiser(direction, center)
        gains = self._sums(direction * (best - center)).flatten(1).amax(1)
        return (direction * center).flatten(1).sum(1) + gains

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """Every pixel is in some window."""
        return self._pixels.interval(center)

    @property
    def order(self) -> float:
        return float("inf")

    @property
    def within_radius(self) -> bool:
        return True

    @property
    def gaps(self) -> bool:
        """From one place to another there is no way through the set but by the center."""
        return True

    @property
    def limits(self) -> tuple[float, float] | None:
        return self.box

    @property
    def _pixels(self) -> Ball:
        return Ball("linf", self.radius, self.box)

    def _sums(self, values: Tensor) -> Float[Tensor, "batch rows columns"]:
        """The sum of every window, over all channels."""
        image = values.reshape(-1, *self.shape).sum(1, keepdim=True)
        area = self.size[0] * self.size[1]
        return avg_pool2d(image, self.size, stride=1)[:, 0] * area

    def _window(self, values: Tensor) -> Bool[Tensor, "batch *shape"]:
        """The pixels of the window with the largest sum."""
        return self._at(self._sums(values).flatten(1).argmax(1), values)

    def _at(self, place: Tensor, like: Tensor) -> Bool[Tensor, "batch *shape"]:
        _, height, width = self.shape
        columns = width - self.size[1] + 1
        top, left = (place // columns)[:, None], (place % columns)[:, None]
        y = torch.arange(height, device=like.device)[None]
        x = torch.arange(width, device=like.device)[None]
        down = (y >= top) & (y < top + self.size[0])
        across = (x >= left) & (x < left + self.size[1])
        inside = (down[:, :, None] & across[:, None, :])[:, None]
        return inside.expand(-1, *self.shape).reshape(like.shape)
