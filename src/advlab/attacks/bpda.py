"""BPDA: gradients of a differentiable stand-in, points judged by the model itself."""

import torch
from pydantic import SerializeAsAny
from torch import Tensor

from ..core import inputs
from ..core.randomness import Rng
from ..losses import ModelLoss
from ..threats import Threat
from ._engine.stand_ins import StandIn
from .base import Attack, BestSoFar, value_and_gradient
from .pgd import PGD


class BPDA(Attack):
    """Backward pass differentiable approximation (Athalye et al. 2018), without looking inside.

    While the model runs, every rounding, sign, comparison, cast to whole numbers, clamp, argmax and
    saturated softmax, sigmoid or tanh keeps its value and gets the gradient of a smooth stand-in;
    where the model ends in a softmax its logits are climbed. So a model that hides its gradient
    behind one of these is climbed as if it had not. The points are then judged by the model.

    Models that run no torch operations of their own (TorchScript, exported programs, functions of
    labels) gain nothing by it; where a stand-in cannot run the model itself is attacked.

    Args:
        inner: The attack on the stand-in.

    Example:
        >>> from advlab.attacks import BPDA, PGD
        >>> from advlab.losses import ModelLoss, margin
        >>> attack = BPDA(inner=PGD(steps=50, restarts=2, climb="margin"))
        >>> found = attack(ModelLoss(quantised, y, margin), x, ball, rng=0)
        >>> broken = found.loss >= 0
    """

    inner: SerializeAsAny[Attack] = PGD(steps=40, restarts=2, climb="margin")

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        best.note_clean()
        loss = best.loss
        if not isinstance(loss, ModelLoss) or not _runs(loss.under(StandIn(loss.model)), best.x):
            self.inner.search(best, threat, rng)
            return
        climbed = BestSoFar(loss.under(StandIn(loss.model)), best.x)
        self.inner.search(climbed, threat, rng)
        best.forwards += climbed.forwards
        best.backwards += climbed.backwards
        best.value(climbed.worst.x)


def _runs(loss: ModelLoss, x: Tensor) -> bool:
    """Whether a model can be run with stand-ins; one that cannot is climbed as it is."""
    try:
        value_and_gradient(loss.rows(torch.arange(min(2, len(x)))), x[:2])
    except inputs.TROUBLES:
        return False
    return True
