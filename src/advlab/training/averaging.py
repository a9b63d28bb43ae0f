"""Averages of the weights over the run: of late ones all alike (SWA), or forgetting (EMA)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ..core.errors import AdvlabError
from ..core.randomness import generator
from ..losses import outputs_of
from ..models import Stack
from .hooks import Hook
from .run import Run

ROWS = 128
"""Examples at a time, where statistics are measured."""


class AverageWeights(Hook):
    """Keeps an average of the weights; the model itself trains as before.

    Args:
        kind: "ema": each step w' <- decay w' + (1 - decay) w, with a short memory at first, and the
            same for the statistics of BatchNorm; "swa": the plain mean of the weights at the end of
            each epoch (Izmailov et al. 2018), whose statistics of BatchNorm are measured in one
            pass over the training data, clean and augmented, as they are not those of any network
            on the way.
        decay: of "ema".
        start: the share of the run after which to begin.

    Example:
        from advlab.training import AverageWeights, fit
        average = AverageWeights("ema", decay=0.999)
        fit(net, x, y, epochs=10, lr=0.1, hooks=[average])
        average.model
    """

    def __init__(self, kind: Literal["ema", "swa"], *, decay: float = 0.999, start: float = 0.0):
        if kind not in ("ema", "swa") or not 0 < decay < 1 or not 0 <= start < 1:
            raise AdvlabError(
                "ema or swa, decay between 0 and 1, start from 0 below 1",
                f"{kind!r}, {decay}, {start}",
            )
        self.kind, self.decay, self.start = kind, decay, start
        self._average: AveragedModel | None = None
        self.taken = 0

    @property
    def model(self) -> nn.Module | None:
        """The network with averaged weights, once there are some."""
        return self._average.module if self._average is not None and self.taken else None

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        if isinstance(run.model, Stack):
            raise AdvlabError("a single model, where weights are averaged", "a stack")
        self.taken = 0
        # Without use_buffers they are copied from the model; statistics are then measured.
        self._average = AveragedModel(run.model, use_buffers=self.kind == "ema")
        yield

    def after_step(self, run: Run) -> None:
        if run.step < self.start * run.steps or self._average is None:
            return
        if self.kind == "swa" and run.step % run.steps_per_epoch and run.step != run.steps:
            return
        self.taken += 1
        # Long memory from the first step on would keep the random start for long.
        decay = min(self.decay, self.taken / (self.taken + 9))
        if self.kind == "ema":
            self._average.multi_avg_fn = get_ema_multi_avg_fn(decay)
        self._average.update_parameters(run.model)
        if self.kind == "swa":
            measure_statistics(self._average.module, run)

    def settings(self) -> object:
        return self.kind, self.decay, self.start

    def state_dict(self) -> dict:
        if self._average is None:
            return {"taken": 0}
        return {"taken": self.taken, "average": dict(self._average.state_dict())}

    def load_state_dict(self, state: dict) -> None:
        self.taken = state["taken"]
        if self._average is not None and "average" in state:
            self._average.load_state_dict(state["average"])


@torch.no_grad()
def measure_statistics(model: nn.Module, run: Run) -> None:
    """Mean and variance of BatchNorm, over one pass: those of the whole data, batch by batch.

    Layers that stand still (`FrozenLayers`: eval mode in the model of the run) keep theirs.

    Args:
        model: a copy of the model of the run, with other weights.
        run: its data and their transform.
    """
    pairs = zip(model.modules(), run.model.modules(), strict=True)
    norms = [
        one
        for one, in_run in pairs
        if isinstance(one, _BatchNorm) and one.track_running_stats and in_run.training
    ]
    if not norms:
        return
    modes = [(module, module.training) for module in model.modules()]
    momenta = [norm.momentum for norm in norms]
    rng = generator("statistics of averaged weights")
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum, norm.training = None, True  # the plain mean over batches
    try:
        for x, _ in run.batches.one_pass(ROWS):
            x = x.to(run.device)
            outputs_of(model, x if run.transform is None else run.transform(x, rng))
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for module, mode in modes:
            module.training = mode
