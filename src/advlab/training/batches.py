"""Which rows each step sees."""

import torch
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng


class Batches:
    """All rows at every step, or shuffled mini-batches, a new order each epoch.

    The rows of a stack are R equal blocks; each replicate shuffles its own.
    """

    def __init__(self, rows: int, size: int | None, replicates: int):
        if size is not None and size < 1:
            raise AdvlabError("batch must be at least 1, or None for all rows", size)
        self.rows = rows // replicates
        self.size = size if size is not None and size < self.rows else None
        self.first = self.rows * torch.arange(replicates)[:, None]
        self.order = torch.empty(replicates, 0, dtype=torch.long)
        self.position = 0

    def next(self, x: Tensor, y: Tensor, rng: Rng) -> tuple[Tensor, Tensor]:
        if self.size is None:
            return x, y
        if self.position >= self.order.shape[1]:
            self.order, self.position = self._shuffled(rng), 0
        take = self.order[:, self.position : self.position + self.size].flatten()
        self.position += self.size
        return x[take], y[take]

    def _shuffled(self, rng: Rng) -> Tensor:
        one_each = [rng] * len(self.first) if isinstance(rng, torch.Generator) else rng
        orders = [torch.randperm(self.rows, generator=one) for one in one_each]
        return torch.stack(orders) + self.first
