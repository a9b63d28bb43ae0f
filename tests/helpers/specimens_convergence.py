"""Specimens of convergence: tables in which the claims hold, and what must break them."""

from collections.abc import Callable

from nulls import Specimen

SPECIMENS: dict[str, Callable[[], Specimen]] = {}
