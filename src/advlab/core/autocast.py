"""Mixed precision that a caller has switched on: for the model, not for what is done around it.

Under `torch.autocast` products of matrices lose digits wherever they are computed. A projection
would then leave its ball, and a bound would be no bound. So here the model runs as the caller wants
it, and everything else in the type of its numbers.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

KINDS = ("cpu", "cuda", "mps", "xpu")
Function = TypeVar("Function", bound=Callable[..., Any])


class Autocast(nn.Module):
    """A model, or a loss of inputs, that runs under autocast.

    Args:
        model: the network or function.
        kinds: device types, each with the type that products of matrices are computed in.
    """

    def __init__(self, model: Callable[[Tensor], Any], kinds: tuple[tuple[str, torch.dtype], ...]):
        super().__init__()
        self.model, self.kinds = model, kinds
        # A new module is in train mode; this one has none of its own.
        self.training = getattr(model, "training", False)

    def forward(self, x: Tensor) -> Any:
        with ExitStack() as stack:
            for kind, dtype in self.kinds:
                # Without its cache, which in the caller's own context outlives the weights' moves.
                stack.enter_context(torch.autocast(kind, dtype=dtype, cache_enabled=False))
            return self.model(x)


@contextmanager
def outside_autocast(model: Any) -> Iterator[Any]:
    """Autocast off inside; gives the model as one that switches it on for itself.

    Args:
        model: what runs as the caller wants it; where autocast is off, it is handed on as it is.
    """
    kinds = tuple(
        (kind, torch.get_autocast_dtype(kind)) for kind in KINDS if torch.is_autocast_enabled(kind)
    )
    if not kinds or not callable(model):
        yield model
        return
    with ExitStack() as stack:
        for kind, _ in kinds:
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield Autocast(model, kinds)


def only_for_the_model(function: Function) -> Function:
    """The function with autocast on for its first argument, a model, and off for all else.

    Args:
        function: takes a model first.
    """

    @wraps(function)
    def call(model: Any, *args: Any, **settings: Any) -> Any:
        with outside_autocast(model) as own:
            return function(own, *args, **settings)

    return call  # type: ignore[return-value]
