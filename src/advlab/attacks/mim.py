"""The momentum iterative method."""

from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor

from ..threats.base import per_example
from ._engine.gradient_ascent import Walk


class MIM(Walk):
    """Steps along m <- decay * m + g / |g|_1, from the clean input (Dong et al. 2018)."""

    steps: PositiveInt = 10
    random_start: bool = False
    decay: NonNegativeFloat = 1.0

    def mixed(self, memory: Tensor | None, grad: Tensor) -> Tensor:
        size = grad.abs().flatten(1).sum(1)
        unit = grad / per_example(size.where(size > 0, 1.0), grad)
        return unit if memory is None else self.decay * memory + unit
