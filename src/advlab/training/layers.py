"""Layers of a network that train, that stand still, or that start anew."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ..core.errors import AdvlabError
from .hooks import Hook
from .run import Run

LAYERS = (
    nn.Linear,
    nn.Bilinear,
    nn.modules.conv._ConvNd,
)
"""What counts as a layer where layers are numbered; others belong to the layer before them."""


def split_at(model: nn.Module, layer: int | str) -> tuple[list[str], list[str]]:
    """Names of the modules with weights or statistics of their own before a layer, and from it on.

    Args:
        model: the network; its order is that in which its parts were registered.
        layer: the number of the layer, from 1, among linear and convolutional layers; or a name,
            as `model.named_modules()` has it.

    Returns:
        The names before, and the names of the layer and all that follow.
    """
    holders = [name for name, one in model.named_modules() if _own(one)]
    if isinstance(layer, str):
        inside = [name for name in holders if name == layer or name.startswith(f"{layer}.")]
        if not inside:
            raise AdvlabError(f"a layer of the model: {', '.join(holders)}", repr(layer))
        first = inside[0]
    else:
        modules = dict(model.named_modules())
        numbered = [name for name in holders if isinstance(modules[name], LAYERS)]
        if not 1 <= layer <= len(numbered):
            raise AdvlabError(f"a layer from 1 to {len(numbered)}, or its name", layer)
        first = numbered[layer - 1]
    place = holders.index(first)
    return holders[:place], holders[place:]


def freeze(model: nn.Module, names: Iterable[str]) -> None:
    """Take weights out of training: their `requires_grad` is False.

    Args:
        model: the network.
        names: modules, as `split_at` gives them.
    """
    modules = dict(model.named_modules())
    for name in names:
        for weight in modules[name].parameters(recurse=False):
            weight.requires_grad_(False)


def rerandomise(model: nn.Module, names: Iterable[str], rng: torch.Generator) -> None:
    """Draw weights anew, as the layers were made: each by its own `reset_parameters`.

    Args:
        model: the network.
        names: modules, as `split_at` gives them.
        rng: where the draws come from; torch's own generator stays where it is.
    """
    modules = dict(model.named_modules())
    chosen = list(names)
    fixed = [name for name in chosen if not callable(_reset(modules[name]))]
    if fixed:
        raise AdvlabError(
            "layers that can be drawn anew, with a method reset_parameters",
            f"{fixed[0]}, a {type(modules[fixed[0]]).__name__}",
        )
    seed = int(torch.randint(2**62, (1,), generator=rng, device=rng.device))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for name in chosen:
            _reset(modules[name])()  # type: ignore[operator]


class FrozenLayers(Hook):
    """Holds modules in eval mode during a run, so that statistics of BatchNorm stand still too.

    Args:
        names: modules, as `split_at` gives them; or a layer, and all before it are held.

    Example:
        from advlab.training import FrozenLayers, fit, freeze, split_at
        below, _ = split_at(net, 3)
        freeze(net, below)
        fit(net, x, y, steps=100, lr=0.1, hooks=[FrozenLayers(below)])
    """

    def __init__(self, names: Iterable[str] | int | str):
        self.names = names if isinstance(names, int | str) else list(names)

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        names = self.names
        if isinstance(names, int | str):
            names, _ = split_at(run.model, names)
        modules = dict(run.model.named_modules())
        for name in names:
            modules[name].training = False
        yield  # the run puts every module's mode back

    def settings(self) -> object:
        return self.names


def _own(module: nn.Module) -> bool:
    return any(True for _ in module.parameters(recurse=False)) or any(
        True for _ in module.buffers(recurse=False)
    )


def _reset(module: nn.Module) -> object:
    """How a module draws itself anew; one without weights (a normalisation) has nothing to draw."""
    if not any(True for _ in module.parameters(recurse=False)) and not hasattr(
        module, "reset_running_stats"
    ):
        return lambda: None
    return getattr(module, "reset_parameters", None)
