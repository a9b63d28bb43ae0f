"""A small network for CIFAR-10 that two cores can train adversarially in a minute."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....core.errors import AdvlabError
from ....models.seeded import seeded


class StridedCNN(nn.Module):
    """Convolutions 5x5 and 3x3 of stride 2 with BatchNorm, then dense layers; ReLU in between.

    `width`, 2 `width` channels and 4 `width` hidden units. It stands for the paper's ResNet9 where
    that takes too long.

    Args:
        width: channels of the first convolution.
        classes: how many scores to give.
        channels: of the images.
        side: of the images, a multiple of 4.

    Example:
        from advlab.core.randomness import generator
        from advlab.papers.cgro.models import StridedCNN
        net = StridedCNN.draw(generator("net", seed), width=32)
    """

    def __init__(self, width: int = 32, classes: int = 10, channels: int = 3, side: int = 32):
        super().__init__()
        if min(width, channels) < 1 or classes < 2 or side < 4 or side % 4:
            raise AdvlabError(
                "width and channels of at least 1, two classes, a side that is a multiple of 4",
                f"width {width}, channels {channels}, classes {classes}, side {side}",
            )
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 5, stride=2, padding=2),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(2 * width * (side // 4) ** 2, 4 * width),
            nn.ReLU(),
            nn.Linear(4 * width, classes),
        )

    @classmethod
    def draw(cls, rng: torch.Generator, **settings: Any) -> "StridedCNN":
        """A network at torch's own start."""
        with seeded(rng):
            return cls(**settings)

    def forward(self, x: Float[Tensor, "batch channels side side"]) -> Float[Tensor, "batch k"]:
        return self.layers(x)
