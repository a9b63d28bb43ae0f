"""What an attack without gradients sees: one number a query, and rows that leave when broken."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...core.randomness import Rng
from ...losses import ModelLoss
from ..base import Scout
from .margins import Decision, classifies, rows_may_leave


class Query:
    """The margin of a classifier, whose rows leave once it is positive; else the loss itself.

    `rows` are those still in play. Their points are kept in `found`, in the shape (rows, d).
    """

    def __init__(self, scout: Scout, rng: Rng, climb_margin: bool):
        self.scout, self._rng = scout, rng
        scout.start()
        loss = scout.loss
        if climb_margin and isinstance(loss, ModelLoss):
            with torch.no_grad():
                climb_margin = classifies(loss, loss.outputs(scout.x))
        self._decision = Decision(loss) if climb_margin and isinstance(loss, ModelLoss) else None
        self._leaving = self._decision is not None and rows_may_leave(loss, rng)
        self.found = scout.x.flatten(1).clone()
        self.rows = torch.arange(len(scout.x), device=scout.x.device)
        self.leave(self.value(self.found), self.found)

    def value(self, point: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        """What is climbed, at one point for each of the rows in play."""
        shaped = point.reshape(-1, *self.scout.x.shape[1:])
        self.scout.forwards += len(point)
        with torch.no_grad():
            if self._decision is None:
                return self.scout.checked(self.scout.loss(shaped))
            return self._decision.margin(shaped)

    def leave(self, value: Tensor, point: Float[Tensor, "rows d"]) -> Int[Tensor, " kept"] | None:
        """Keep the points of broken rows and let them go; the places of the others, if any went."""
        if not self._leaving or not bool((value > 0).any()):
            return None
        gone, kept = (value > 0).nonzero()[:, 0], (value <= 0).nonzero()[:, 0]
        self.found[self.rows[gone]] = point[gone]
        self.rows = self.rows[kept]
        self._decision = None if self._decision is None else self._decision.rows(kept)
        return kept

    def keep(self, point: Float[Tensor, "rows d"]) -> None:
        self.found[self.rows] = point

    def draw(self, kind: Callable[[Tensor, Rng], Tensor], *shape: int) -> Tensor:
        """Random numbers for the rows in play.

        A row with a generator of its own gets the same ones whoever has left.
        """
        like = self.scout.x
        if isinstance(self._rng, torch.Generator):
            return kind(like.new_empty(len(self.rows), *shape), self._rng)
        return kind(like.new_empty(len(like), *shape), self._rng)[self.rows]
