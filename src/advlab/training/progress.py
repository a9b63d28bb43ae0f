"""A progress bar for long fits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from ..core.progress import Progress


@contextmanager
def training_bar(show: bool, steps: int, done: int) -> Iterator[Callable[[int, Tensor], None]]:
    """Calls with (step, losses) move the bar; on stderr, with the time left."""
    with Progress(steps, "training", done=done, show=show) as progress:
        yield lambda step, values: progress.update(
            step, lambda: f"training: step {step}/{steps}, loss {float(values.mean()):.4g}"
        )
    progress.finish()
