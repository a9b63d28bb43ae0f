"""How far an evaluation is, on stderr: a bar in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_TICKS = 0.2


class Bar:
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
        self.start = self.said = self.ticked = time.monotonic()

    def say(self, line: str) -> None:
        self.console.print(line, markup=False, soft_wrap=True)

    def tick(self, doing: str) -> None:
        """One more pass of whoever is at work."""
        self.passes += 1
        now = time.monotonic()
        if now - self.ticked > SECONDS_BETWEEN_TICKS:
            self.ticked = now
            self.bar.update(self.task, description=doing, passes=self.passes)
        if not self.console.is_terminal and now - self.said > SECONDS_BETWEEN_LINES:
            self.said = now
            self.say(f"{doing}: {self.finished}/{self.rows} examples{self._left(now)}")

    def done(self, rows: int) -> None:
        self.finished += rows
        self.bar.advance(self.task, rows)

    def _left(self, now: float) -> str:
        if self.finished == 0:
            return ""
        left = (now - self.start) * (self.rows - self.finished) / self.finished
        return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


class Silent(Bar):
    """Says nothing."""

    def __init__(self) -> None:
        """No console, no bar."""

    def say(self, line: str) -> None:
        """Nothing."""

    def tick(self, doing: str) -> None:
        """Nothing."""

    def done(self, rows: int) -> None:
        """Nothing."""


@contextmanager
def bar(show: bool, rows: int) -> Iterator[Bar]:
    if not show:
        yield Silent()
        return
    shown = Bar(rows)
    if not shown.console.is_terminal:
        yield shown
        return
    with shown.bar:
        yield shown
