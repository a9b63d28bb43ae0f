"""Maps into the threat set that do not look for the worst: legal attacks of the convergence theory.

Its theorems hold for any map A(W, x) into the set of x: not optimal, not continuous in W, random or
not (convergence, section 3). These test that.
"""

from typing import ClassVar

import torch
from pydantic import NonNegativeInt, PositiveFloat, SerializeAsAny

from ..core.randomness import Rng, generator, normal
from ..threats import Threat
from .base import Attack, BestSoFar, Signed
from .pgd import PGD


class Fixed(Attack):
    """A copy of the inputs moved once and for all: as far as the set goes in one direction.

    Args:
        seed: Names the direction, the same for every input.

    Example:
        >>> from advlab.attacks import Fixed
        >>> from advlab.threats import Cap
        >>> moved = Fixed(seed=1)(loss, x, Cap(radius=0.1), rng=rng).x
    """

    ascends: ClassVar[bool] = False
    seed: NonNegativeInt = 0

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        direction = normal(best.x[0].flatten(), generator("fixed", self.seed))
        best.settle(threat.maximiser(direction.reshape(best.x[0].shape).expand_as(best.x), best.x))


class Anti(Attack):
    """The opposite of an attack: it searches the set for the smallest loss.

    Args:
        inner: The attack that is turned round.

    Example:
        >>> from advlab.attacks import PGD, Anti
        >>> easiest = Anti(inner=PGD(steps=50))(loss, x, ball, rng=rng).x
    """

    ascends: ClassVar[bool] = False
    inner: SerializeAsAny[Attack] = PGD()

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        _signed(best, -torch.ones_like(best.x.flatten(1)[:, 0]), self.inner, threat, rng)


class Switch(Attack):
    """Climbs or descends by the parity of floor(clean loss / grain), row by row.

    As the weights move it jumps from the worst point to the best and back: not continuous in them.

    Args:
        grain: The width of loss after which it turns round.
        inner: The attack that is sent up or down.

    Example:
        >>> from advlab.attacks import Switch
        >>> from advlab.threats import Cap
        >>> found = Switch(grain=1e-3)(loss, x, Cap(radius=0.1), rng=rng)
    """

    ascends: ClassVar[bool] = False
    grain: PositiveFloat = 1e-4
    inner: SerializeAsAny[Attack] = PGD()

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        parity = (best.value(best.x) / self.grain).floor() % 2
        _signed(best, 1 - 2 * parity, self.inner, threat, rng)


def _signed(best: BestSoFar, sign: torch.Tensor, inner: Attack, threat: Threat, rng: Rng) -> None:
    signed = BestSoFar(Signed(best.loss, sign), best.x)
    inner.search(signed, threat, rng)
    best.settle(signed.worst.x)
