"""A step of training done again from copies: its forward pass, and the update that was declared."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..core import inputs
from ..models import Stack
from ..training import Projection
from ..training.global_randomness import global_randomness, set_global_randomness
from ..training.run import OptimizerFactory, trained_weights

Arrays = dict[str, Tensor]
"""Trained weights, or something of their shapes, by name."""


class ForwardPass:
    """The last forward pass of a model in train mode, which can be run again at other weights.

    Dropout draws the same mask again, BatchNorm has the statistics of the same batch, and neither
    the model's buffers nor anybody's random numbers change by it.

    Args:
        model: noted from `attach` to `detach`, before each pass in train mode with gradients.
    """

    def __init__(self, model: nn.Module):
        self.model = model
        self._buffers: Arrays | None = None
        self._random: dict | None = None
        self._handle = None
        self._own = False

    def attach(self) -> None:
        self.detach()
        self._handle = self.model.register_forward_pre_hook(self._note)

    def detach(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def _note(self, module: nn.Module, args: object) -> None:
        if module.training and torch.is_grad_enabled() and not self._own:
            self._buffers = {name: b.detach().clone() for name, b in module.named_buffers()}
            self._random = global_randomness()

    def outputs(self, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """The scores at these weights and inputs; where no pass was noted, as the model is now."""
        buffers = self._buffers
        if buffers is None:
            buffers = dict(self.model.named_buffers())
        state = {**weights, **{name: value.clone() for name, value in buffers.items()}}
        state |= {other: state[name] for other, name in _ties(self.model).items() if name in state}
        with self._again():
            return inputs.scores(functional_call(self.model, state, (x,), tie_weights=False))

    @contextmanager
    def _again(self) -> Iterator[None]:
        present, self._own = global_randomness(), True
        if self._random is not None:
            set_global_randomness(self._random)
        try:
            yield
        finally:
            self._own = False
            set_global_randomness(present)


class DeclaredUpdate:
    """What a step should do: W <- P(W - s), s the step of an optimiser along the gradient.

    Computed in float64 whatever the run's type, by an optimiser of its own, which is shown the
    run's weights, gradients and rates: what the run's optimiser does plays no part in it.

    Args:
        model: whose weights at this moment are the start that the projection is about.
        optimizer: a class of `torch.optim` or a partial of it; None is gradient descent, s = lr g.
        projection: the set P projects on; None is no projection.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: OptimizerFactory | None = None,
        projection: Projection | None = None,
    ):
        self.projection, self._alone = projection, not isinstance(model, Stack)
        self.start = weights_of(model)
        self._copies = {name: nn.Parameter(wide(w).clone()) for name, w in self.start.items()}
        self._optimizer = (
            None if optimizer is None else optimizer(list(self._copies.values()), lr=1.0)
        )

    @property
    def plain(self) -> bool:
        """Whether it is gradient descent."""
        return self._optimizer is None

    def step(self, weights: Arrays, grads: Sequence[Tensor], lr: float) -> Arrays:
        """s, in float64."""
        if self._optimizer is None:
            return {name: lr * wide(g) for name, g in zip(weights, grads, strict=True)}
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        with torch.no_grad():
            for copy, w, grad in zip(self._copies.values(), weights.values(), grads, strict=True):
                copy.copy_(w)
                copy.grad = wide(grad)
        self._optimizer.step()
        return {name: wide(w) - self._copies[name].detach() for name, w in weights.items()}

    def projected(self, weights: Arrays) -> Arrays:
        """P of weights in float64, which stay as they are."""
        if self.projection is None:
            return weights
        moved = {name: w.clone() for name, w in weights.items()}
        axis = (lambda w: w[None]) if self._alone else (lambda w: w)
        start = [axis(wide(w)) for w in self.start.values()]
        self.projection.apply([axis(w) for w in moved.values()], start)
        return moved

    def state_dict(self) -> dict:
        return {
            "start": self.start,
            "optimizer": None if self._optimizer is None else self._optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict) -> None:
        self.start = dict(state["start"])
        if self._optimizer is not None:
            self._optimizer.load_state_dict(state["optimizer"])


def _ties(model: nn.Module) -> dict[str, str]:
    """Other places of a weight or buffer that other modules share, each with its first name.

    A module that is used twice has one place. (torch's own ties take it for two, and leave the
    model without its weight afterwards.)
    """
    first: dict[int, str] = {}
    places: set[tuple[int, str]] = set()
    found = {}
    for prefix, module in model.named_modules(remove_duplicate=False):
        for attribute, value in {**module._parameters, **module._buffers}.items():
            if value is None or (id(module), attribute) in places:
                continue
            places.add((id(module), attribute))
            name = f"{prefix}.{attribute}" if prefix else attribute
            if id(value) in first:
                found[name] = first[id(value)]
            first.setdefault(id(value), name)
    return found


def wide(values: Tensor) -> Tensor:
    """In float64 and on the CPU, as not every device has it."""
    return values.cpu().double()


def weights_of(model: nn.Module) -> Arrays:
    """A copy of the weights that train; weights that are tied are there once."""
    names, weights = trained_weights(model)
    return {name: w.detach().clone() for name, w in zip(names, weights, strict=True)}
