"""Projected gradient ascent."""

from torch import Tensor

from .walk import Walk


class PGD(Walk):
    """Steepest steps, each projected back on the threat set, from one or several starts."""

    def mixed(self, memory: Tensor | None, grad: Tensor) -> Tensor:
        return grad
