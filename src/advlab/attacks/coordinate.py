"""Coordinate ascent: one category, one whole step at a time; everything, where that is little."""

import torch
from pydantic import NonNegativeInt, PositiveInt, SerializeAsAny
from torch import Tensor

from ..core.randomness import Rng
from ..threats import Threat
from .base import Attack, BestSoFar
from .pgd import PGD

NUDGE = 1e-3
"""Along the gradient, as a fraction of the radius: where a budget is used up, it says which of the
changes made so far gives way to a new one."""
LENGTHS = (0.3, 0.1, 0.03)
"""Of gradient steps that are tried in every round, for what moves without gaps beside the units."""


class CoordinateAscent(Attack):
    """Change one unit at a time, the best by the loss itself (as HotFlip does, Ebrahimi et al.
    2018), from where another attack ended.

    A set with at most `exhaustive` points is searched through: the answer is then the worst point
    there is. Otherwise `inner` runs first; then every round tries the changes of one unit (another
    category, a whole step up or down, and where a budget is used up, one change for another) that
    the gradient ranks highest, the maximiser of the gradient, and gradient steps of three lengths,
    and goes on from the worst, until a round gains nothing. So it is never below `inner`. In sets
    without units it is `inner` alone.

    Args:
        inner: The attack that it starts from.
        rounds: How many rounds at most.
        tries: Changes of one unit that are tried per round.
        exhaustive: A set of at most so many points is searched through; 0 for none.

    Example:
        >>> from advlab.attacks import CoordinateAscent
        >>> from advlab.losses import ModelLoss, margin
        >>> from advlab.threats import Ball, OneHot, Product
        >>> table = Product([(range(5), Ball("l2", 0.5)), (range(5, 8), OneHot([[0, 1, 2]]))])
        >>> found = CoordinateAscent()(ModelLoss(model, y, margin), x, table, rng=rng)
    """

    inner: SerializeAsAny[Attack] = PGD(restarts=5)
    rounds: PositiveInt = 20
    tries: PositiveInt = 32
    exhaustive: NonNegativeInt = 256

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        best.note_clean()
        every = threat.points(best.x, self.exhaustive)
        if every is not None:
            for point in every:
                best.value(point)
            return
        self.inner.search(best, threat, rng)
        moves = threat.unit_moves(best.x) if threat.gaps else None
        if moves is None:
            return
        for _ in range(self.rounds):
            point, value = best.worst.x, best.worst.loss
            grad = best.gradient(point)
            step = threat.radius * threat.steepest(grad)
            for move in self._ranked(threat, point + NUDGE * step, grad, moves, best.x):
                best.value(threat.project(point + NUDGE * step + move, best.x))
            for length in LENGTHS:
                best.value(threat.project(point + length * step, best.x))
            best.value(threat.maximiser(grad, best.x))
            if not bool((best.worst.loss > value).any()):
                return

    def _ranked(
        self, threat: Threat, point: Tensor, grad: Tensor, moves: Tensor, x: Tensor
    ) -> list[Tensor]:
        """The moves of each row by what its gradient says that they gain, the best first."""
        if len(moves) <= self.tries:
            return [move.expand_as(x) for move in moves]
        gains = torch.stack(
            [(grad * threat.project(point + move, x)).flatten(1).sum(1) for move in moves]
        )
        return list(moves[gains.topk(self.tries, dim=0).indices])
