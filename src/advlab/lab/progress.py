"""How far a sweep is: cases that are done, with the time left estimated by their costs."""

from collections.abc import Sequence

from ..core.progress import Progress
from .case import Case


class SweepProgress(Progress):
    """Counts cases as they are computed.

    Args:
        name: the name of the experiment.
        cases: the cases to compute.
        stored: the number of cases that need no computing.
    """

    def __init__(self, name: str, cases: Sequence[Case], stored: int):
        self._name, self._count, self._stored = name, len(cases), stored
        self._settled, self._failed, self._cost = 0, 0, 0.0
        super().__init__(sum(case.cost for case in cases), self._text())

    def settled(self, case: Case, failed: bool) -> None:
        """One more case has a run or a stored failure."""
        self._settled += 1
        self._failed += failed
        self._cost += case.cost
        self.update(self._cost, self._text)
        if self._settled == self._count:
            self.text = self._text()
            self.finish()

    def _text(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        stored = f" ({self._stored} were stored)" if self._stored else ""
        return f"{self._name}: {self._settled}/{self._count} cases{stored}{failed}"
