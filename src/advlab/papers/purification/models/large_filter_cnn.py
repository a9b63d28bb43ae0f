"""A small network whose first filters are large enough to look at."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....models.seeded import seeded


class LargeFilterCNN(nn.Module):
    """AlexNet's shape at a laptop's size: large filters, then four 3x3 convolutions, BatchNorm.

    The paper's AlexNet has 64 filters of 11 x 11 pixels and no BatchNorm, without which a training
    of a few epochs does not begin. With 32 filters of 7 x 7, stride 2 and width 24 there are 42,000
    weights. Layers are `conv1`, `norm1`, `relu1`, ..., `conv5`, `norm5`, `relu5`, `dense`.

    Args:
        filters: channels of the first layer.
        kernel: side of its filters, an odd number.
        stride: of the first layer, 1 or 2.
        width: channels of the other layers; the fourth has twice as many.
        classes: how many scores to give.
        start_scale: factor of the first layer's start. BatchNorm makes the network's outputs the
            same for every factor; a small one makes the filters forget their start sooner.

    Example:
        from advlab.core.randomness import generator
        from advlab.papers.purification.models import LargeFilterCNN
        net = LargeFilterCNN.draw(generator("net", seed), start_scale=0.1)
        net.layers.conv1.weight  # (32, 3, 7, 7)
    """

    def __init__(
        self,
        filters: int = 32,
        kernel: int = 7,
        stride: int = 2,
        width: int = 24,
        classes: int = 10,
        start_scale: float = 1.0,
    ):
        super().__init__()
        self.layers = nn.Sequential()
        before = 3
        for n, (after, size, step, pooled) in enumerate(
            [
                (filters, kernel, stride, False),
                (width, 3, 1, True),
                (width, 3, 1, True),
                (2 * width, 3, 1, False),
                (width, 3, 1, True),
            ],
            start=1,
        ):
            self.layers.add_module(f"conv{n}", nn.Conv2d(before, after, size, step, size // 2))
            self.layers.add_module(f"norm{n}", nn.BatchNorm2d(after))
            self.layers.add_module(f"relu{n}", nn.ReLU())
            if pooled:
                self.layers.add_module(f"pool{n}", nn.MaxPool2d(2))
            before = after
        side = 32 // stride // 8
        self.layers.add_module("flatten", nn.Flatten())
        self.layers.add_module("dense", nn.Linear(width * side**2, classes))
        with torch.no_grad():
            self.layers.get_parameter("conv1.weight").mul_(start_scale)

    @classmethod
    def draw(cls, rng: torch.Generator, **settings: int | float) -> "LargeFilterCNN":
        """A network at torch's own start, but for `start_scale`."""
        with seeded(rng):
            return cls(**settings)  # type: ignore[arg-type]

    def forward(self, x: Float[Tensor, "batch 3 32 32"]) -> Float[Tensor, "batch classes"]:
        return self.layers(x)
