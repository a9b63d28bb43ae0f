"""Specimens of purification's other experiments."""

from collections.abc import Callable

from nulls import Specimen

SPECIMENS: dict[str, Callable[[], Specimen]] = {}
