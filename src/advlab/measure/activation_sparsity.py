"""Which share of a network's activations is not zero, layer by layer.

Figure 5 of the purification paper: fewer neurons of each layer are active as training goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..core.checks import scalar
from ..core.errors import AdvlabError
from ..losses import evaluating
from ._parts.batches import input_batches
from ._parts.layers import layer_of, watching

RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.Threshold, nn.Hardswish, nn.Softshrink, nn.Hardshrink)
"""Activations that are exactly zero on some interval."""


@dataclass(frozen=True)
class LayerActivity:
    """How often the units of one layer are active, on the CPU."""

    units: Float[Tensor, " units"]
    """For each channel, the share of examples (and places of an image) at which it is active."""

    @property
    def share(self) -> float:
        """The share of all activations that are not zero."""
        return float(self.units.mean())

    @property
    def dead(self) -> float:
        """The share of channels that are active for no example."""
        return float((self.units == 0).double().mean())


@torch.no_grad()
def activation_sparsity(
    model: nn.Module,
    x: Any,
    layers: Sequence[str] | None = None,
    *,
    tolerance: float = 0.0,
    batch: int | None = 256,
) -> dict[str, LayerActivity]:
    """The share of active units of each layer.

    Args:
        model: the network, run in eval mode and left as it was.
        x: inputs, one row per example.
        layers: names of layers, as `named_modules` gives them; by default every `nn.ReLU` and its
            kin. ReLUs that `forward` calls as functions have no name: name the layer after which
            they come, and what is counted is its output.
        tolerance: an activation is active if larger than this in size.
        batch: rows at a time; None for all at once.

    Returns:
        By name, in the order of the network. A layer that runs more than once counts every time.

    Example:
        from advlab.measure.activation_sparsity import activation_sparsity
        for name, layer in activation_sparsity(model, x).items():
            print(name, layer.share, layer.dead)
    """
    scalar("tolerance", tolerance)
    if layers is None:
        chosen = {name: one for name, one in model.named_modules() if isinstance(one, RECTIFIERS)}
    else:
        chosen = {name: layer_of(model, name) for name in layers}
    if not chosen:
        raise AdvlabError("a network with ReLU layers", "none", "name layers=[...] yourself")
    active: dict[str, Tensor] = {}
    counted = dict.fromkeys(chosen, 0)

    def see(name: str, output: Tensor) -> None:
        # (rows, channels, ...): all but the channels are averaged over.
        places = output.flatten(2) if output.ndim > 2 else output[..., None]
        active[name] = active.get(name, 0) + (places.abs() > tolerance).sum((0, 2))
        counted[name] += len(places) * places.shape[2]

    with evaluating(model), watching(chosen, see):
        for some in input_batches(model, x, batch):
            model(some)
    if unused := [name for name in chosen if name not in active]:
        raise AdvlabError("layers that the network runs", ", ".join(unused))
    return {name: LayerActivity(active[name].cpu().double() / counted[name]) for name in chosen}
