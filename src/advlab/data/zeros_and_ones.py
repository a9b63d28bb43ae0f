"""Zeros and ones: MNIST where its files are, else a stand-in that needs no files.

The benign and generalization papers have figures on MNIST's digits 0 and 1. What is drawn says
which of the two it is.
"""

from typing import Literal

import torch

from ..core.randomness import normal, uniform
from . import Arrays, mnist
from .directory import Split, find
from .recorded import cached

Source = Literal["mnist", "stand-in"]
TITLES: dict[str, str] = {
    "mnist": "MNIST 0 against 1",
    "stand-in": "stand-in for MNIST (two classes of blobs)",
}


def source() -> Source:
    """MNIST where all four of its files are found."""
    files = (name for pair in mnist.FILES.values() for name in pair)
    there = all(find("mnist", f"{name}.gz") or find("mnist", name) for name in files)
    return "mnist" if there else "stand-in"


def draw(source: Source, split: Split, n: int, rng: torch.Generator) -> Arrays:
    """n images at random as rows of 784 pixels in [0, 1], and their classes 0 and 1.

    Args:
        source: MNIST or the stand-in.
        split: "train" or "test"; the stand-in knows no splits.
        n: how many.
        rng: which ones.
    """
    if source == "stand-in":
        return blobs(n, rng)
    pool = digits(split)
    pick = torch.randperm(len(pool.y), generator=rng)[:n]
    return Arrays(pool.x[pick], pool.y[pick])


@cached
def digits(split: Split) -> Arrays:
    """MNIST's zeros and ones of a split, as rows of 784 pixels."""
    images = mnist.load((0, 1), split=split)
    return Arrays(images.x.flatten(1), images.y)


def blobs(n: int, rng: torch.Generator) -> Arrays:
    """Smooth bumps of random place and width, left (0) or right (1) of the middle, with noise."""
    y = (uniform(torch.empty(n), rng) < 0.5).long()
    place = torch.stack([torch.full((n,), 13.5), 9.0 + 9.0 * y], dim=1)
    place = place + 1.5 * normal(torch.empty(n, 2), rng)
    spread = 3 + 2 * uniform(torch.empty(n, 1), rng)
    axis = torch.arange(28.0)
    down, across = (torch.exp(-(((axis - place[:, i : i + 1]) / spread) ** 2) / 2) for i in (0, 1))
    clean = (down[:, :, None] * across[:, None]).flatten(1)
    return Arrays((clean + 0.1 * normal(clean, rng)).clamp(0, 1), y)
