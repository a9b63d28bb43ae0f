"""The step size as a function of the step."""

import math
from abc import abstractmethod

from pydantic import PositiveFloat

from ..core.config import Config


class Schedule(Config):
    """lr(step) for step 0 .. steps - 1."""

    lr: PositiveFloat

    @abstractmethod
    def at(self, step: int, steps: int) -> float: ...


class Constant(Schedule):
    """The same step size all along, as gradient descent in theory has it."""

    def at(self, step: int, steps: int) -> float:
        return self.lr


class Drops(Schedule):
    """Multiplied by `factor` at each of `at_shares` of the run (0.75 and 0.9: epochs 75 and 90)."""

    factor: PositiveFloat = 0.1
    at_shares: tuple[float, ...] = (0.75, 0.9)

    def at(self, step: int, steps: int) -> float:
        return self.lr * self.factor ** sum(step >= share * steps for share in self.at_shares)


class Cosine(Schedule):
    """From lr to zero along half a cosine, after a linear warm-up over a share of the run."""

    warmup: float = 0.0

    def at(self, step: int, steps: int) -> float:
        start = self.warmup * steps
        if step < start:
            return self.lr * (step + 1) / (start + 1)
        return self.lr / 2 * (1 + math.cos(math.pi * (step - start) / max(steps - start, 1)))
