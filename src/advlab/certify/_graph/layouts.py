"""Where the examples are in a tensor: their axis may have moved, or be merged with others."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Axis `axis` of a tensor counts `pre` x examples x `post`.

    A batch is (0, 1, 1). Heads of attention folded into the batch, (n * heads, ...), are
    (0, 1, heads), and tokens before examples, (tokens * n, ...), are (0, tokens, 1).
    """

    axis: int = 0
    pre: int = 1
    post: int = 1

    @property
    def merged(self) -> bool:
        return self.pre * self.post > 1

    def by_example(self, value: Tensor, n: int) -> Tensor:
        """The tensor with examples first, (n, *shape of one example)."""
        if self == BATCH:
            return value
        split = value.unflatten(self.axis, (self.pre, n, self.post)).movedim(self.axis + 1, 0)
        return split.flatten(self.axis + 1, self.axis + 2) if self.merged else (
            split.squeeze(self.axis + 2).squeeze(self.axis + 1)
        )  # fmt: skip

    def as_it_was(self, rows: Tensor) -> Tensor:
        """The inverse of `by_example`."""
        if self == BATCH:
            return rows
        rows = rows if self.merged else rows.unsqueeze(self.axis + 1)
        split = rows.unflatten(self.axis + 1, (self.pre, self.post))
        return split.movedim(0, self.axis + 1).flatten(self.axis, self.axis + 2)

    def dim(self, dim: int, ndim: int) -> int | None:
        """Which axis of `by_example` an axis of the tensor is; None for the one with examples."""
        dim = dim % ndim
        if dim == self.axis:
            return None
        return dim + 1 if dim < self.axis or self.merged else dim


BATCH = Layout()


def moved(marks: Tensor, n: int, size: int) -> tuple[Layout, Tensor] | None:
    """Where the examples are in a tensor that an operation only moved numbers into.

    Args:
        marks: What the operation makes of `numbered(...)`.
        n: The number of examples.
        size: How many numbers an example had before.

    Returns:
        The layout, and for each number of one example the number before that it is; None if
        examples are mixed.
    """
    owner = torch.arange(n, device=marks.device)
    for layout in _layouts(marks, n):
        rows = layout.by_example(marks, n)
        source = rows[0] % size
        shifts = (owner * size).reshape(-1, *[1] * source.ndim)
        if bool((rows == source + shifts).all()):
            return layout, source
    return None


def numbered(layout: Layout, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """0, 1, 2, ... through example after example, laid out as the tensor is."""
    total = len(like) * max(1, torch.Size(shape).numel())
    numbers = torch.arange(total, device=like.device)
    return layout.as_it_was(numbers.reshape(len(like), *shape))


def _layouts(value: Tensor, n: int) -> Iterator[Layout]:
    for axis, length in enumerate(value.shape):
        if length % n == 0 and length:
            rest = length // n
            for pre in (pre for pre in range(1, rest + 1) if rest % pre == 0):
                yield Layout(axis, pre, rest // pre)
