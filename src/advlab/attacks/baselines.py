"""The two attacks that look at no gradient: stay, or guess."""

from pydantic import PositiveInt

from ..core.randomness import Rng
from ..threats import Threat
from .base import Attack, Scout


class Identity(Attack):
    """No attack: the clean inputs and their loss."""

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        """Nothing to look for: the scout falls back on the clean inputs."""


class Random(Attack):
    """The worst of some uniform draws from the threat set: the baseline any attack must beat."""

    samples: PositiveInt = 10

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        scout.start()
        for _ in range(self.samples):
            scout.value(threat.sample(scout.x, rng=rng))
