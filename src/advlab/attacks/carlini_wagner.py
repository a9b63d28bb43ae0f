"""Carlini and Wagner's l2 attack."""

import math

import torch
from jaxtyping import Bool, Float
from pydantic import PositiveFloat
from torch import Tensor

from ..threats.base import per_example
from ._engine.minimum_norm import NearestSoFar
from ._engine.penalised import Penalised

EDGE = 1 - 1e-4
"""Inputs on the edge of the box start this far out, for at the edge the sine is flat."""


class CarliniWagner(Penalised):
    """min ||move||^2 + c max(0, confidence - margin), by Adam (Carlini & Wagner 2017).

    Inside a box the variable is w with x + move = middle + half sin(w), so that every w is legal;
    without a box it is the point itself. (The paper has tanh for sin. It is so flat at the edges,
    where most numbers of an image lie, that it needs several times as many steps.) The size is in
    l2 whatever the norm in which the nearest point is remembered.

    Args:
        rounds: Values of c that are tried: ten times larger while nothing is found, then halfway.
        steps: Steps of Adam per value of c.
        step_size: Its rate, in units of the distance to the linearised boundary.
        confidence: The margin asked for, in units of the clean one.
        first_weight: The first c.
        refinements: Steps of a last search between the nearest point and the clean input.

    Example:
        >>> from advlab.attacks import CarliniWagner
        >>> from advlab.losses import ModelLoss, margin
        >>> found = CarliniWagner().minimum(ModelLoss(model, y, margin), x, "l2", (0, 1), rng=rng)
    """

    step_size: PositiveFloat = 0.3

    def descend(
        self, nearest: NearestSoFar, rows: Tensor, weight: Float[Tensor, " rows"]
    ) -> Bool[Tensor, " rows"]:
        x, unit = nearest.x[rows], self.boundary_distance(nearest, rows, 2.0)
        variables = _ChangeOfVariables(x, nearest.threat.limits)
        w = variables.start
        rate = self.step_size * unit / math.sqrt(x[0].numel())
        first, second = torch.zeros_like(w), torch.zeros_like(w)
        won = torch.zeros_like(rows, dtype=torch.bool)
        for step in range(1, self.steps + 1):
            point, pull = variables.point(w)
            _, slope, sure = self.hinge(nearest, rows, point)
            won = won | sure
            grad = 2 * (point - x) / per_example(unit**2, x) + per_example(weight, x) * slope
            first, second, move = adam(first, second, pull * grad, step)
            decay = (1 + math.cos(math.pi * step / self.steps)) / 2
            w = w - per_example(decay * rate, w) / variables.scale * move
        return won


class _ChangeOfVariables:
    """All of R^d onto the box, or the identity where there is none."""

    def __init__(self, x: Tensor, box: tuple[float, float] | None):
        self.box, self.scale, self.start, self._middle = box, 1.0, x, 0.0
        if box is not None:
            self.scale, self._middle = (box[1] - box[0]) / 2, (box[1] + box[0]) / 2
            inner = ((x - self._middle) / self.scale).clamp(-EDGE, EDGE)
            self.start = torch.asin(inner)

    def point(self, w: Tensor) -> tuple[Tensor, Tensor | float]:
        """The input, and its derivative in w."""
        if self.box is None:
            return w, 1.0
        return (self._middle + self.scale * w.sin()).clamp(*self.box), self.scale * w.cos()


def adam(first: Tensor, second: Tensor, grad: Tensor, step: int) -> tuple[Tensor, Tensor, Tensor]:
    """The moments after this step and Adam's direction, each row by itself."""
    first = 0.9 * first + 0.1 * grad
    second = 0.999 * second + 0.001 * grad**2
    size = (second / (1 - 0.999**step)).sqrt()
    floor = 1e-8 * size.flatten(1).amax(1).clamp(min=1e-30)
    return first, second, first / (1 - 0.9**step) / (size + per_example(floor, size))
