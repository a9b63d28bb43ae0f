"""The same network in a faster form: on a CPU convolutions are faster with the channels last."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ...core import inputs
from ...losses import ModelLoss
from ...models import Stack
from .folded_batchnorm import folded

Loss = Callable[[Tensor], Tensor]

CLOSE = 1e-4
"""How far outputs may differ by rounding, as a share of the largest."""
ROUNDINGS = 200
"""The same for folded BatchNorms, in units of rounding: 2e-5 in float32."""


class ChannelsLast(nn.Module):
    """The same network; each image is laid out pixel by pixel before it goes in."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        # A new module is in train mode; this one has none of its own.
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        # Not `contiguous`: images of one channel count as laid out already, and stay slow.
        return inputs.scores(self.model(x.to(memory_format=torch.channels_last)))


def relaid(loss: Loss, x: Tensor) -> Loss:
    """The same loss, faster where a model convolves images on a CPU; else the loss itself.

    BatchNorms that follow convolutions are folded into them as well (see `folded_batchnorm`). Two
    rows are tried both ways. A model that cannot read the other layout (`view` refuses it), or
    whose answers are not the same, is left as it is.
    """
    if not isinstance(loss, ModelLoss) or not _convolves(loss.model, x):
        return loss
    model: nn.Module = loss.model  # type: ignore[assignment]
    few = x[:2]
    with torch.no_grad():
        outputs = loss.outputs(few)
    joined = folded(model, few)
    if joined is not None:
        faster = loss.under(ChannelsLast(joined))
        if _agree(outputs, faster, few, ROUNDINGS * torch.finfo(outputs.dtype).eps):
            return faster
    other = loss.under(ChannelsLast(model))
    return other if _agree(outputs, other, few, CLOSE) else loss


def _convolves(model: object, x: Tensor) -> bool:
    if x.ndim != 4 or len(x) == 0 or x.device.type != "cpu" or not isinstance(model, nn.Module):
        return False
    modules = list(model.modules())
    if any(isinstance(module, (Stack, ChannelsLast)) for module in modules):
        return False
    return any(isinstance(module, nn.Conv2d) for module in modules)


def _agree(outputs: Tensor, other: ModelLoss, x: Tensor, close: float) -> bool:
    with torch.no_grad():
        try:
            laid = other.outputs(x)
        except RuntimeError:
            return False
    if outputs.shape != laid.shape:
        return False
    return bool(((outputs - laid).abs() <= close * outputs.abs().max()).all())
