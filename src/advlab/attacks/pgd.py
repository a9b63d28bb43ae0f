"""Projected gradient ascent."""

from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from ..randomness import Rng
from ..threats import Threat
from .base import Attack, Scout


class PGD(Attack):
    """Steepest steps, each projected back on the threat set, from one or several starts.

    The last gradient's own worst point in the set is tried at the end (`jump`): with few steps a
    walk from a random start ends beside the optimum of even a linear loss, the jump lands on it.
    """

    steps: PositiveInt = 20
    step_size: PositiveFloat = 0.1
    """Length of one step, as a fraction of the radius."""
    restarts: PositiveInt = 1
    random_start: bool = True
    jump: bool = True

    def search(self, scout: Scout, threat: Threat, rng: Rng) -> None:
        for restart in range(self.restarts):
            # Starts after the first must differ from it, or they would repeat its work.
            anywhere = self.random_start or restart > 0
            self._walk(scout, threat, threat.sample(scout.x, rng=rng) if anywhere else None)
        scout.start()

    def _walk(self, scout: Scout, threat: Threat, start: Tensor | None) -> None:
        point, grad = (
            (scout.x, scout.clean_gradient) if start is None else (start, scout.gradient(start))
        )
        for step in range(self.steps):
            if step > 0:
                grad = scout.gradient(point)
            move = self.step_size * threat.radius * threat.steepest(grad)
            point = threat.project(point + move, scout.x)
        scout.value(point)
        if self.jump:
            scout.value(threat.maximiser(grad, scout.x))
