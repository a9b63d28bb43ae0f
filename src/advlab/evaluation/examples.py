"""Examples ready to be attacked: all in memory, or a stream that is read once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.errors import AdvlabError
from .memory import batch_slices

Rows = tuple[Tensor, Tensor]
"""Inputs and targets of some examples."""


@dataclass
class Examples:
    """Inputs and targets, one row per example.

    Args:
        x: all inputs; of a stream the first ones, which come again in its batches.
        y: their targets.
        rest: the batches of a stream after the first rows; None where x and y are all there is.
        rows: how many rows there are in all, if that is known.
    """

    x: Tensor
    y: Tensor
    rest: Iterator[Rows] | None = None
    rows: int | None = None

    def __post_init__(self):
        if self.rest is None:
            self.rows = len(self.x)

    @property
    def total(self) -> float:
        """How many rows there are; infinite where nobody knows."""
        return float("inf") if self.rows is None else self.rows

    @property
    def streamed(self) -> bool:
        """Whether only some rows are in memory at a time."""
        return self.rest is not None

    def batches(self, size: int) -> Iterator[tuple[int, Tensor, Tensor]]:
        """The first row's place, the inputs and the targets of each batch of this size, once.

        Args:
            size: rows per batch; the last one may be smaller.
        """
        if self.rest is None:
            for rows in batch_slices(len(self.x), size):
                yield rows.start, self.x[rows], self.y[rows]
            return
        start = 0
        for x, y in regrouped(self._stream(), size):
            yield start, x, y
            start += len(x)

    def _stream(self) -> Iterator[Rows]:
        yield self.x, self.y
        yield from self.rest or ()


def regrouped(batches: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The same rows in batches of one size.

    Args:
        batches: inputs and targets in batches of any sizes.
        size: rows per batch; the last one may be smaller.
    """
    held: list[Rows] = []
    for x, y in batches:
        if held and held[0][0].shape[1:] != x.shape[1:]:
            shapes = f"{tuple(held[0][0].shape[1:])} and {tuple(x.shape[1:])}"
            raise AdvlabError("inputs of one shape in all batches", shapes)
        while len(x):
            room = size - sum(len(one) for one, _ in held)
            held.append((x[:room], y[:room]))
            x, y = x[room:], y[room:]
            if sum(len(one) for one, _ in held) == size:
                yield _joined(held)
                held = []
    if held:
        yield _joined(held)


def _joined(held: list[Rows]) -> Rows:
    if len(held) == 1:
        return held[0]
    return torch.cat([x for x, _ in held]), torch.cat([y for _, y in held])
