"""The surrogate attack A_{eps,xi}: an attack shrunk where the gradient is small."""

import torch
from pydantic import NonNegativeFloat, SerializeAsAny

from ..core.randomness import Rng
from ..threats import Threat
from ..threats.base import per_example
from .base import Attack, BestSoFar
from .fgm import FGM


class Surrogate(Attack):
    """x + shrink * (inner(x) - x), with g the gradient of the loss at the clean input:

    l2    shrink   = |g| / sqrt(|g|^2 + xi^2)        (generalization, section 2.1)
    linf  shrink_i = |g_i| / (|g_i| + xi)            (generalization, section 4)

    Other products of intervals shrink like linf, other sets like l2 with their dual norm of g.

    Args:
        xi: How large a gradient must be for a whole move; 0 gives the inner attack itself.
        inner: The attack whose moves are shrunk.
        keep_worst: Whether rows that the move would help stay where they are, so that no loss is
            below the clean one, as with other attacks. False is the map as the paper defines it,
            which takes one evaluation less: the move is the answer, whatever its loss.

    Example:
        >>> from advlab.attacks import PGD, Surrogate
        >>> from advlab.losses import ModelLoss, squared
        >>> from advlab.threats import Ball
        >>> attack = Surrogate(xi=0.5, inner=PGD(random_start=False))
        >>> found = attack(ModelLoss(model, y, squared), x, Ball(norm="l2", radius=0.1), rng=rng)
    """

    xi: NonNegativeFloat = 0.1
    inner: SerializeAsAny[Attack] = FGM()
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
        nested = best.nested(remembers=not self.inner.settles)
        self.inner.search(nested, threat, rng)
        if self.xi == 0:
            shrink = 1.0
        elif threat.ends(best.x) is not None:
            shrink = grad.abs() / (grad.abs() + self.xi)
        else:
            size = threat.dual_norm(grad)
            shrink = per_example(size / (size**2 + self.xi**2).sqrt(), grad)
        moved = torch.lerp(best.x, nested.points, shrink)
        if not threat.convex:
            moved = threat.project(moved, best.x)
        if self.keep_worst:
            best.value(moved)
        else:
            best.settle(moved)
