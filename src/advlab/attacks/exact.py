"""The closed-form worst case of a linear model."""

import warnings

import torch

from ..core.randomness import Rng
from ..threats import Threat
from .base import Attack, BestSoFar


class Exact(Attack):
    """The worst case of any loss that sees its input through one linear score, w'x + b.

    Every such loss (squared, logistic, hinge, ...) is largest at one end of the scores that the set
    allows: at threat.maximiser(w) or at threat.maximiser(-w). Both are tried. The gradients there
    must be parallel to w; if they are not the loss is no function of one score, and the result,
    still a point of the set, is only a lower bound: that is said in a warning.

    Example:
        >>> from advlab.attacks import Exact
        >>> from advlab.losses import ModelLoss, squared
        >>> from advlab.threats import Ball
        >>> loss = ModelLoss(lambda x: x @ w, y, squared)
        >>> worst = Exact()(loss, x, Ball(norm="linf", radius=0.1), rng=rng).loss
    """

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        direction = best.clean_gradient
        flat = (direction.flatten(1) == 0).all(1)
        if bool(flat.any()):
            # A zero residual hides the direction; any other point of the set shows it.
            elsewhere = best.gradient(threat.sample(best.x, rng=rng))
            keep = flat.reshape(-1, *[1] * (direction.ndim - 1))
            direction = torch.where(keep, elsewhere, direction)
        for end in (direction, -direction):
            grad = best.gradient(threat.maximiser(end, best.x))
            if not bool(_parallel(grad.flatten(1), direction.flatten(1)).all()):
                warnings.warn(
                    "Exact: this loss is not a function of one linear score of its input, so the "
                    "result is only a lower bound; use PGD or AutoAttack",
                    stacklevel=3,
                )
                return


def _parallel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = (v / v.norm(dim=1, keepdim=True).clamp(min=torch.finfo(v.dtype).tiny) for v in (a, b))
    turned = 1 - (a * b).sum(1).abs()
    zero = (a == 0).all(1) | (b == 0).all(1)
    return zero | (turned < 1e3 * torch.finfo(a.dtype).eps)
