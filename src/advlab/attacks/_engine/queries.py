"""What an attack without gradients sees: one number per query; broken rows leave."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...core.inputs import call
from ...core.randomness import Rng
from ...losses import ModelLoss, is_error
from ...threats import Threat
from ..base import BestSoFar
from .margins import Decision, classifies, rows_may_leave


class Query:
    """The margin of a classifier, whose rows leave once it is positive; else the loss itself.

    `rows` are those still in play. What was found for all is in `found`, in the shape (batch, d).

    Args:
        best: Remembers the worst, and knows the loss.
        rng: One generator, or one per replicate.
        climb_margin: Whether to climb the margin, where the loss is about classes.
    """

    def __init__(self, best: BestSoFar, rng: Rng, climb_margin: bool):
        self.best, self._rng = best, rng
        best.note_clean()
        loss = best.loss
        if climb_margin and isinstance(loss, ModelLoss):
            with torch.no_grad():
                climb_margin = classifies(loss, loss.outputs(best.x))
        self._decision = Decision(loss) if climb_margin and isinstance(loss, ModelLoss) else None
        self._leaving = self._decision is not None and rows_may_leave(loss, rng)
        self.found = best.x.flatten(1).clone()
        self.rows = torch.arange(len(best.x), device=best.x.device)
        self.drop_broken(self.value(self.found), self.found)

    def value(self, point: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        """What is climbed, at one point for each of the rows in play."""
        shaped = point.reshape(-1, *self.best.x.shape[1:])
        self.best.forwards += len(point)
        with torch.no_grad():
            if self._decision is None:
                value = self.best.checked(call(self.best.loss, shaped))
            else:
                value = self._decision.margin(shaped)
        # Not a number is the worst answer of all.
        return value.nan_to_num(float("inf"), float("inf"), float("-inf"))

    def drop_broken(
        self, value: Tensor, point: Float[Tensor, "rows d"]
    ) -> Int[Tensor, " kept"] | None:
        """Store the points of broken rows and drop them; the places of the rest, if any went."""
        if not self._leaving or not bool(is_error(value).any()):
            return None
        broken = is_error(value)
        gone, kept = broken.nonzero()[:, 0], (~broken).nonzero()[:, 0]
        self.found[self.rows[gone]] = point[gone]
        self.rows = self.rows[kept]
        self._decision = None if self._decision is None else self._decision.rows(kept)
        return kept

    def store(self, point: Float[Tensor, "rows d"]) -> None:
        """These points are what was found for the rows in play."""
        self.found[self.rows] = point

    def draw(self, kind: Callable[[Tensor, Rng], Tensor], *shape: int) -> Tensor:
        """Random numbers for the rows in play.

        A row with a generator of its own gets the same ones whoever has left.
        """
        like = self.best.x
        if isinstance(self._rng, torch.Generator):
            return kind(like.new_empty(len(self.rows), *shape), self._rng)
        return kind(like.new_empty(len(like), *shape), self._rng)[self.rows]


def clip(point: Tensor, threat: Threat) -> Tensor:
    """The point with every coordinate inside the limits of inputs, where there are limits."""
    return point if threat.limits is None else point.clamp(*threat.limits)
