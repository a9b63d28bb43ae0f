"""Projected gradient ascent."""

from torch import Tensor

from ._engine.gradient_ascent import Walk


class PGD(Walk):
    """Steepest steps, each projected back on the threat set, from one or several starts."""

    def mixed(self, memory: Tensor | None, grad: Tensor) -> Tensor:
        return grad
