"""CIFAR-10 as the image experiments use it, and a stand-in that needs no files."""

from typing import Literal, NamedTuple

import torch

from ....core.errors import AdvlabError
from ....core.randomness import generator, normal, uniform
from ....data import Arrays, cifar10
from ....data.recorded import cached

Source = Literal["cifar10", "stand-in"]
POOL = 10_000
"""A laptop's training images are drawn from the first so many."""
SEEN = 1_000
"""The first test images, on which trials chose the settings: no run is judged on them."""


class ImageParts(NamedTuple):
    """Images to train on, and images that no training and no trial has seen."""

    train: Arrays
    held_out: Arrays


def image_parts(source: Source, n: int | None, tested: int, seed: int) -> ImageParts:
    """The images of one run.

    Args:
        source: CIFAR-10, or smooth coloured shapes with noise.
        n: how many to train on, drawn by seed from the first 10,000 training images; None for all
            training images.
        tested: how many to judge on: test images from number 1,000 on, the same for every seed.
        seed: of the run.

    Example:
        from advlab.papers.purification.data.images import image_parts
        train, held_out = image_parts("cifar10", 5000, 1000, seed=0)
    """
    if source == "stand-in":
        rng = generator("purification/images", "stand-in")
        return ImageParts(_shapes(n or POOL, rng), _shapes(tested, rng))
    train, test = _read("train", None if n is None else POOL), _read("test", SEEN + tested)
    if len(test.y) < SEEN + tested:
        raise AdvlabError(f"{SEEN + tested} test images of CIFAR-10", len(test.y))
    if n is not None:
        if len(train.y) < n:
            raise AdvlabError(f"{n} training images of CIFAR-10", len(train.y))
        rng = generator("purification/images", "train", seed)
        chosen = torch.randperm(len(train.y), generator=rng)[:n]
        train = train.take(chosen.sort().values)
    return ImageParts(train, test.take(torch.arange(SEEN, SEEN + tested)))


@cached
def _read(split: Literal["train", "test"], n: int | None) -> Arrays:
    return cifar10.load(n, split=split)


def _shapes(n: int, rng: torch.Generator) -> Arrays:
    """Ten classes: a soft coloured stripe of one of ten directions, on noise."""
    y = torch.arange(n) % 10
    angle = torch.pi * y / 10 + 0.1 * normal(torch.empty(n), rng)
    axis = torch.linspace(-1, 1, 32)
    place = axis[:, None] * angle.cos()[:, None, None] + axis * angle.sin()[:, None, None]
    place = place - 0.5 * (uniform(torch.empty(n), rng)[:, None, None] - 0.5)
    colour = 0.3 + 0.7 * uniform(torch.empty(n, 3), rng)
    clean = torch.exp(-8 * place**2)[:, None] * colour[:, :, None, None]
    return Arrays((clean + 0.1 * normal(clean, rng)).clamp(0, 1), y)
