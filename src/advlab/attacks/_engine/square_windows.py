"""Which coordinates one query of Square changes: a square of an image, or a group of any others."""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...core.randomness import generator, uniform
from .queries import Query


@dataclass(frozen=True)
class Squares:
    """Squares of an image (channels, height, width): one place per row, one sign per channel."""

    channels: int
    height: int
    width: int

    def size(self, share: float) -> int:
        side = round(math.sqrt(share * self.height * self.width))
        return min(max(side, 1), self.height, self.width)

    def draw(self, query: Query, size: int) -> tuple[Int[Tensor, "rows c k"], Tensor]:
        """The coordinates of a square of this side, and a sign for each of its channels."""
        u = query.draw(uniform, 2 + self.channels)
        top = (u[:, 0] * (self.height - size + 1)).long()
        left = (u[:, 1] * (self.width - size + 1)).long()
        across = torch.arange(size, device=u.device)
        square = (across[:, None] * self.width + across).flatten()
        plane = torch.arange(self.channels, device=u.device)[:, None] * self.height * self.width
        corner = (top * self.width + left)[:, None, None]
        return corner + (plane + square), _signs(u[:, 2:, None])

    def stripes(self, query: Query) -> Float[Tensor, "rows d"]:
        """Columns of one sign, the start of the linf attack."""
        sign = _signs(query.draw(uniform, self.channels, 1, self.width))
        return sign.expand(-1, -1, self.height, -1).flatten(1)

    def bump(self, query: Query, size: int) -> Float[Tensor, "rows 1 k"]:
        """Two pyramids of opposite sign side by side, along or across, and falling off outwards."""
        cut = size // 2
        profile = torch.zeros(size, size)
        profile[:cut] = _pyramid(cut, size)
        profile[cut:] = -_pyramid(size - cut, size)
        both = torch.stack([profile.flatten(), profile.T.flatten()]).to(query.found)
        lying = (query.draw(uniform, 1)[:, 0] < 0.5).long()
        return both[lying][:, None]


@dataclass(frozen=True)
class Groups:
    """Groups of coordinates for inputs without places: runs in an order that each size has anew.

    Every coordinate of a group has a sign of its own.
    """

    d: int

    def size(self, share: float) -> int:
        return min(max(round(share * self.d), 1), self.d)

    def draw(self, query: Query, size: int) -> tuple[Int[Tensor, "rows 1 k"], Tensor]:
        u = query.draw(uniform, 1 + size)
        run = (u[:, :1] * self.d).long() + torch.arange(size, device=u.device)
        return _order(self.d, size).to(u.device)[run % self.d][:, None], _signs(u[:, None, 1:])

    def stripes(self, query: Query) -> Float[Tensor, "rows d"]:
        return _signs(query.draw(uniform, self.d))

    def bump(self, query: Query, size: int) -> Float[Tensor, "1 1 k"]:
        """Falling off from the first coordinate of the group."""
        return (1 / torch.arange(1, size + 1)).to(query.found)[None, None]


@lru_cache(maxsize=32)
def _order(d: int, size: int) -> Int[Tensor, " {d}"]:
    """An order of the coordinates without a pattern, another one for each size."""
    return torch.randperm(d, generator=generator("square", d, size))


def windows(shape: tuple[int, ...], squares: bool) -> Squares | Groups:
    return Squares(*shape) if squares and len(shape) == 3 else Groups(math.prod(shape))


def _signs(u: Tensor) -> Tensor:
    return torch.where(u < 0.5, -1.0, 1.0).to(u)


def _pyramid(height: int, width: int) -> Tensor:
    """Rings of a rectangle, each as high as the sum of 1 / k^2 over the rings around it.

    The outermost is the lowest: energy sits in the middle.
    """
    down = torch.arange(height)
    right = torch.arange(width)
    depth = torch.minimum(
        torch.minimum(down, height - 1 - down)[:, None], torch.minimum(right, width - 1 - right)
    )
    rings = int(depth.max()) + 1 if height and width else 1
    steps = 1 / torch.arange(rings, 0, -1.0) ** 2
    return steps.cumsum(0)[depth]
