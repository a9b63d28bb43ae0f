"""Normalisation as a layer, so that inputs and threat sets stay in natural units."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..core.errors import AdvlabError


class Normalised(nn.Module):
    """model((x - mean) / std), channel by channel."""

    mean: Tensor
    std: Tensor

    def __init__(self, model: nn.Module, mean: Sequence[float], std: Sequence[float]):
        super().__init__()
        if len(mean) != len(std) or any(s <= 0 for s in std):
            raise AdvlabError("mean and std must match, std above 0", f"mean {mean}, std {std}")
        self.model = model
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, x: Tensor) -> Tensor:
        shape = (1, -1, *[1] * (x.ndim - 2))
        return self.model((x - self.mean.reshape(shape)) / self.std.reshape(shape))
