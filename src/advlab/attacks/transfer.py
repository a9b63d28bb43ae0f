"""Transfer: attack another model, and show the result to this one."""

from typing import ClassVar

from pydantic import ConfigDict, SerializeAsAny, field_serializer
from torch import nn

from ..core.errors import AdvlabError
from ..core.fingerprint import digest
from ..core.randomness import Rng
from ..threats import Threat
from .base import Attack, Scout
from .pgd import PGD


class Transfer(Attack):
    """What `inner` finds on `source`: it never sees the model under attack.

    In settings and their keys the source stands as a digest of its weights.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    ascends: ClassVar[bool] = False
    source: nn.Module
    inner: SerializeAsAny[Attack] = PGD()

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        under = getattr(scout.loss, "under", None)
        if under is None:
            raise AdvlabError(
                "a ModelLoss, whose model can be exchanged", type(scout.loss).__name__
            )
        beside = Scout(under(self.source), scout.x)
        self.inner.search(beside, threat, rng)
        scout.settle(beside.worst.x)

    @field_serializer("source")
    def _digest(self, source: nn.Module) -> str:
        return digest(source)
