"""How far an evaluation is: examples that are done, and passes through the model meanwhile."""

from ..core.progress import Progress


class Bar(Progress):
    """Counts examples; between them it shows that passes through the model go on.

    Args:
        rows: the number of examples.
        show: False shows nothing.
    """

    def __init__(self, rows: int, show: bool = True):
        super().__init__(rows, "checks", show=show)
        self.rows, self.finished, self.passes = rows, 0, 0

    def tick(self, doing: str) -> None:
        """One more pass of whoever is at work."""
        self.passes += 1
        self.update(
            self.finished,
            lambda: f"{doing}: {self.finished}/{self.rows} examples, {self.passes} passes",
        )

    def done(self, rows: int) -> None:
        """So many more examples are done."""
        self.finished += rows


def bar(show: bool, rows: int) -> Bar:
    """The bar of an evaluation of so many examples, or one that shows nothing."""
    return Bar(rows, show)
