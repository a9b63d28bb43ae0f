"""Which rows each step sees."""

import torch
from torch import Tensor

from ..errors import AdvlabError
from ..randomness import Rng


class Batches:
    """All rows at every step, or shuffled mini-batches, a new order each epoch."""

    def __init__(self, rows: int, size: int | None, replicates: int):
        if size is not None and (size < 1 or replicates > 1):
            raise AdvlabError(
                "mini-batches need a positive size and one model",
                f"batch {size} with {replicates} replicates",
                "train a stack with whole batches",
            )
        self.rows = rows
        self.size = size if size is not None and size < rows else None
        self.order = torch.empty(0, dtype=torch.long)
        self.position = 0

    def next(self, x: Tensor, y: Tensor, rng: Rng) -> tuple[Tensor, Tensor]:
        if self.size is None:
            return x, y
        if self.position >= len(self.order):
            one = rng if isinstance(rng, torch.Generator) else rng[0]
            self.order, self.position = torch.randperm(self.rows, generator=one), 0
        take = self.order[self.position : self.position + self.size]
        self.position += self.size
        return x[take], y[take]
