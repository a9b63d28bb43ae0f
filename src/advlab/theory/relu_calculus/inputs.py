"""What the functions of this package accept, checked once at the door."""

from typing import Any

import numpy as np

from ...errors import AdvlabError
from ..linear.inputs import Array, finite, scalar


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`."""
    number = finite(name, value)
    if number.ndim or number % 1 or number < least:
        raise AdvlabError(f"{name} must be a whole number of at least {least}", f"{value!r:.80}")
    return int(number)


def length(name: str, value: Any) -> float:
    """A positive number."""
    number = scalar(name, value)
    if number == 0:
        raise AdvlabError(f"{name} must be positive", 0)
    return number


def signs(labels: Any, n: int | None = None) -> Array:
    """Labels -1, +1 as a vector, of length n where it is known."""
    array = finite("labels", labels)
    if array.ndim != 1 or not np.isin(array, (-1, 1)).all() or not array.size:
        raise AdvlabError("labels must be a vector of -1 and +1", f"{labels!r:.80}")
    if n is not None and len(array) != n:
        raise AdvlabError(f"one label for each of {n} points", f"{len(array)} labels")
    return array


def points_of(points: Any) -> Array:
    """Points as rows, at least one."""
    array = finite("points", points)
    if array.ndim != 2 or not array.size:
        raise AdvlabError("points must be rows of an (n, d) array", f"shape {array.shape}")
    return array
