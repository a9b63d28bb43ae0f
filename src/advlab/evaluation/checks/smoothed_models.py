"""Smoother relatives of a model: their gradients pass where the model's own are cut off."""

import copy
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from ...core.randomness import generator
from ...losses import evaluating

SHARPNESS = 10.0
DRAWS = 8


def smoothed_models(
    model: Callable[[Tensor], Tensor], width: float
) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    """The model with softplus for ReLU, and its mean over noise of this width, by name."""
    soft = with_softplus(model)
    if soft is not None:
        yield "a copy of the model with softplus for ReLU", soft
    if width > 0:
        yield f"the model's mean over noise of width {width:.3g}", NoiseAveraged(model, width)


def with_softplus(model: Callable[[Tensor], Tensor]) -> nn.Module | None:
    """A copy with softplus for every ReLU; None if there are none, or it cannot be copied."""
    if not isinstance(model, nn.Module) or isinstance(model, torch.jit.ScriptModule):
        return None
    if not any(isinstance(module, nn.ReLU) for module in model.modules()):
        return None
    soft = copy.deepcopy(model)
    for module in list(soft.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.ReLU):
                setattr(module, name, nn.Softplus(beta=SHARPNESS))
    return soft


class NoiseAveraged:
    """The mean output over some draws of uniform noise on the input, the same draws each time."""

    def __init__(self, model: Callable[[Tensor], Tensor], width: float):
        self.model, self.width = model, width

    def __call__(self, x: Tensor) -> Tensor:
        rng = generator("evaluate", "blur")
        noise = torch.empty(DRAWS, *x.shape[1:], dtype=x.dtype).uniform_(-1, 1, generator=rng)
        points = x + self.width * noise.to(x.device)[:, None]
        with evaluating(self.model):
            return self.model(points.flatten(0, 1)).unflatten(0, (DRAWS, len(x))).mean(0)
