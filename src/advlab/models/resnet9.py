"""ResNet9: the small residual network that is usual for CIFAR-10 (CGRO paper, Figures 2 and 3)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from .activation_layers import activation_layer
from .seeded import seeded


class ResNet9(nn.Module):
    """Eight 3x3 convolutions, each with BatchNorm and ReLU, two of the pairs residual; one dense.

    With width w: conv w, conv 2w + pool, residual 2w, conv 4w + pool, conv 8w + pool, residual 8w,
    global maximum, dense. Pools are 2x2 maxima. The usual width is 64.
    """

    def __init__(
        self, width: int = 64, classes: int = 10, channels: int = 3, activation: str = "relu"
    ):
        super().__init__()
        if min(width, channels) < 1 or classes < 2:
            raise AdvlabError(
                "width and channels of at least 1, two classes",
                f"width {width}, channels {channels}, classes {classes}",
            )
        self.layers = nn.Sequential(
            _convolution(channels, width, activation),
            _convolution(width, 2 * width, activation),
            nn.MaxPool2d(2),
            Residual(2 * width, activation),
            _convolution(2 * width, 4 * width, activation),
            nn.MaxPool2d(2),
            _convolution(4 * width, 8 * width, activation),
            nn.MaxPool2d(2),
            Residual(8 * width, activation),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
            nn.Linear(8 * width, classes),
        )

    @classmethod
    def draw(cls, rng: torch.Generator, width: int = 64, **settings: Any) -> "ResNet9":
        """A network at torch's own start."""
        with seeded(rng):
            return cls(width, **settings)

    def forward(self, x: Float[Tensor, "batch channels h w"]) -> Float[Tensor, "batch k"]:
        return self.layers(x)


class Residual(nn.Module):
    """x + g(x), where g is two convolutions with BatchNorm and ReLU."""

    def __init__(self, channels: int, activation: str):
        super().__init__()
        self.inner = nn.Sequential(
            _convolution(channels, channels, activation),
            _convolution(channels, channels, activation),
        )

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch c h w"]:
        return x + self.inner(x)


def _convolution(before: int, after: int, activation: str) -> nn.Sequential:
    # BatchNorm has a shift of its own, so the convolution needs none.
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        activation_layer(activation),
    )
