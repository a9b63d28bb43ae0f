"""The step size as a function of the step."""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, SerializeAsAny, model_validator

from ..core.config import Config
from ..core.errors import AdvlabError

SchedulerFactory = Callable[[torch.optim.Optimizer, int], Any]
"""Called with an optimizer and the number of steps: a scheduler of `torch.optim.lr_scheduler`."""


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


class Steps(Schedule):
    """Multiplied by `factor` after every share `every` of the run, as torch's StepLR does."""

    factor: PositiveFloat = 0.1
    every: float = Field(default=1 / 3, gt=0.0, le=1.0)

    def at(self, step: int, steps: int) -> float:
        # A third of 90 steps is 30 of them: rounding must not make it 31.
        return self.lr * self.factor ** math.floor(step / (self.every * steps) + 1e-9)


class Cosine(Schedule):
    """From lr to zero along half a cosine, after a linear warm-up over a share of the run."""

    warmup: float = 0.0

    def at(self, step: int, steps: int) -> float:
        start = self.warmup * steps
        if step < start:
            return self.lr * (step + 1) / (start + 1)
        return self.lr / 2 * (1 + math.cos(math.pi * (step - start) / max(steps - start, 1)))


class Cyclic(Schedule):
    """From `floor` straight up to lr at the share `peak` of the run, then straight down again.

    The triangle of fast adversarial training (Wong et al. 2020; Smith 2017); torch's CyclicLR.
    """

    peak: float = Field(default=0.5, gt=0.0, lt=1.0)
    floor: NonNegativeFloat = 0.0

    def at(self, step: int, steps: int) -> float:
        done = step / max(steps, 1)
        height = done / self.peak if done <= self.peak else (1 - done) / (1 - self.peak)
        return self.floor + (self.lr - self.floor) * max(height, 0.0)


class Warmup(Schedule):
    """Another schedule, whose first steps grow linearly to the rate that it has there.

    Args:
        then: the schedule; its lr is the lr of both.
        share: how much of the run the warm-up takes.

    Example:
        from advlab.training import Drops, Warmup
        Warmup(lr=0.1, then=Drops(lr=0.1), share=0.05)
    """

    then: SerializeAsAny[Schedule]
    share: float = Field(default=0.05, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _one_rate(self) -> "Warmup":
        if self.lr != self.then.lr:
            raise AdvlabError("one lr for the warm-up and what follows", (self.lr, self.then.lr))
        return self

    def at(self, step: int, steps: int) -> float:
        start = self.share * steps
        grown = (step + 1) / (start + 1) if step < start else 1.0
        return self.then.at(step, steps) * grown


class FromTorch(Schedule):
    """The rates of a scheduler of torch, worked out beforehand for all steps of the run.

    Args:
        lr: the rate that the optimizer is made with.
        scheduler: called with an optimizer and the number of steps. It moves once per step; only
            its rates are used (not a momentum that it cycles too).

    Example:
        from torch.optim.lr_scheduler import OneCycleLR
        from advlab.training import FromTorch
        FromTorch(lr=0.1, scheduler=lambda opt, steps: OneCycleLR(opt, 0.1, total_steps=steps + 1))
    """

    scheduler: SchedulerFactory

    def at(self, step: int, steps: int) -> float:
        return _rates(self.lr, self.scheduler, steps)[step]


@lru_cache(maxsize=8)
def _rates(lr: float, scheduler: SchedulerFactory, steps: int) -> list[float]:
    """The rate of each step, and of the look at the gradient after the last."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    moving = scheduler(optimizer, steps)
    rates = []
    for _ in range(steps):
        rates.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()  # torch wants it before the scheduler's; nothing has a gradient
        moving.step()
    return [*rates, float(optimizer.param_groups[0]["lr"])]
