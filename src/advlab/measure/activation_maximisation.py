"""Images that excite a neuron most: what a channel of any layer looks for.

Erhan et al. 2009, as the purification paper uses it (section 8.1; Figures 6, 10, 11 and 13): from a
random image, gradient steps on the activation of one channel, with a decay of the image to grey,
without jitter or blur. On clean networks the pictures look like noise, on robust ones they do not.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core import inputs
from ..core.checks import chosen, length, scalar
from ..core.devices import device_of
from ..core.errors import AdvlabError
from ..core.randomness import Rng, uniform
from ..losses import evaluating
from ..threats.base import per_example
from ._parts.batches import randomness
from ._parts.layers import layer_of, watching


class _Reached(Exception):
    """The layer has run: the rest of the network need not."""


def maximise_activation(
    model: nn.Module,
    layer: str,
    channels: Sequence[int],
    shape: Sequence[int],
    *,
    unit: str = "mean",
    steps: int = 2000,
    step_size: float = 0.15,
    decay: float = 0.005,
    towards: float = 0.5,
    noise: float = 0.1,
    box: tuple[float, float] = (0.0, 1.0),
    rng: Rng | int | None = None,
) -> Float[Tensor, "channels *shape"]:
    """One image per channel, each excites its own; all are climbed in one batch.

        x <- clip(x + step_size * g / ||g||_2 - decay * (x - towards))

    with g the gradient of the channel's activation. Gradients are scaled to length one, as
    activations of different layers and networks differ in scale; the rest is the paper's.

    Args:
        model: the network, in eval mode and left as it was, without gradients on its weights.
        layer: its name, as `named_modules` gives it. Its output is climbed as it leaves the layer,
            before a ReLU that follows.
        channels: which channels of that layer.
        shape: of one image, such as (3, 32, 32).
        unit: the "mean" of the channel over places, or its unit at the "centre".
        steps: gradient steps.
        step_size: length of each.
        decay: how much of the way to `towards` each pixel goes back per step; 0 for none.
        towards: where they go back to: grey (0.5), or black (0) as in Figure 6.
        noise: the start is uniform within this of `towards`.
        box: least and largest value of a pixel.
        rng: where the start comes from; a whole number is a seed.

    Returns:
        The images, where the model is.

    Example:
        from advlab.measure.activation_maximisation import maximise_activation
        images = maximise_activation(model, "layers.3", range(12), (3, 32, 32), steps=200)
    """
    chosen("unit", unit, ("mean", "centre"))
    step, pull, start = (
        length("step_size", step_size),
        scalar("decay", decay),
        scalar("noise", noise),
    )
    inputs.instance("model as a torch.nn.Module with layers", model, nn.Module, "")
    picked, layers = [int(one) for one in channels], {layer: layer_of(model, layer)}
    if not picked:
        raise AdvlabError("at least one channel", "none")
    dtype = inputs.dtype_of(model) or torch.get_default_dtype()
    empty = torch.zeros(len(picked), *shape, dtype=dtype, device=device_of(model, torch.zeros(0)))
    move = 2 * uniform(empty, randomness(rng, "maximise_activation")) - 1
    image = (towards + start * move).clamp(*box)
    excite = _Excitation(model, layers, picked, unit)
    for _ in range(inputs.count("steps", steps)):
        grad = excite.gradient(image)
        size = grad.flatten(1).norm(dim=1)
        uphill = grad / per_example(torch.where(size > 0, size, 1.0), grad)
        image = (image + step * uphill - pull * (image - towards)).clamp(*box)
    return image


class _Excitation:
    """The activation of channel k in row k, and its gradient in the images."""

    def __init__(
        self, model: Callable, layers: dict[str, nn.Module], channels: list[int], unit: str
    ):
        self.model, self.layers, self.unit = model, layers, unit
        self.channels = torch.tensor(channels)
        self.value: Tensor | None = None

    def gradient(self, image: Tensor) -> Tensor:
        leaf = image.detach().requires_grad_()
        watched = watching(self.layers, self._see)
        with torch.enable_grad(), evaluating(self.model), watched, suppress(_Reached):
            self.model(leaf.clone())  # a network may begin with an in-place layer
        if self.value is None:
            raise AdvlabError("a layer that the network runs", next(iter(self.layers)))
        return torch.autograd.grad(self.value, leaf)[0]

    def _see(self, name: str, output: Tensor) -> None:
        if output.ndim < 2 or int(self.channels.max()) >= output.shape[1]:
            raise AdvlabError(
                f"channels of {name}, 0 .. {output.shape[1] - 1}", self.channels.max()
            )
        rows = torch.arange(len(output), device=output.device)
        own = output[rows, self.channels.to(output.device)].reshape(len(output), -1)
        if self.unit == "centre":
            own = own[:, [_centre(output.shape[2:])]]
        self.value = own.mean(1).sum()
        raise _Reached


def _centre(shape: torch.Size) -> int:
    """The place in the middle of an image, in row-major order."""
    place = 0
    for side in shape:
        place = place * side + side // 2
    return place
