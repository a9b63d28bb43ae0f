"""Two baselines without gradients: the clean inputs, and random draws."""

from pydantic import PositiveInt

from ..core.randomness import Rng
from ..threats import Threat
from .base import Attack, BestSoFar


class Identity(Attack):
    """No attack: the clean inputs and their loss.

    Example:
        >>> from advlab.attacks import Identity
        >>> from advlab.losses import ModelLoss, cross_entropy
        >>> clean = Identity()(ModelLoss(model, y, cross_entropy), x, ball, rng=rng).loss
    """

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        """Nothing: the clean inputs are evaluated in any case."""


class Random(Attack):
    """The worst of some uniform draws from the threat set: the baseline any attack must beat.

    Args:
        samples: How many draws per example.

    Example:
        >>> from advlab.attacks import Random
        >>> from advlab.losses import ModelLoss, cross_entropy
        >>> found = Random(samples=100)(ModelLoss(model, y, cross_entropy), x, ball, rng=rng)
    """

    samples: PositiveInt = 10

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        best.note_clean()
        for _ in range(self.samples):
            best.value(threat.sample(best.x, rng=rng))
