"""A limit in time for work that consists of passes through a model."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, jit, nn


class OutOfTime(Exception):
    """Raised before a pass through the model for which there is no time."""


@contextmanager
def time_limit(model: Callable[[Tensor], Tensor], deadline: float | None) -> Iterator[None]:
    """Inside, the first pass through the model after the deadline raises `OutOfTime`.

    Functions and scripted modules cannot be watched: whoever calls them looks at the clock between
    larger pieces of work.

    Args:
        model: the model.
        deadline: when to stop, by the clock `time.monotonic`; None for never.
    """
    if deadline is None or not isinstance(model, nn.Module) or isinstance(model, jit.ScriptModule):
        yield
        return
    hook = model.register_forward_pre_hook(_Watch(deadline))
    try:
        yield
    finally:
        hook.remove()


@dataclass(frozen=True)
class _Watch:
    """A hook that looks at the clock."""

    deadline: float

    def __call__(self, module: nn.Module, inputs: object) -> None:
        if time.monotonic() >= self.deadline:
            raise OutOfTime


def is_over(deadline: float | None) -> bool:
    """Whether the deadline has passed; None never does.

    Args:
        deadline: by the clock `time.monotonic`.
    """
    return deadline is not None and time.monotonic() >= deadline
