"""The fast gradient method: one gradient, one jump."""

from pydantic import NonNegativeFloat

from ..core.randomness import Rng
from ..threats import Threat
from ..threats.base import per_example
from .base import Attack, Scout


class FGM(Attack):
    """Jump to where the loss, linearised at the clean input, is largest in the threat set.

    Without a box this is x + radius * steepest(gradient); with one it is the exact maximiser over
    ball and box together, so it is exact on linear losses either way.
    """

    cutoff: NonNegativeFloat = 0.0
    """Rows whose gradient is shorter than this (Euclidean) stay where they are."""

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        grad = scout.clean_gradient
        if self.cutoff > 0:
            long = grad.flatten(1).norm(dim=1) > self.cutoff
            grad = grad * per_example(long, grad)
        scout.value(threat.maximiser(grad, scout.x))
