"""How far a sweep is: cases that are done, with the time left estimated by their costs."""

from collections.abc import Sequence

from ..core.progress import Progress, duration
from .case import Case

LONG = 10.0
"""Seconds from which on it is said beforehand how long cases take."""


class SweepProgress(Progress):
    """Counts cases as they are computed.

    Args:
        name: the name of the experiment.
        cases: the cases to compute.
        stored: the number of cases that need no computing.
        pace: seconds of a case of cost 1; 0 where nobody knows.
        show: False shows nothing at all.
    """

    def __init__(
        self,
        name: str,
        cases: Sequence[Case],
        stored: int,
        pace: float = 0.0,
        show: bool = True,
    ):
        self._name, self._count, self.stored = name, len(cases), stored
        self._settled, self._failed, self._cost = 0, 0, 0.0
        cost = sum(case.cost for case in cases)
        super().__init__(cost, self._text(), show=show)
        if pace * cost >= LONG:
            many = "1 case takes" if self._count == 1 else f"{self._count} cases take"
            self.say(f"{name}: {many} about {duration(pace * cost)}")

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
        stored = f" ({self.stored} were stored)" if self.stored else ""
        return f"{self._name}: {self._settled}/{self._count} cases{stored}{failed}"
