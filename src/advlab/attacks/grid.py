"""Exhaustive search in up to three dimensions: the answer that other attacks are held against."""

import math

import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..threats import Cap, Threat
from ..threats.base import per_example, unit_l2
from .base import Attack, Scout


class Grid(Attack):
    """Every point of a grid over the threat set, then ascent from the best of them.

    On the arc of a circle (a Cap, two inputs) this is the maximum to rounding where the loss has no
    second peak between two neighbours of the grid; in three dimensions it is dense.
    """

    points: PositiveInt = 1000
    """About how many a row; the rim has its own."""
    refinements: PositiveInt = 60

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        d = scout.x[0].numel()
        if d > 3:
            raise AdvlabError("inputs of at most three numbers for a grid", d, "use PGD")
        scout.start()
        flat = scout.x.flatten(1)
        for point in _grid(flat, threat, self.points):
            scout.value(point.reshape(scout.x.shape))
        self._refine(scout, threat)

    def _refine(self, scout: Scout, threat: Threat) -> None:
        """Steps that grow where they help and shrink where they do not, row by row."""
        step = torch.full_like(scout.x.flatten(1)[:, 0], threat.radius / 10)
        for _ in range(self.refinements):
            best = scout.worst
            move = per_example(step, best.x) * threat.steepest(scout.gradient(best.x))
            better = scout.value(threat.project(best.x + move, scout.x)) > best.loss
            step = torch.where(better, 2 * step, step / 4)


def _grid(x: Float[Tensor, "batch d"], threat: Threat, points: int):
    if isinstance(threat, Cap):
        yield from _cap(x, threat.radius, points)
        return
    d = x.shape[1]
    axis = torch.linspace(-1, 1, max(2, math.ceil(points ** (1 / d))), dtype=x.dtype)
    for offset in torch.cartesian_prod(*[axis] * d).reshape(-1, d):
        yield threat.project(x + threat.radius * offset.to(x), x)


def _cap(x: Float[Tensor, "batch d"], radius: float, points: int):
    """Evenly spread over the cap of each center, and along its rim."""
    edge = 2 * math.asin(radius / 2)
    if x.shape[1] == 1:
        return
    if x.shape[1] == 2:
        across = torch.stack([-x[:, 1], x[:, 0]], 1)
        for angle in torch.linspace(-edge, edge, points).tolist():
            yield math.cos(angle) * x + math.sin(angle) * across
        return
    first = torch.zeros_like(x).scatter(1, x.abs().argmin(1, keepdim=True), 1.0)
    first = unit_l2(torch.linalg.cross(x, first))
    second = torch.linalg.cross(x, first)
    golden, rim = math.pi * (3 - math.sqrt(5)), 4 * math.ceil(math.sqrt(points))
    # The area of a cap is proportional to its depth, 1 - cos: equal steps of depth, golden turns.
    inner = [(math.acos(1 - (k + 0.5) / points * radius**2 / 2), k * golden) for k in range(points)]
    for angle, turn in [*inner, *((edge, 2 * math.pi * k / rim) for k in range(rim))]:
        side = math.cos(turn) * first + math.sin(turn) * second
        yield unit_l2(math.cos(angle) * x + math.sin(angle) * side)
