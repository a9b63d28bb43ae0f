"""The residual block whose normalisation and activation come first (He et al. 2016)."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from .activation_layers import activation_layer


class PreActivationBlock(nn.Module):
    """s(x) + conv(act(norm(conv(act(norm(x)))))), with 3x3 convolutions and BatchNorm.

    s(x) is x where shapes agree, and else a 1x1 convolution.

    Args:
        before: channels that come.
        after: channels that go.
        stride: of the first convolution and of the shortcut.
        activation: a name of `LAYERS`.
        raw_shortcut: whether a shortcut's convolution sees x itself, and not act(norm(x)).
    """

    def __init__(
        self, before: int, after: int, stride: int, activation: str, raw_shortcut: bool = False
    ):
        super().__init__()
        self.enter = nn.Sequential(nn.BatchNorm2d(before), activation_layer(activation))
        self.inner = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            activation_layer(activation),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
        )
        same = before == after and stride == 1
        self.shortcut = None if same else nn.Conv2d(before, after, 1, stride=stride, bias=False)
        self.raw_shortcut = raw_shortcut

    def forward(self, x: Float[Tensor, "batch c h w"]) -> Float[Tensor, "batch d i j"]:
        state = self.enter(x)
        if self.shortcut is None:
            return x + self.inner(state)
        return self.shortcut(x if self.raw_shortcut else state) + self.inner(state)


def residual_stages(
    first: int,
    widths: Sequence[int],
    blocks: Sequence[int],
    activation: str,
    raw_shortcut: bool = False,
) -> nn.Sequential:
    """Stages of blocks; each stage but the first halves height and width.

    Args:
        first: channels that come.
        widths: channels of each stage.
        blocks: how many blocks each stage has.
        activation: a name of `LAYERS`.
        raw_shortcut: as for the block.
    """
    stages, before = [], first
    for number, (width, count) in enumerate(zip(widths, blocks, strict=True)):
        strides = [1 if number == 0 else 2] + [1] * (count - 1)
        stage = []
        for stride in strides:
            stage.append(PreActivationBlock(before, width, stride, activation, raw_shortcut))
            before = width
        stages.append(nn.Sequential(*stage))
    return nn.Sequential(*stages)


def start_by_fan_out(model: nn.Module) -> None:
    """Convolutions at He's normal start, of variance 2 / (size of the filter * channels out).

    Args:
        model: the network, whose convolutions are drawn anew; dense layers get no shift.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            size = math.prod(layer.kernel_size) * layer.out_channels
            nn.init.normal_(layer.weight, 0.0, math.sqrt(2 / size))
        elif isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.bias)
