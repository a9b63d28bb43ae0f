"""What an epoch has brought: its log, the best weights so far, and when to stop."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor, nn

from ..core.errors import AdvlabError
from ..core.files import write_text
from .averaging import AverageWeights
from .hooks import Hook
from .run import Run

EpochMeasure = Callable[[nn.Module], Mapping[str, float]]
"""Numbers of a model by name."""


class EpochLog(Hook):
    """Measures the model after each epoch, and writes a row of numbers.

    A row has: stage, epoch and step (both count on from stage to stage), lr, objective (its mean
    over the steps of the epoch), what the measures gave (a name in front of each), seconds and
    examples per second of the training alone.

    Args:
        measures: functions of the model by name, such as {"validation": ErrorsOf(x, y, ball)}.
        examples: how many examples an epoch has, for the rate; 0 if it is not known.
        average: measure the averaged weights, as soon as there are some.
        csv: a file with the rows so far, replaced after each epoch.
        tensorboard: a folder for TensorBoard's files.
        told: called with each new row.
    """

    def __init__(
        self,
        measures: Mapping[str, EpochMeasure],
        *,
        examples: int = 0,
        average: AverageWeights | None = None,
        csv: Path | None = None,
        tensorboard: Path | None = None,
        told: Callable[[dict[str, Any]], None] | None = None,
    ):
        self.measures, self.examples, self.average = dict(measures), examples, average
        self.csv, self.tensorboard, self.told = csv, tensorboard, told
        self.rows: list[dict[str, Any]] = []
        self.stage = ""
        self._before = [0.0, 0]
        self._since = time.monotonic()
        self._board: Any = None

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        self._before = [self.rows[-1][name] if self.rows else 0 for name in ("epoch", "step")]
        self._since = time.monotonic()
        self._board = None
        if self.tensorboard is not None:
            check_tensorboard()
        try:
            yield
        finally:
            if self._board is not None:
                self._board.close()

    def after_step(self, run: Run) -> None:
        if run.step % run.steps_per_epoch and run.step != run.steps:
            return
        seconds = time.monotonic() - self._since
        taken = run.step % run.steps_per_epoch or run.steps_per_epoch
        losses = torch.stack(run.log.loss[-taken:]).double()
        row: dict[str, Any] = {
            "stage": self.stage,
            "epoch": self._before[0] + run.epoch,
            "step": self._before[1] + run.step,
            "lr": run.lr,
            "objective": float(losses.mean()),
        }
        model = (self.average.model if self.average else None) or run.model
        for name, measure in self.measures.items():
            row |= {f"{name}_{key}": float(value) for key, value in measure(model).items()}
        _share(run, row)
        row["seconds"] = seconds
        row["examples_per_second"] = (
            self.examples * taken / run.steps_per_epoch / max(seconds, 1e-9)
        )
        self.rows.append(row)
        if run.processes.first:
            self._write(row)
        self._since = time.monotonic()

    def _write(self, row: dict[str, Any]) -> None:
        if self.csv is not None:
            try:
                write_text(self.csv, self.table().write_csv())
            except OSError as error:
                raise AdvlabError(
                    f"{self.csv} must be a file that can be written", error.strerror, "make room"
                ) from None
        if self.tensorboard is not None:
            # Made with the first row: what a run that was killed wrote after its last checkpoint
            # comes again, and is to be forgotten.
            self._board = self._board or _board(self.tensorboard, row["step"])
            for name, value in row.items():
                if isinstance(value, float):
                    self._board.add_scalar(name, value, global_step=row["step"])
            self._board.flush()
        if self.told is not None:
            self.told(row)

    def table(self) -> pl.DataFrame:
        """All rows so far."""
        return pl.DataFrame(self.rows, infer_schema_length=None)

    def settings(self) -> object:
        return sorted(self.measures), self.average is not None

    def state_dict(self) -> dict:
        spent = time.monotonic() - self._since
        return {"rows": list(self.rows), "before": list(self._before), "spent": spent}

    def load_state_dict(self, state: dict) -> None:
        self.rows, self._before = state["rows"], state["before"]
        self._since = time.monotonic() - state["spent"]


class KeepBest(Hook):
    """Keeps the weights of the epoch with the smallest value of a column of the log.

    Args:
        log: the log of epochs, which comes before this among the hooks.
        column: such as "validation_robust_error".
        patience: stop after as many epochs without a smaller value; None goes on to the end.
    """

    def __init__(self, log: EpochLog, column: str, patience: int | None = None):
        self.log, self.column, self.patience = log, column, patience
        self.row: dict[str, Any] | None = None
        self.weights: dict[str, Tensor] = {}
        self._seen = 0

    def after_step(self, run: Run) -> None:
        if len(self.log.rows) == self._seen:
            return
        self._seen = len(self.log.rows)
        row = self.log.rows[-1]
        value = row[self.column]
        model = (self.log.average.model if self.log.average else None) or run.model
        if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
            return  # the next loss is not finite either, and ends the run
        if self.row is None or value < self.row[self.column]:
            kept = model.state_dict()
            self.row, self.weights = row, {k: v.detach().cpu().clone() for k, v in kept.items()}
        elif self.patience and row["epoch"] - self.row["epoch"] >= self.patience:
            best = f"{self.row[self.column]:.4g} after epoch {self.row['epoch']:g}"
            run.stop(f"{self.column} has not been below {best} for {self.patience} epochs")

    def settings(self) -> object:
        # What decides is part of the run; other measures only tell.
        return self.column, self.patience, self.log.measures.get(self.column.split("_")[0])

    def state_dict(self) -> dict:
        return {"row": self.row, "weights": self.weights, "seen": self._seen}

    def load_state_dict(self, state: dict) -> None:
        self.row, self.weights, self._seen = state["row"], state["weights"], state["seen"]


def _share(run: Run, row: dict[str, Any]) -> None:
    """The first process's numbers on all of them, so that all decide alike."""
    names = [name for name, value in row.items() if isinstance(value, float)]
    values = torch.tensor([row[name] for name in names], dtype=torch.float64)
    run.processes.share([values])
    row.update(zip(names, values.tolist(), strict=True))


def check_tensorboard() -> None:
    """Refuse in one line where TensorBoard is not installed."""
    if find_spec("tensorboard") is None:
        raise AdvlabError("TensorBoard, to write its files", "none", 'pip install "advlab[logs]"')


def _board(folder: Path, first: int) -> Any:
    """A writer of TensorBoard's files, which go on from a step."""
    from torch.utils.tensorboard.writer import SummaryWriter

    return SummaryWriter(str(folder), purge_step=first)
