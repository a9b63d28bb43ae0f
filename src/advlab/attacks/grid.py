"""Exhaustive search in up to three dimensions: the answer that other attacks are held against."""

import torch
from pydantic import PositiveInt

from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..threats import Threat
from ..threats.base import per_example
from .base import Attack, BestSoFar


class Grid(Attack):
    """Every point of a grid over the threat set, then ascent from the best of them.

    On the arc of a circle (a Cap, two inputs) this is the maximum to rounding where the loss has no
    second peak between two neighbours of the grid; in three dimensions it is dense.

    Args:
        points: About how many points per row; the rim of a cap has its own.
        refinements: Steps of the ascent.

    Example:
        >>> from advlab.attacks import Grid
        >>> from advlab.threats import Ball
        >>> truth = Grid(points=10_000)(loss, x, Ball(norm="l2", radius=0.5), rng=rng).loss
    """

    points: PositiveInt = 1000
    refinements: PositiveInt = 60

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        d = best.x[0].numel()
        if d > 3:
            raise AdvlabError("inputs of at most three numbers for a grid", d, "use PGD")
        best.note_clean()
        flat = best.x.flatten(1)
        for point in threat.grid(flat, self.points):
            best.value(point.reshape(best.x.shape))
        self._refine(best, threat)

    def _refine(self, best: BestSoFar, threat: Threat) -> None:
        """Steps that grow where they help and shrink where they do not, row by row."""
        step = torch.full_like(best.x.flatten(1)[:, 0], threat.radius / 10)
        for _ in range(self.refinements):
            worst = best.worst
            move = per_example(step, worst.x) * threat.steepest(best.gradient(worst.x))
            better = best.value(threat.project(worst.x + move, best.x)) > worst.loss
            step = torch.where(better, 2 * step, step / 4)
