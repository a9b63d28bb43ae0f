"""The surrogate attack A_{eps,xi}: an attack shrunk where the gradient is small."""

from pydantic import NonNegativeFloat, SerializeAsAny

from ..core.randomness import Rng
from ..threats import Ball, Threat
from ..threats.base import per_example
from .base import Attack, Scout
from .fgm import FGM


class Surrogate(Attack):
    """x + shrink * (inner(x) - x), with g the gradient of the loss at the clean input:

    l2    shrink   = |g| / sqrt(|g|^2 + xi^2)        (generalization, section 2.1)
    linf  shrink_i = |g_i| / (|g_i| + xi)            (generalization, section 4)

    Other sets shrink like l2 with their dual norm of g. xi = 0 gives the inner attack itself.
    """

    xi: NonNegativeFloat = 0.1
    inner: SerializeAsAny[Attack] = FGM()

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        grad = scout.clean_gradient
        nested = scout.nested()
        self.inner.search(nested, threat, rng)
        if self.xi == 0:
            shrink = 1.0
        elif isinstance(threat, Ball) and threat.norm == "linf":
            shrink = grad.abs() / (grad.abs() + self.xi)
        else:
            size = (
                threat.dual_norm(grad) if isinstance(threat, Ball) else grad.flatten(1).norm(dim=1)
            )
            shrink = per_example(size / (size**2 + self.xi**2).sqrt(), grad)
        moved = scout.x + shrink * (nested.worst.x - scout.x)
        scout.value(moved if isinstance(threat, Ball) else threat.project(moved, scout.x))
