"""Layers of a network by name, and what passes through them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor, nn

from ...core import inputs
from ...core.errors import AdvlabError


def layer_of(model: nn.Module, name: str) -> nn.Module:
    """The layer of a name, or an error that lists what there is."""
    modules = dict(model.named_modules())
    if name not in modules:
        known = ", ".join(repr(one) for one in modules if one)
        raise AdvlabError("the name of a layer", repr(name), f"there are {known:.300}")
    return modules[name]


@contextmanager
def watching(layers: Mapping[str, nn.Module], see: Callable[[str, Tensor], None]) -> Iterator[None]:
    """`see(name, output)` at every call of the layers, before anything can edit the output."""

    def hook(name: str) -> Callable[..., None]:
        return lambda module, args, output: see(name, inputs.scores(output))

    handles = [one.register_forward_hook(hook(name)) for name, one in layers.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
