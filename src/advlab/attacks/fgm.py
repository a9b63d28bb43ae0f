"""The fast gradient method: one gradient, one jump."""

from pydantic import NonNegativeFloat

from ..core.randomness import Rng
from ..threats import Threat
from ..threats.base import per_example
from .base import Attack, BestSoFar


class FGM(Attack):
    """Jump to where the loss, linearised at the clean input, is largest in the threat set.

    Without a box this is x + radius * steepest(gradient); with one it is the exact maximiser over
    ball and box together, so it is exact on linear losses either way (Goodfellow et al. 2015).

    Args:
        cutoff: Rows whose gradient is shorter than this (Euclidean) stay where they are.

    Example:
        >>> found = FGM()(ModelLoss(model, y, cross_entropy), x, ball, rng=rng)
    """

    cutoff: NonNegativeFloat = 0.0

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        grad = best.clean_gradient
        if self.cutoff > 0:
            long = grad.flatten(1).norm(dim=1) > self.cutoff
            grad = grad * per_example(long, grad)
        best.value(threat.maximiser(grad, best.x))
