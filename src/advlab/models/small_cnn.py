"""A small convolutional network for MNIST and images of its kind."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from .activation_layers import activation_layer
from .seeded import seeded


class SmallCNN(nn.Module):
    """Two 3x3 convolutions, each halved by a 2x2 mean, then two dense layers; ReLU in between.

    The convolutions have `width` and 2 `width` channels. Means, not maxima: all but the ReLUs is
    linear, and no pixel is without gradient.
    """

    def __init__(
        self,
        width: int = 16,
        hidden: int = 64,
        classes: int = 10,
        channels: int = 1,
        side: int = 28,
        activation: str = "relu",
    ):
        super().__init__()
        if min(width, hidden, channels) < 1 or classes < 2 or side < 4:
            raise AdvlabError(
                "width, hidden and channels of at least 1, two classes, a side of at least 4",
                f"width {width}, hidden {hidden}, channels {channels}, classes {classes}, "
                f"side {side}",
            )
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1),
            activation_layer(activation),
            nn.AvgPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            activation_layer(activation),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * (side // 4) ** 2, hidden),
            activation_layer(activation),
            nn.Linear(hidden, classes),
        )

    @classmethod
    def draw(cls, rng: torch.Generator, width: int = 16, **settings: Any) -> "SmallCNN":
        """A network at torch's own start."""
        with seeded(rng):
            return cls(width, **settings)

    def forward(self, x: Float[Tensor, "batch channels side side"]) -> Float[Tensor, "batch k"]:
        return self.layers(x)
