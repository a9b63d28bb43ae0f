"""What channels of deep layers look for: activation maximisation, for Figures 6, 10, 11 and 13."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .....core.randomness import generator
from .....measure.activation_maximisation import maximise_activation
from .....measure.spectra import autocorrelation, high_frequency_share
from .image_runs import NAME, ImageSettings

CHANNELS = 12
SHAPE = (3, 32, 32)
DEEP = "model.layers.conv4"
"""The layer of the small network that stands for a deep one."""
LAYERS: dict[str, tuple[str, ...]] = {
    "large filters": tuple(f"model.layers.conv{n}" for n in (2, 3, 4, 5)),
    "AlexNet": tuple(f"model.layers.{n}" for n in (4, 7, 9, 11)),
}
"""Deep layers that are shown; of ResNet-34 they are found by their numbers."""
GREY, BLACK = 0.5, 0.0


def numbered_layer(net: nn.Module, number: int) -> str:
    """The name of the convolution with a number from 1, in the order of the network; shortcuts of
    one pixel do not count."""
    convolutions = [
        name for name, one in net.named_modules()
        if isinstance(one, nn.Conv2d) and one.kernel_size != (1, 1)
    ]  # fmt: skip
    return convolutions[number - 1]


def features_of_layer(
    settings: ImageSettings, net: nn.Module, layer: str, *, steps: int, towards: float = GREY
) -> Tensor:
    """Images that excite the first channels of a layer most, from the same random starts.

    Args:
        settings: the seed of the starts, the same for all networks that are compared.
        net: the network.
        layer: its name.
        steps: gradient steps; 2000 in the paper.
        towards: where pixels decay to, grey or black.
    """
    channels = range(min(CHANNELS, _width(net, layer)))
    rng = generator(NAME, "features", layer, settings.seed)
    return maximise_activation(
        net, layer, channels, SHAPE, steps=steps, towards=towards, rng=rng
    ).cpu()


def _width(net: nn.Module, layer: str) -> int:
    return len(net.get_submodule(layer).weight)  # type: ignore[arg-type]


def smoothness(images: Tensor) -> dict[str, float]:
    """The lag-1 autocorrelation and the high-frequency share, means over pictures."""
    return {
        "autocorrelation": float(torch.nanmean(autocorrelation(images))),
        "high frequencies": float(torch.nanmean(high_frequency_share(images))),
    }


def short(layer: str) -> str:
    """A layer's name for a reader."""
    return layer.removeprefix("model.").removeprefix("layers.")


def deep_layers(settings: ImageSettings, net: nn.Module, numbers: Sequence[int]) -> list[str]:
    """The layers to show of a network; by number, of ResNet-34."""
    if settings.network in LAYERS:
        return list(LAYERS[settings.network])
    return [numbered_layer(net, number) for number in numbers]
