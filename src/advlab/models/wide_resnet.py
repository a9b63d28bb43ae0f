"""Wide residual networks (Zagoruyko and Komodakis 2016), the large networks of robust training."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from .activation_layers import activation_layer
from .preactivation_block import residual_stages, start_by_fan_out
from .seeded import seeded

DEEPEST = 1000


class WideResNet(nn.Module):
    """WRN-depth-widen: three stages of (depth - 4) / 6 blocks, `widen` times as wide as a ResNet.

    A 3x3 convolution to `width` channels, stages of width * widen, twice and four times that,
    BatchNorm, activation, mean, dense. WRN-34-10 has 46,160,474 weights and WRN-28-10 36,479,194 on
    CIFAR-10. WRN-34-1 is what the generalization paper calls ResNet34. No dropout.

    Args:
        depth: 6n + 4, such as 28, 34 or 70.
        widen: the factor k of the paper.
        width: channels of the first convolution; 16 in the paper.
        classes: how many scores to give.
        channels: of the images, which may have any size.
        activation: a name of `LAYERS`; "relu_softplus" is that of the generalization paper.

    Example:
        from advlab.core.randomness import generator
        from advlab.models import WideResNet
        net = WideResNet.draw(generator("net", seed), depth=34, widen=10)
    """

    def __init__(
        self,
        depth: int = 34,
        widen: int = 10,
        width: int = 16,
        classes: int = 10,
        channels: int = 3,
        activation: str = "relu",
    ):
        super().__init__()
        if min(widen, width, channels) < 1 or classes < 2:
            raise AdvlabError(
                "widen, width and channels of at least 1, two classes",
                f"widen {widen}, width {width}, channels {channels}, classes {classes}",
            )
        if depth % 6 != 4 or not 10 <= depth <= DEEPEST:
            raise AdvlabError(f"depth as 6n + 4 from 10 to {DEEPEST}", depth)
        widths = [width * widen * 2**stage for stage in range(3)]
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            residual_stages(width, widths, 3 * ((depth - 4) // 6,), activation),
            nn.BatchNorm2d(widths[-1]),
            activation_layer(activation),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(widths[-1], classes),
        )
        start_by_fan_out(self)

    @classmethod
    def draw(cls, rng: torch.Generator, **settings: Any) -> "WideResNet":
        """A network at He's start."""
        with seeded(rng):
            return cls(**settings)

    def forward(self, x: Float[Tensor, "batch channels h w"]) -> Float[Tensor, "batch k"]:
        return self.layers(x)
