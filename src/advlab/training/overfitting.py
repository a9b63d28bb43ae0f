"""Catastrophic overfitting: robust to the one step that it trains with, and to nothing else."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ..attacks import PGD, Attack
from ..core.checks import whole
from ..core.errors import AdvlabError
from ..core.randomness import Rng, generator
from ..losses import ModelLoss, classes_of, is_error, margin
from .hooks import Hook
from .objectives import StepContext, StepInfo
from .run import Run

FGSM = PGD(steps=1, step_size=1.25, jump=False, keep="last")
"""The fast gradient sign method from a random start, as in Wong et al. (2020)."""
SEVERAL_STEPS = PGD(steps=10, step_size=0.25, jump=False)

FEW_ROWS = 20
"""A smaller batch, such as the last of an epoch, is recorded but decides nothing."""

NAMES = ("fgsm_accuracy", "pgd_accuracy")


class CatastrophicOverfitting(Hook):
    """Compares, every so many steps, the accuracy under one step and under several steps of attack
    on the batch of the step, and says so when the first is high while the second has collapsed
    (Wong et al. 2020; Andriushchenko and Flammarion 2020).

    `Fit.log` has both accuracies as the probes `fgsm_accuracy` and `pgd_accuracy`. The hook draws
    from a generator of its own: it changes nothing in the run unless it stops it.

    Args:
        every: at steps 0, every, 2 every, ... and after the last.
        high: how high the first accuracy must be.
        collapsed: the second has collapsed if it is at most this share of the first. (They differ
            without overfitting too: a network that trains with PGD may have 0.9 and 0.5.)
        stop: end the run when it happens; otherwise there is one warning per run.
        one_step: the attack that training uses.
        several_steps: the attack that shows what it hides.

    Example:
        from advlab.training import Adversarial, CatastrophicOverfitting, fit
        from advlab.training.overfitting import FGSM
        fit(net, x, y, steps=3000, lr=0.2, batch=128, objective=Adversarial(ball=ball, attack=FGSM),
            hooks=[CatastrophicOverfitting(every=100, stop=True)])
    """

    def __init__(
        self,
        every: int = 100,
        *,
        high: float = 0.5,
        collapsed: float = 0.3,
        stop: bool = False,
        one_step: Attack = FGSM,
        several_steps: Attack = SEVERAL_STEPS,
    ):
        for name, value in (("high", high), ("collapsed", collapsed)):
            if not 0 < value < 1:
                raise AdvlabError(f"{name} between 0 and 1", value)
        self.every, self.stop = whole("every", every), stop
        self.high, self.collapsed = high, collapsed
        self.one_step, self.several_steps = one_step, several_steps
        self.collapsed_at: int | None = None
        """The first step at which it was seen."""

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        self.collapsed_at = None
        twice = set(NAMES) & set(run.log.probes)
        if twice:
            raise AdvlabError("probes with names of their own", f"{sorted(twice)} twice")
        run.log.probes |= {name: [] for name in NAMES}
        run.log.steps |= {name: [] for name in NAMES}
        yield

    def after_gradient(self, run: Run, info: StepInfo) -> None:
        if run.step % self.every and not info.last:
            return
        fast = self._accuracy(info.context, self.one_step)
        slow = self._accuracy(info.context, self.several_steps)
        run.processes.average([fast, slow])
        for name, value in zip(NAMES, (fast, slow), strict=True):
            run.log.probes[name].append(value)
            run.log.steps[name].append(run.step)
        seen = (fast >= self.high) & (slow <= self.collapsed * fast)
        few = len(info.context.x) < FEW_ROWS * info.context.replicates
        if few or self.collapsed_at is not None or not bool(seen.any()):
            return
        self.collapsed_at, worst = run.step, int(torch.where(seen, fast - slow, -1.0).argmax())
        said = (
            f"catastrophic overfitting at step {run.step}: FGSM accuracy {float(fast[worst]):.2f}, "
            f"PGD accuracy {float(slow[worst]):.2f} on the training batch"
        )
        if self.stop and not info.last:
            run.stop(said)
        else:
            advice = "train with PGD or a smaller step, or end the run there (stop=True)"
            warnings.warn(f"{said}; {advice}", stacklevel=2)

    def settings(self) -> object:
        return (
            self.every,
            self.high,
            self.collapsed,
            self.stop,
            self.one_step,
            self.several_steps,
        )

    def state_dict(self) -> dict:
        return {"collapsed_at": self.collapsed_at}

    def load_state_dict(self, state: dict) -> None:
        self.collapsed_at = state["collapsed_at"]

    def _accuracy(self, context: StepContext, attack: Attack) -> Tensor:
        """The share of rows that are right under the attack, one value per replicate."""
        loss = ModelLoss(context.model, context.y, context.loss)
        found = attack(loss, context.x, context.ball, rng=self._rng(context)).x
        with torch.no_grad():
            shown = ModelLoss(context.model, classes_of(context.y), margin)
            wrong = is_error(shown(found))
        return context.per_replicate(1 - wrong.double()).cpu()

    def _rng(self, context: StepContext) -> Rng:
        if isinstance(context.rng, torch.Generator):
            return generator("catastrophic overfitting", context.step)
        # The same for every replicate: each sees what it would see alone.
        return [generator("catastrophic overfitting", context.step) for _ in context.rng]
