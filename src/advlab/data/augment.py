"""Augmentation of images as tensors: each example its own draw, the same on every device."""

from abc import abstractmethod
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Int, Num
from pydantic import Field, SerializeAsAny
from torch import Tensor

from ..core.config import ExactConfig
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..core.nearest import unknown
from ..core.randomness import Rng, uniform
from ..core.registry import Registry

Images = Num[Tensor, "n channels height width"]


class Augmentation(ExactConfig):
    """A random change of images that keeps their classes; a new one writes `change` only.

    Called as `augment(x, rng=generator)`. Numbers are drawn where the generator is and then moved,
    so a name gives the same images on every device. Type, device and memory layout of x are kept.

    Example:
        from advlab.core.randomness import generator
        from advlab.data import Augmentations, Crop, Flip
        augment = Augmentations(parts=(Crop(padding=4), Flip()))
        x = augment(x, rng=generator("augment", epoch))
    """

    def __call__(self, x: Given[Images], *, rng: Rng) -> Images:
        """The changed images; x stays as it is.

        Args:
            x: images of any number type.
            rng: one generator for all rows, or one per replicate of a stack.
        """
        if x.ndim != 4:
            raise AdvlabError(
                "images of shape (n, channels, height, width) to augment", tuple(x.shape)
            )
        if len(x) == 0:
            return x
        return torch.empty_like(x, memory_format=torch.preserve_format).copy_(self.change(x, rng))

    @abstractmethod
    def change(self, x: Images, rng: Rng) -> Images:
        """The changed images, in any layout.

        Args:
            x: at least one image.
            rng: as for the call.
        """


class Crop(Augmentation):
    """A window of the image's own size, from the image with zeros around, at a random place.

    Args:
        padding: zeros on each side.
    """

    kind: Literal["crop"] = "crop"
    padding: int = Field(default=4, ge=1)

    def change(self, x: Images, rng: Rng) -> Images:
        height, width = x.shape[-2:]
        top, left = (whole_numbers(x, 2 * self.padding + 1, rng) for _ in range(2))
        rows = top[:, None] + torch.arange(height, device=x.device)
        columns = left[:, None] + torch.arange(width, device=x.device)
        image = torch.arange(len(x), device=x.device)[:, None, None]
        # Channels come last out of this indexing, as the two index axes stand apart in x.
        padded = F.pad(x, [self.padding] * 4).permute(0, 2, 3, 1)
        return padded[image, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


class Flip(Augmentation):
    """Left and right are exchanged, with probability 1/2."""

    kind: Literal["flip"] = "flip"

    def change(self, x: Images, rng: Rng) -> Images:
        flipped = whole_numbers(x, 2, rng).bool()
        return torch.where(flipped[:, None, None, None], x.flip(-1), x)


class Cutout(Augmentation):
    """A square is blotted out (DeVries and Taylor 2017); near the edge only part of it is inside.

    Args:
        size: the side of the square, whose centre is any pixel.
        fill: the value inside. Inputs are in natural units here: 0 is black, not the mean.
    """

    kind: Literal["cutout"] = "cutout"
    size: int = Field(default=8, ge=1)
    fill: float = 0.0

    def change(self, x: Images, rng: Rng) -> Images:
        inside = [self._inside(x, axis, rng) for axis in (2, 3)]
        square = inside[0][:, None, :, None] & inside[1][:, None, None, :]
        return x.masked_fill(square, int(self.fill) if not x.is_floating_point() else self.fill)

    def _inside(self, x: Images, axis: int, rng: Rng) -> Tensor:
        first = whole_numbers(x, x.shape[axis], rng)[:, None] - self.size // 2
        places = torch.arange(x.shape[axis], device=x.device)
        return (places >= first) & (places < first + self.size)


class Augmentations(Augmentation):
    """Several, one after the other; without any, images stay as they are.

    Args:
        parts: in the order in which they come.
    """

    kind: Literal["all"] = "all"
    parts: tuple[SerializeAsAny[Augmentation], ...] = ()

    def change(self, x: Images, rng: Rng) -> Images:
        for part in self.parts:
            x = part.change(x, rng)
        return x


AUGMENTATIONS: Registry[Augmentation] = Registry(
    "advlab.augmentations",
    None,
    {
        "none": Augmentations(),
        "crop_flip": Augmentations(parts=(Crop(), Flip())),
        "crop_flip_cutout": Augmentations(parts=(Crop(), Flip(), Cutout())),
    },
)
"""The usual ones by name. Digits are not flipped: MNIST is trained with "none"."""


def augmentation(name: str) -> Augmentation:
    """An augmentation by name.

    Args:
        name: one of `AUGMENTATIONS`.
    """
    if name not in AUGMENTATIONS:
        raise unknown("an augmentation", name, AUGMENTATIONS.names())
    return AUGMENTATIONS[name]


def whole_numbers(x: Images, below: int, rng: Rng) -> Int[Tensor, " n"]:
    """One number of 0, 1, ..., below - 1 per image, all equally likely, on the images' device.

    Args:
        x: the images.
        below: how many numbers there are.
        rng: one generator for all rows, or one per replicate.
    """
    drawn = uniform(torch.empty(len(x), dtype=torch.float64), rng)
    return (drawn * below).long().clamp(max=below - 1).to(x.device)
