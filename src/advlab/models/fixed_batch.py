"""Programs that take a fixed number of rows."""

import torch
from torch import Tensor, nn


class FixedBatch(nn.Module):
    """A program that takes exactly `size` rows at a time, as one that takes any number.

    Rows are cut in pieces of that size and the last is filled up with copies, whose answers are
    dropped.

    Args:
        program: the network.
        size: the rows that it takes.
    """

    def __init__(self, program: nn.Module, size: int):
        super().__init__()
        self.program, self.size = program, size

    def forward(self, x: Tensor) -> Tensor:
        missing = -len(x) % self.size
        filled = torch.cat([x, x[:1].expand(missing, *x.shape[1:])]) if missing else x
        return torch.cat([self.program(part) for part in filled.split(self.size)])[: len(x)]
