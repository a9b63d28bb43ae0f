"""Memory that one step frees is kept for the next, which needs as much."""

import ctypes
import sys

import torch
from torch import Tensor

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of glibc's malloc.h."""
SMALL, TOGETHER = 1024, 512
"""Up to so many numbers are a small piece, and so many pieces share one block."""


def keep_freed_memory() -> None:
    """Have glibc keep freed memory in this process; nothing where there is another C library.

    Otherwise it may give the activations of a step back to the system and fault them in anew at the
    next one, which took up to a quarter of the CPU time of small networks. What is kept is at most
    what was in use at once.

    Example:
        from advlab.training.freed_memory import keep_freed_memory
        keep_freed_memory()
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 2**25)  # the most that it takes
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


class Room:
    """Copies of small tensors, many in one block made beforehand.

    A small piece kept from each step, among large ones that are freed, cuts the heap into bits and
    lets it grow from step to step: by 18 MB in a stack of ten networks of width 512.

    Example:
        import torch
        from advlab.training.freed_memory import Room
        room = Room()
        kept = [room.keep(torch.rand(3)) for step in range(10)]
    """

    def __init__(self) -> None:
        self._block, self._used = torch.empty(0), 0

    def keep(self, value: Tensor) -> Tensor:
        """A copy; of its own where the value is large.

        Args:
            value: a tensor on the CPU.
        """
        if value.numel() > SMALL:
            return value.clone()
        fits = self._block.shape[1:] == value.shape and self._block.dtype == value.dtype
        if not fits or self._used == len(self._block):
            self._block, self._used = value.new_empty(TOGETHER, *value.shape), 0
        kept = self._block[self._used].copy_(value)
        self._used += 1
        return kept
