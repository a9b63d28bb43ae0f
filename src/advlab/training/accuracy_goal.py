"""The accuracy that one stage reached, and a later stage that ends when it is there again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from ..core.checks import whole
from ..losses import ModelLoss, classes_of, is_error, margin
from .hooks import Hook
from .objectives import StepContext, StepInfo
from .run import Run


@dataclass
class AccuracyGoal:
    """Shared by the hooks of two stages: what the first has reached, or None before it has run."""

    clean: float | None = None
    robust: float | None = None


class RecordAccuracy(Hook):
    """The mean accuracy at the clean and at the attacked points of the last steps of a run.

    Args:
        goal: where it is left when the run ends.
        over: how many steps, about: means forget at the rate 1/over.
    """

    def __init__(self, goal: AccuracyGoal, over: int = 100):
        self.goal, self.over = goal, whole("over", over)
        self.clean = self.robust = 0.0
        self.seen = 0

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        self.clean, self.robust, self.seen = 0.0, 0.0, 0
        yield
        self.reached(run)

    def after_gradient(self, run: Run, info: StepInfo) -> None:
        if info.last:
            return
        self.seen += 1
        # A plain mean at first, which then forgets.
        share = 1 / min(self.seen, self.over)
        mean = torch.stack([_accuracy(info.context, x) for x in _points(info.context)])
        run.processes.average([mean])
        clean, robust = mean.tolist()
        self.clean += share * (clean - self.clean)
        self.robust += share * (robust - self.robust)

    def reached(self, run: Run) -> None:
        """The run is over: what it reached is the goal."""
        if self.seen:
            self.goal.clean, self.goal.robust = self.clean, self.robust

    def settings(self) -> object:
        return self.over

    def state_dict(self) -> dict:
        mine = {"clean": self.clean, "robust": self.robust, "seen": self.seen}
        return {**mine, "goal": [self.goal.clean, self.goal.robust]}

    def load_state_dict(self, state: dict) -> None:
        self.clean, self.robust, self.seen = state["clean"], state["robust"], state["seen"]
        self.goal.clean, self.goal.robust = state["goal"]


class StopAtAccuracy(RecordAccuracy):
    """Ends a run as soon as its mean accuracies are those that another stage reached.

    Args:
        goal: what `RecordAccuracy` left there; without any the run goes on to its end.
        over: as in `RecordAccuracy`; the first look is after as many steps.
    """

    def after_gradient(self, run: Run, info: StepInfo) -> None:
        super().after_gradient(run, info)
        clean, robust = self.goal.clean, self.goal.robust
        if info.last or clean is None or robust is None or self.seen < self.over:
            return
        if self.clean >= clean and self.robust >= robust:
            run.stop(f"clean and robust accuracy are back at {clean:.3f} and {robust:.3f}")

    def reached(self, run: Run) -> None:
        """The goal stays what it was."""


def _points(context: StepContext) -> tuple[Tensor, Tensor]:
    return context.x, context.attacked()


@torch.no_grad()
def _accuracy(context: StepContext, x: Tensor) -> Tensor:
    wrong = is_error(ModelLoss(context.model, classes_of(context.y), margin)(x))
    return 1 - wrong.double().mean().cpu()
