"""BatchNorm folded into the convolution before it: the same network in eval mode, in less time.

In eval mode BatchNorm is affine, s * z + t per channel with s = gamma / sqrt(var + eps) and
t = beta - s * mean. After a convolution z = W * x + b it is one with the weights s W and the bias
s b + t. An attack asks for gradients in the inputs alone, so these are computed once per attack.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ...core import inputs
from ...losses import evaluating

Names = tuple[str, str]

_PAIRS: WeakKeyDictionary[nn.Module, tuple[Names, ...]] = WeakKeyDictionary()
"""For each network the names of its convolutions and BatchNorms that follow one another."""


class Folded(nn.Module):
    """A network in eval mode without the BatchNorms that could be folded.

    Their convolutions have other weights while it runs, and only then; the network keeps its own.

    Args:
        model: the network.
        pairs: its convolutions, each with the BatchNorm that follows.
    """

    def __init__(self, model: nn.Module, pairs: list[tuple[nn.Conv2d, nn.BatchNorm2d]]):
        super().__init__()
        self.model = model
        # A new module is in train mode; this one has none of its own.
        self.training = model.training
        self._forwards = [(conv, _convolution(conv, norm)) for conv, norm in pairs]
        self._forwards += [(norm, _same) for _, norm in pairs]

    def forward(self, x: Tensor) -> Tensor:
        with self._folded():
            return inputs.scores(self.model(x))

    @contextmanager
    def _folded(self) -> Iterator[None]:
        # Past nn.Module's own setattr, which looks for parameters first: this is done per call.
        for module, forward in self._forwards:
            module.__dict__["forward"] = forward
        try:
            yield
        finally:
            for module, _ in self._forwards:
                module.__dict__.pop("forward", None)


def folded(model: nn.Module, x: Tensor) -> Folded | None:
    """The network with folded BatchNorms and its present weights; None if it has none to fold.

    Which pairs there are is seen in one pass of a few rows, for each network once.

    Args:
        model: the network.
        x: a few inputs.
    """
    if not any(_is_norm(module) for module in model.modules()) or _compiled(model):
        return None
    modules = dict(model.named_modules())
    pairs = [(modules.get(conv), modules.get(norm)) for conv, norm in _names(model, x)]
    kept = [(conv, norm) for conv, norm in pairs if _foldable(conv) and _foldable(norm)]
    return Folded(model, kept) if kept else None  # type: ignore[arg-type]


def _names(model: nn.Module, x: Tensor) -> tuple[Names, ...]:
    if model in _PAIRS:
        return _PAIRS[model]
    calls = RecordedCalls()
    with torch.enable_grad(), evaluating(model), calls.recorded(model):
        outputs = inputs.scores(inputs.call(model, x.detach().clone().requires_grad_()))
    if outputs.grad_fn is None:  # nothing is seen without gradients, which may come back
        return ()
    _PAIRS[model] = calls.pairs(outputs)
    return _PAIRS[model]


class RecordedCalls:
    """What convolutions gave, and what BatchNorms were given, in one pass with gradients."""

    def __init__(self):
        # Tensors and nodes are kept alive, or others in their place could be taken for them.
        self.given: list[tuple[str, Tensor, Any]] = []
        self.taken: list[tuple[str, Tensor, Any]] = []

    @contextmanager
    def recorded(self, model: nn.Module) -> Iterator[None]:
        """Listen to a model."""
        hooks = []
        try:
            for name, module in model.named_modules():
                if _is_convolution(module):
                    hooks.append(module.register_forward_hook(partial(self._leave, name)))
                elif _is_norm(module):
                    hooks.append(module.register_forward_pre_hook(partial(self._enter, name)))
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def pairs(self, outputs: Tensor) -> tuple[Names, ...]:
        """Convolutions whose output goes to a BatchNorm and nowhere else; each is called once."""
        calls = Counter(name for name, _, _ in self.given + self.taken)
        uses = _uses(outputs)
        return tuple(
            (conv, norm)
            for norm, taken, at in self.taken
            for conv, given, node in self.given
            if given is taken and node is at  # an edit in place has another node
            and node is not None and uses[node] == 1 and calls[conv] == calls[norm] == 1
        )  # fmt: skip

    def _leave(self, name: str, module: nn.Module, args: object, output: Tensor) -> None:
        self.given.append((name, output, output.grad_fn))

    def _enter(self, name: str, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        self.taken.extend((name, one, one.grad_fn) for one in args[:1])


def _uses(outputs: Tensor) -> Counter[Any]:
    """How often the result of each node of the autograd graph is used on the way to the outputs."""
    uses: Counter[Any] = Counter()
    left = [outputs.grad_fn]
    while left:
        for node, _ in left.pop().next_functions:  # type: ignore[union-attr]
            if node is not None:
                uses[node] += 1
                if uses[node] == 1:
                    left.append(node)
    return uses


def _is_convolution(module: object) -> bool:
    return type(module) is nn.Conv2d  # and no kind of it, such as one whose weights are computed


def _is_norm(module: object) -> bool:
    return type(module) is nn.BatchNorm2d and module.running_var is not None


def _foldable(module: nn.Module | None) -> bool:
    """Whether nobody else looks at what goes in and out of it, or has changed what it computes."""
    if not (_is_convolution(module) or _is_norm(module)) or module is None:
        return False
    watched = (
        module._forward_hooks,
        module._forward_pre_hooks,
        module._backward_hooks,
        module._backward_pre_hooks,
    )
    return not any(watched) and "forward" not in module.__dict__


def _compiled(model: nn.Module) -> bool:
    """Compiled code would be made anew for each change of a forward."""
    return any(
        isinstance(module, torch.jit.ScriptModule)
        or getattr(module, "_compiled_call_impl", None) is not None
        or type(module).__name__ == "OptimizedModule"
        for module in model.modules()
    )


@torch.no_grad()
def _convolution(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> partial[Tensor]:
    """The convolution followed by the BatchNorm, in one; without gradients in the weights."""
    if norm.running_var is None or norm.running_mean is None:  # never: see `_is_norm`
        raise RuntimeError("BatchNorm without statistics")
    scale = torch.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight
    mean = norm.running_mean if conv.bias is None else norm.running_mean - conv.bias
    shift = -scale * mean if norm.bias is None else norm.bias - scale * mean
    weight = conv.weight * scale.reshape(-1, 1, 1, 1)
    return partial(
        conv._conv_forward,
        weight=weight.contiguous(memory_format=torch.channels_last),
        bias=shift,
    )


def _same(x: Tensor) -> Tensor:
    return x
