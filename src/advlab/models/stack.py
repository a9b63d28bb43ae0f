"""R replicates of one network as one tensor program."""

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from ..core.errors import AdvlabError


class Stack(nn.Module):
    """R networks of one architecture, each with its own weights, run as one.

    Rows come in R equal blocks: inputs (R * n, ...) give outputs (R * n, ...), and replicate r sees
    its own block only. So attacks and losses treat a stack as they treat one network.
    """

    skeleton: nn.Module
    """The architecture without weights; it only lends its forward."""

    def __init__(self, models: Sequence[nn.Module]):
        super().__init__()
        if not models:
            raise AdvlabError("a stack needs at least one network", "an empty list")
        if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in models[0].modules()):
            raise AdvlabError(
                "networks in a stack must keep no running statistics",
                "a BatchNorm layer",
                "train such networks one by one",
            )
        weights, fixed = stack_module_state(list(models))
        for name, value in weights.items():
            self.register_parameter(_flat(name), nn.Parameter(value.detach()))
        for name, value in fixed.items():
            self.register_buffer(_flat(name), value)
        self._weights, self._fixed = list(weights), list(fixed)
        # Past nn.Module's own bookkeeping: it is no part of the module tree.
        object.__setattr__(self, "skeleton", copy.deepcopy(models[0]).to("meta"))
        self.replicates = len(models)

    @classmethod
    def draw(
        cls, factory: Callable[[torch.Generator], nn.Module], rngs: Sequence[torch.Generator]
    ) -> "Stack":
        """Replicate r is factory(rngs[r]): more replicates change none of the earlier ones."""
        return cls([factory(rng) for rng in rngs])

    def forward(self, x: Tensor) -> Tensor:
        blocks = x.reshape(self.replicates, -1, *x.shape[1:])
        return vmap(self._one)(self._named(), blocks).flatten(0, 1)

    def replicate(self, r: int) -> nn.Module:
        """Network r by itself, with a copy of its weights."""
        alone = copy.deepcopy(self.skeleton)
        state = {name: value[r].detach().clone() for name, value in self._named().items()}
        # assign: the skeleton has the type that the stack was made with, which may have changed.
        alone.load_state_dict(state, assign=True)
        return alone

    def _named(self) -> dict[str, Tensor]:
        return {name: getattr(self, _flat(name)) for name in (*self._weights, *self._fixed)}

    def _one(self, state: dict[str, Tensor], block: Tensor) -> Tensor:
        return functional_call(self.skeleton, state, (block,))


def _flat(name: str) -> str:
    return name.replace(".", "-")
