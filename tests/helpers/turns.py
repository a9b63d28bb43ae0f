"""Tests that take turns: a part of a long list each day, all of it with `make nightly`."""

from collections.abc import Iterable
from datetime import date

import pytest

TURNS = 5
TODAY = date.today().toordinal() % TURNS


def in_turn(values: Iterable, always: int = 0) -> list:
    """The values as parameters of a test; a fifth of them runs today, and the first `always`.

    Args:
        values: one value per case, or a tuple of them for several arguments.
        always: how many of the first run every day.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=[] if place < always or place % TURNS == TODAY else pytest.mark.nightly,
        )
        for place, value in enumerate(values)
    ]
