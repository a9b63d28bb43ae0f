"""How far a sweep is, on stderr: a live bar on a terminal, now and then a line elsewhere."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from .case import Case

_SECONDS_BETWEEN_LINES = 10.0


def duration(seconds: float) -> str:
    """A time as a reader would say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Progress:
    """Counts cases as they are settled; the time that remains is estimated by their costs."""

    def __init__(self, name: str, cases: Sequence[Case], stored: int):
        self._name, self._count = name, len(cases)
        self._total = sum(case.cost for case in cases)
        self._stored, self._settled, self._failed, self._done = stored, 0, 0, 0.0
        self._console = Console(stderr=True, highlight=False)
        self._start = self._said = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), _Remaining())
        self._bar = Bar(*columns, console=self._console, transient=True)
        self._task = self._bar.add_task(self._text(), total=self._total)

    def __enter__(self) -> "Progress":
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def settled(self, case: Case, failed: bool) -> None:
        """One more case has a run or a stored failure."""
        self._settled += 1
        self._failed += failed
        self._done += case.cost
        self._bar.update(self._task, completed=self._done, description=self._text())
        now = time.monotonic()
        last = self._settled == self._count
        if last or (not self._console.is_terminal and now - self._said > _SECONDS_BETWEEN_LINES):
            self._said = now
            left = remaining(now - self._start, self._done, self._total)
            rest = "" if last else f", about {duration(left)} left"
            self.say(f"{self._text()} in {duration(now - self._start)}{rest}")

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._console.print(text, markup=False, soft_wrap=True)

    def _text(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        stored = f" ({self._stored} were stored)" if self._stored else ""
        return f"{self._name}: {self._settled}/{self._count} cases{stored}{failed}"


def remaining(elapsed: float, done: float, total: float) -> float:
    """The seconds still to go if the cost left is worked off at the speed so far."""
    return elapsed * (total - done) / done if done > 0 else float("inf")


class _Remaining(ProgressColumn):
    def render(self, task: Task) -> Text:
        if not task.completed or task.total is None:
            return Text("")
        left = remaining(task.elapsed or 0.0, task.completed, task.total)
        return Text(f"about {duration(left)} left")
