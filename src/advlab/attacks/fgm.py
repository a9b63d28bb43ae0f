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
        cutoff: Rows whose gradient is shorter than this stay where they are; lengths are in the
            norm that is dual to the threat set's.
        keep_worst: Whether rows that the jump would help stay where they are, so that no loss is
            below the clean one, as with other attacks. False is the method as papers define it: the
            jump is the answer, whatever its loss.

    Example:
        >>> from advlab.attacks import FGM
        >>> from advlab.losses import ModelLoss, cross_entropy
        >>> found = FGM()(ModelLoss(model, y, cross_entropy), x, ball, rng=rng)
    """

    cutoff: NonNegativeFloat = 0.0
    keep_worst: bool = True

    @property
    def ascends(self) -> bool:  # type: ignore[override]
        """Without `keep_worst` a loss may end below the clean one."""
        return self.keep_worst

    @property
    def settles(self) -> bool:  # type: ignore[override]
        return not self.keep_worst

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        grad = best.clean_gradient
        if self.cutoff > 0:
            grad = grad * per_example(threat.dual_norm(grad) >= self.cutoff, grad)
        jump = threat.maximiser(grad, best.x)
        if self.keep_worst:
            best.value(jump)
        else:
            best.settle(jump)
