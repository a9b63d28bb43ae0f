"""LeNet5 (LeCun et al. 1998), in the form that is usual today (CGRO paper, Figure 2)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from .activation_layers import activation_layer
from .seeded import seeded


class LeNet5(nn.Module):
    """5x5 convolutions of 6 and 16 channels, each with a 2x2 maximum; dense 120, 84, classes.

    The first layer sees 32 x 32 pixels: smaller images, MNIST's 28 x 28 among them, get two zeros
    on each side. So MNIST's form has 61,706 weights, and CIFAR's 62,006. (Without these zeros
    MNIST's would have 44,426.)

    Args:
        classes: how many scores to give.
        channels: of the images.
        side: of the images, at least 12 pixels.
        activation: a name of `LAYERS`; the paper of 1998 has a tanh, and ReLU is usual today.

    Example:
        from advlab.core.randomness import generator
        from advlab.models import LeNet5
        net = LeNet5.draw(generator("lenet", seed))
    """

    def __init__(
        self, classes: int = 10, channels: int = 1, side: int = 28, activation: str = "relu"
    ):
        super().__init__()
        if channels < 1 or classes < 2 or side < 12:
            raise AdvlabError(
                "at least one channel, two classes, a side of at least 12",
                f"channels {channels}, classes {classes}, side {side}",
            )
        padding = 2 if side < 32 else 0
        last = ((side + 2 * padding - 4) // 2 - 4) // 2
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 6, 5, padding=padding),
            activation_layer(activation),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            activation_layer(activation),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * last**2, 120),
            activation_layer(activation),
            nn.Linear(120, 84),
            activation_layer(activation),
            nn.Linear(84, classes),
        )

    @classmethod
    def draw(cls, rng: torch.Generator, **settings: Any) -> "LeNet5":
        """A network at torch's own start."""
        with seeded(rng):
            return cls(**settings)

    def forward(self, x: Float[Tensor, "batch channels side side"]) -> Float[Tensor, "batch k"]:
        return self.layers(x)
