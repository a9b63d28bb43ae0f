"""Maps into the threat set that do not look for the worst: legal attacks of the convergence theory.

Its theorems hold for any map A(W, x) into the set of x: not optimal, not continuous in W, random or
not (convergence, section 3). These test that.
"""

from typing import ClassVar

import torch
from pydantic import NonNegativeInt, PositiveFloat, SerializeAsAny

from ..core.randomness import Rng, generator, normal
from ..threats import Threat
from .base import Attack, Scout, Signed
from .pgd import PGD


class Fixed(Attack):
    """A copy of the inputs moved once and for all: as far as the set goes in one direction."""

    ascends: ClassVar[bool] = False
    seed: NonNegativeInt = 0
    """Names the direction, the same for every input."""

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        direction = normal(scout.x[0].flatten(), generator("fixed", self.seed))
        scout.settle(
            threat.maximiser(direction.reshape(scout.x[0].shape).expand_as(scout.x), scout.x)
        )


class Anti(Attack):
    """The opposite of an attack: it searches the set for the smallest loss."""

    ascends: ClassVar[bool] = False
    inner: SerializeAsAny[Attack] = PGD()

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        _signed(scout, -torch.ones_like(scout.x.flatten(1)[:, 0]), self.inner, threat, rng)


class Switch(Attack):
    """Climbs or descends by the parity of floor(clean loss / grain), row by row.

    As the weights move it jumps from the worst point to the best and back: not continuous in them.
    """

    ascends: ClassVar[bool] = False
    grain: PositiveFloat = 1e-4
    inner: SerializeAsAny[Attack] = PGD()

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        parity = (scout.value(scout.x) / self.grain).floor() % 2
        _signed(scout, 1 - 2 * parity, self.inner, threat, rng)


def _signed(scout: Scout, sign: torch.Tensor, inner: Attack, threat: Threat, rng: Rng) -> None:
    beside = Scout(Signed(scout.loss, sign), scout.x)
    inner.search(beside, threat, rng)
    scout.settle(beside.worst.x)
