"""A progress bar that says how training goes: loss, errors after the last epoch, speed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.progress import Progress
from .epoch_log import EpochLog
from .hooks import Hook
from .run import Run

SHOWN = {
    "validation_clean_error": "clean error",
    "validation_robust_error": "robust error at least",
    "train_robust_error": "on training data",
}


class EpochBar(Hook):
    """A bar on stderr with epoch, loss, rate and time left, and a line after each epoch.

    Args:
        log: the log of epochs, which comes before this among the hooks.
        name: what is being trained.
    """

    def __init__(self, log: EpochLog, name: str):
        self.log, self.name = log, name

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        self._told = len(self.log.rows)
        self._at, self._start = run.step, time.monotonic()
        with Progress(run.steps, self.name, done=run.step) as self._progress:
            yield

    def after_step(self, run: Run) -> None:
        for row in self.log.rows[self._told :]:
            self._progress.say(spoken(row))
        self._told = len(self.log.rows)
        self._progress.update(run.step, lambda: self._text(run))

    def _text(self, run: Run) -> str:
        epochs = run.steps / run.steps_per_epoch
        per_step = self.log.examples / run.steps_per_epoch
        done = max(run.step - self._at, 0)
        rate = per_step * done / max(time.monotonic() - self._start, 1e-9)
        loss = float(run.log.loss[-1].mean())
        speed = f", {rate:,.0f} examples/s" if rate else ""
        return f"{self.name}: epoch {run.epoch:.2f}/{epochs:g}, loss {loss:.4g}{speed}"

    def settings(self) -> object:
        return None


def spoken(row: dict) -> str:
    """A row of the log as a line."""
    said = [f"{row['stage']}: epoch {row['epoch']:g}", f"loss {row['objective']:.4g}"]
    said += [f"{words} {row[name]:.3f}" for name, words in SHOWN.items() if name in row]
    return ", ".join([*said, f"{row['seconds']:.0f} s"])
