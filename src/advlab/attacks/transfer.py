"""Transfer: attack another model, and show the result to this one."""

from typing import ClassVar

from pydantic import ConfigDict, SerializeAsAny, field_serializer
from torch import nn

from ..core.errors import AdvlabError
from ..core.fingerprint import digest
from ..core.randomness import Rng
from ..threats import Threat
from .base import Attack, BestSoFar
from .pgd import PGD


class Transfer(Attack):
    """What `inner` finds on `source`: it never sees the model under attack.

    In settings and their keys the source stands as a digest of its weights.

    Args:
        source: The model that is attacked instead.
        inner: The attack on it.

    Example:
        >>> from advlab.attacks import Transfer
        >>> from advlab.losses import ModelLoss, cross_entropy
        >>> found = Transfer(source=other)(ModelLoss(model, y, cross_entropy), x, ball, rng=rng)
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    ascends: ClassVar[bool] = False
    source: nn.Module
    inner: SerializeAsAny[Attack] = PGD()

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        under = getattr(best.loss, "under", None)
        if under is None:
            raise AdvlabError("a ModelLoss, whose model can be exchanged", type(best.loss).__name__)
        elsewhere = BestSoFar(under(self.source), best.x)
        self.inner.search(elsewhere, threat, rng)
        best.settle(elsewhere.worst.x)

    @field_serializer("source")
    def _digest(self, source: nn.Module) -> str:
        return digest(source)
