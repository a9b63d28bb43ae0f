"""The surrogate attack A_{eps,xi}: an attack shrunk where the gradient is small."""

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

    Example:
        >>> attack = Surrogate(xi=0.5, inner=PGD(random_start=False))
        >>> found = attack(ModelLoss(model, y, squared), x, Ball(norm="l2", radius=0.1), rng=rng)
    """

    xi: NonNegativeFloat = 0.1
    inner: SerializeAsAny[Attack] = FGM()

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        grad = best.clean_gradient
        nested = best.nested()
        self.inner.search(nested, threat, rng)
        if self.xi == 0:
            shrink = 1.0
        elif threat.ends(best.x) is not None:
            shrink = grad.abs() / (grad.abs() + self.xi)
        else:
            size = threat.dual_norm(grad)
            shrink = per_example(size / (size**2 + self.xi**2).sqrt(), grad)
        moved = best.x + shrink * (nested.points - best.x)
        best.value(moved if threat.convex else threat.project(moved, best.x))
