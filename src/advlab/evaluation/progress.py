"""How far an evaluation is, on stderr: a bar in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from torch import Tensor, jit, nn

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 0.2


class EvaluationProgress:
    """Counts examples; between them it shows that passes through the model go on."""

    def __init__(self, rows: int):
        self.console = Console(stderr=True, highlight=False)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total} examples, {task.fields[passes]} passes"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=self.console, transient=True)
        self.task = self.bar.add_task("checks", total=rows, passes=0)
        self.rows, self.finished, self.passes = rows, 0, 0
        self.start = self.said = self.updated = time.monotonic()

    def message(self, line: str) -> None:
        """One line above the bar."""
        self.console.print(line, markup=False, soft_wrap=True)

    def model_pass(self, doing: str) -> None:
        """One more pass through the model, for the attack, certificate or check of this name."""
        self.passes += 1
        now = time.monotonic()
        if now - self.updated > SECONDS_BETWEEN_UPDATES:
            self.updated = now
            self.bar.update(self.task, description=doing, passes=self.passes)
        if not self.console.is_terminal and now - self.said > SECONDS_BETWEEN_LINES:
            self.said = now
            self.message(f"{doing}: {self.finished}/{self.rows} examples{self._left(now)}")

    def rows_done(self, rows: int) -> None:
        """Examples of which all is known."""
        self.finished += rows
        self.bar.advance(self.task, rows)

    def _left(self, now: float) -> str:
        if self.finished == 0:
            return ""
        left = (now - self.start) * (self.rows - self.finished) / self.finished
        return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


class NoProgress(EvaluationProgress):
    """Says nothing."""

    def __init__(self) -> None:
        """No console, no bar."""

    def message(self, line: str) -> None:
        """Nothing."""

    def model_pass(self, doing: str) -> None:
        """Nothing."""

    def rows_done(self, rows: int) -> None:
        """Nothing."""


@contextmanager
def show_progress(show: bool, rows: int) -> Iterator[EvaluationProgress]:
    """How far the evaluation of so many examples is, or nothing."""
    if not show:
        yield NoProgress()
        return
    shown = EvaluationProgress(rows)
    if not shown.console.is_terminal:
        yield shown
        return
    with shown.bar:
        yield shown


@contextmanager
def each_pass(model: Callable[[Tensor], Tensor], call: Callable[[], None]) -> Iterator[None]:
    """Call back before each pass through the model, where it is a module that can be watched."""
    if not isinstance(model, nn.Module) or isinstance(model, jit.ScriptModule):
        yield
        return
    hook = model.register_forward_pre_hook(lambda module, inputs: call())
    try:
        yield
    finally:
        hook.remove()
