"""AlexNet for small images, as in the code base of the purification paper (section 8)."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from .activation_layers import activation_layer
from .seeded import seeded


class AlexNet(nn.Module):
    """Five convolutions with three 2x2 maxima, and one dense layer in place of AlexNet's three.

    With width w: 11x11 of stride 4 to w channels, maximum, 5x5 to 3w, maximum, 3x3 to 6w, 4w and
    4w, maximum, dense. The usual w is 64, so the first layer has 64 filters of 11 x 11 pixels, the
    ones that the paper looks at; then there are 2,472,266 weights on CIFAR-10. There is no
    BatchNorm. Images smaller than 32 x 32, MNIST's among them, get zeros around.

    Args:
        width: channels of the first layer.
        classes: how many scores to give.
        channels: of the images.
        side: of the images, at least 4 pixels.
        activation: a name of `LAYERS`.

    Example:
        from advlab.core.randomness import generator
        from advlab.models import AlexNet
        net = AlexNet.draw(generator("alexnet", seed))
        filters = net.layers[1].weight  # (64, 3, 11, 11)
    """

    def __init__(
        self,
        width: int = 64,
        classes: int = 10,
        channels: int = 3,
        side: int = 32,
        activation: str = "relu",
    ):
        super().__init__()
        if min(width, channels) < 1 or classes < 2 or side < 4:
            raise AdvlabError(
                "width and channels of at least 1, two classes, a side of at least 4",
                f"width {width}, channels {channels}, classes {classes}, side {side}",
            )
        zeros = max(32 - side, 0)
        before, after = zeros // 2, zeros - zeros // 2
        last = ((max(side, 32) - 1) // 4 + 1) // 8
        self.layers = nn.Sequential(
            nn.ZeroPad2d((before, after, before, after)) if zeros else nn.Identity(),
            nn.Conv2d(channels, width, 11, stride=4, padding=5),
            activation_layer(activation),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 3 * width, 5, padding=2),
            activation_layer(activation),
            nn.MaxPool2d(2),
            nn.Conv2d(3 * width, 6 * width, 3, padding=1),
            activation_layer(activation),
            nn.Conv2d(6 * width, 4 * width, 3, padding=1),
            activation_layer(activation),
            nn.Conv2d(4 * width, 4 * width, 3, padding=1),
            activation_layer(activation),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(4 * width * last**2, classes),
        )

    @classmethod
    def draw(cls, rng: torch.Generator, **settings: Any) -> "AlexNet":
        """A network at torch's own start."""
        with seeded(rng):
            return cls(**settings)

    def forward(self, x: Float[Tensor, "batch channels side side"]) -> Float[Tensor, "batch k"]:
        return self.layers(x)
