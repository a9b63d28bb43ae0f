"""How far long work is, on stderr: a live bar in a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_UPDATES = 0.2

_Bar = TypeVar("_Bar", bound="Progress")


class Progress:
    """A progress bar with an estimate of the time left; use it in a `with` block.

    Args:
        total: the work to do, in any unit: steps, examples, seconds; infinite if nobody knows.
        text: what is shown before the first update.
        done: the work that was done before, by a run that is being continued.
        show: False shows nothing at all.

    Example:
        from advlab.core.progress import Progress
        with Progress(len(batches), "training") as progress:
            for n, batch in enumerate(batches, 1):
                step(batch)
                progress.update(n, lambda: f"training: step {n}")
    """

    def __init__(self, total: float, text: str = "", *, done: float = 0.0, show: bool = True):
        self.total, self.text, self.show = total, text, show
        self._before = self._done = done
        self._start = self._said = time.monotonic()
        self._updated = float("-inf")
        self._console = Console(stderr=True, highlight=False, quiet=not show)
        self._bar: RichProgress | None = None
        if show and self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), _Left())
            self._bar = RichProgress(*columns, console=self._console, transient=True)
            known = total - done if total < float("inf") else None
            self._task = self._bar.add_task(text, total=known)

    def __enter__(self: _Bar) -> _Bar:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def update(self, done: float, text: str | Callable[[], str]) -> None:
        """Say how far the work is; cheap enough for every step.

        Args:
            done: the work done so far, with what was done before.
            text: what to show; a function is called only when something is shown.
        """
        self._done = done
        now = time.monotonic()
        due = now - self._updated > SECONDS_BETWEEN_UPDATES or done >= self.total
        if not self.show or not due:
            return
        self._updated = now
        self.text = text if isinstance(text, str) else text()
        if self._bar:
            self._bar.update(self._task, completed=done - self._before, description=self.text)
        elif now - self._said > SECONDS_BETWEEN_LINES and done < self.total:
            self._said = now
            self.say(f"{self.text} in {duration(now - self._start)}{self._rest(now)}")

    def finish(self) -> None:
        """Leave one last line: what was done, and how long it took."""
        self.say(f"{self.text} in {duration(time.monotonic() - self._start)}")

    def say(self, line: str) -> None:
        """Print a line on stderr, above the bar if there is one."""
        self._console.print(line, markup=False, soft_wrap=True)

    def _rest(self, now: float) -> str:
        done, total = self._done - self._before, self.total - self._before
        left = remaining(now - self._start, done, total)
        return f", about {duration(left)} left" if left < float("inf") else ""


def remaining(elapsed: float, done: float, total: float) -> float:
    """The seconds still to go if what is left is done at the speed so far.

    Args:
        elapsed: the seconds that `done` took.
        done: the work done in them.
        total: all the work, in the same unit.

    Returns:
        Seconds; infinity as long as nothing is done.
    """
    return elapsed * (total - done) / done if done > 0 else float("inf")


def duration(seconds: float) -> str:
    """A time as a reader would say it: "under 1 ms", "0.2 s", "45 s", "3 min", "2.5 h"."""
    if seconds < 1e-3:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class _Left(ProgressColumn):
    def render(self, task: Task) -> Text:
        if not task.completed or task.total is None:
            return Text("")
        left = remaining(task.elapsed or 0.0, task.completed, task.total)
        return Text(f"about {duration(left)} left")
