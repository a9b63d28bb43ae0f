"""Pre-activation residual networks for small images (He et al. 2016), in their two families."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from .activation_layers import activation_layer
from .preactivation_block import residual_stages, start_by_fan_out
from .seeded import seeded

FOUR_STAGES: dict[int, tuple[int, ...]] = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
"""Blocks of each stage, of width 64, 128, 256 and 512: the networks of robust training."""
DEEPEST = 1202


class PreActResNet(nn.Module):
    """A 3x3 convolution, stages of residual blocks, BatchNorm, activation, mean, dense.

    Depths 18 and 34 have four stages of width w, 2w, 4w and 8w, usually w = 64: PreActResNet-18
    is the usual network of robust training on CIFAR-10 (Rice et al. 2020), and starts as torch's
    layers do. Depths 6n + 2 (14, 20, 32, ...) have three stages of n blocks and width w, 2w and 4w,
    usually w = 16, and He's start: these are of the code base of the purification paper (section
    8), whose "ResNet-34" with 31 convolutions is depth 32, and whose "ResNet-16" is depth 14.

    Args:
        depth: 18, 34, or 6n + 2.
        width: channels of the first stage; None for the usual.
        classes: how many scores to give.
        channels: of the images, which may have any size.
        activation: a name of `LAYERS`.

    Example:
        from advlab.core.randomness import generator
        from advlab.models import PreActResNet
        net = PreActResNet.draw(generator("net", seed), depth=18)
    """

    def __init__(
        self,
        depth: int = 18,
        width: int | None = None,
        classes: int = 10,
        channels: int = 3,
        activation: str = "relu",
    ):
        super().__init__()
        four = depth in FOUR_STAGES
        width = (64 if four else 16) if width is None else width
        if min(width, channels) < 1 or classes < 2:
            raise AdvlabError(
                "width and channels of at least 1, two classes",
                f"width {width}, channels {channels}, classes {classes}",
            )
        if not four and (depth % 6 != 2 or not 8 <= depth <= DEEPEST):
            raise AdvlabError(f"depth as 18, 34, or 6n + 2 up to {DEEPEST}", depth)
        blocks = FOUR_STAGES[depth] if four else 3 * ((depth - 2) // 6,)
        widths = [width * 2**stage for stage in range(len(blocks))]
        # The code base of the three stages hands the block's own input to the shortcut.
        stages = residual_stages(width, widths, blocks, activation, raw_shortcut=not four)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False),
            stages,
            nn.BatchNorm2d(widths[-1]),
            activation_layer(activation),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(widths[-1], classes),
        )
        if not four:
            start_by_fan_out(self)

    @classmethod
    def draw(cls, rng: torch.Generator, **settings: Any) -> "PreActResNet":
        """A network at its start."""
        with seeded(rng):
            return cls(**settings)

    def forward(self, x: Float[Tensor, "batch channels h w"]) -> Float[Tensor, "batch k"]:
        return self.layers(x)
