"""A progress bar for long fits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor


@contextmanager
def training_bar(show: bool, steps: int, done: int) -> Iterator[Callable[[int, Tensor], None]]:
    """Calls with (step, losses) move the bar; on stderr, with the time left."""
    if not show:
        yield lambda step, values: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("step {task.completed}/{task.total}  loss {task.fields[loss]:.4g}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=steps, completed=done, loss=float("nan"))

        def advance(step: int, values: Tensor) -> None:
            bar.update(task, completed=step, loss=float(values.mean()))

        yield advance
