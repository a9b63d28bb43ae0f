"""Seconds for a whole evaluation, shared between its batches and its checks."""

import re
import time
from typing import Any

from ..core.errors import AdvlabError

CHECKS = 0.15
"""The share that is left for checks of the result."""
UNKNOWN = 0.25
"""The share of what is left that a batch gets where nobody knows how many there are."""
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(budget: Any) -> float:
    """A time in seconds: a number, or text such as "90", "2m" or "1h30m".

    Args:
        budget: what a user gave.
    """
    value = budget
    if isinstance(budget, str):
        parts = re.findall(r"(\d+(?:\.\d+)?)([smh]?)", budget.strip())
        if not parts or "".join(number + unit for number, unit in parts) != budget.strip():
            value = None
        else:
            value = sum(float(number) * UNITS[unit] for number, unit in parts)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise AdvlabError(
            "a budget in seconds above 0, or text such as 90s, 2m or 1h30m", f"{budget!r:.40}"
        )
    return float(value)


class Budget:
    """Deadlines by the clock `time.monotonic`; without a limit there are none.

    Args:
        limit: seconds for everything, from now on; None for as long as it takes.
        rows: how many examples there are; infinite if nobody knows.
    """

    def __init__(self, limit: float | None, rows: float):
        self.limit, self.rows = limit, rows
        self.end = None if limit is None else time.monotonic() + limit

    def next_batch(self, rows: int) -> float | None:
        """When the work on the next batch must end: its share, by rows, of what is left.

        Args:
            rows: how many examples the batch has.
        """
        if self.end is None or self.limit is None:
            return None
        now = time.monotonic()
        left = max(0.0, self.end - CHECKS * self.limit - now)
        share = UNKNOWN if self.rows == float("inf") else min(1.0, rows / max(self.rows, 1))
        self.rows -= rows
        return now + share * left


def part_of(deadline: float | None, share: float) -> float | None:
    """A deadline after this share of the time that is left.

    Args:
        deadline: the end of the time; None for none.
        share: between 0 and 1.
    """
    if deadline is None:
        return None
    now = time.monotonic()
    return now + share * max(0.0, deadline - now)
