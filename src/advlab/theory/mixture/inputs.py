"""What the functions of this package accept, checked once at the door."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AdvlabError
from ..linear.inputs import Array, finite, nonnegative, scalar

LogDensity = Callable[[Any], Any]
"""The log density of one coordinate, up to a constant, for numbers and arrays of them."""


def flip_rate(beta: Any) -> Array:
    array = nonnegative("beta", beta)
    if (array >= 0.5).any():
        raise AdvlabError("beta must be below 1/2, or labels say nothing", f"{array.max()}")
    return array


def positive(name: str, value: Any) -> Array:
    array = nonnegative(name, value)
    if (array == 0).any():
        raise AdvlabError(f"{name} must be positive", 0)
    return array


def fraction(name: str, value: Any) -> float:
    """One number in (0, 1]."""
    number = scalar(name, value)
    if not 0 < number <= 1:
        raise AdvlabError(f"{name} must be above 0 and at most 1", number)
    return number


def cosine(value: Any) -> Array:
    array = finite("cos", value)
    # A cosine that was computed may pass 1 by rounding.
    if (np.abs(array) > 1 + 1e-12).any():
        raise AdvlabError("cos must lie between -1 and 1", f"{np.abs(array).max()} in size")
    return np.asarray(np.clip(array, -1, 1))


def chosen(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise AdvlabError(f"{name} must be {' or '.join(known)}", repr(value))
    return value
