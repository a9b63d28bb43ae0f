"""What the theory of the noisy mixture accepts besides numbers."""

from collections.abc import Callable
from typing import Any

from ....core.checks import Array, nonnegative
from ....core.errors import AdvlabError

LogDensity = Callable[[Any], Any]
"""The log density of one coordinate, up to a constant, for numbers and arrays of them."""


def flip_rate(beta: Any) -> Array:
    """The label noise beta, below 1/2."""
    array = nonnegative("beta", beta)
    if (array >= 0.5).any():
        raise AdvlabError("beta must be below 1/2, or labels say nothing", f"{array.max()}")
    return array
