"""How far an evaluation is: examples that are done, and passes through the model meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, jit, nn

from ..core.progress import Progress


class EvaluationProgress(Progress):
    """Counts examples; between them it shows that passes through the model go on.

    Args:
        rows: the number of examples; infinite where nobody knows.
        show: False shows nothing.
    """

    def __init__(self, rows: float, show: bool = True):
        super().__init__(rows, "checks", show=show)
        self.rows, self.finished, self.passes = rows, 0, 0

    def model_pass(self, doing: str) -> None:
        """One more pass through the model, for the attack, certificate or check of this name."""
        self.passes += 1
        total = f"/{self.rows}" if self.rows < float("inf") else ""
        self.update(
            self.finished,
            lambda: f"{doing}: {self.finished}{total} examples, {self.passes} passes",
        )

    def rows_done(self, rows: int) -> None:
        """So many more examples are done."""
        self.finished += rows


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
