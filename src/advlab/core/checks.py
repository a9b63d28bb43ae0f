"""Numeric arguments, checked where they come in: an error names the argument and what came.

Every check takes the name of an argument and its value, and returns the value as float64 (or int),
in the shape that it promises. What does not pass raises an `AdvlabError`:

    eps = nonnegative("eps", eps)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import AdvlabError

Array = NDArray[np.floating]
Scalar = float | int | np.number
ArrayLike = Scalar | np.ndarray | Sequence
"""What numpy turns into an array of numbers. (numpy's own alias has no float in it at run time.)"""
Numbers = Any
"""A float64 number, or an array of them when an argument was an array; as loose as numpy's own."""


def finite(name: str, value: Any) -> Array:
    """`value` as float64, or an error that names it."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise AdvlabError(f"{name} must be numbers", f"{value!r:.80}") from None
    if not np.isfinite(array).all():
        raise AdvlabError(f"{name} must be finite", "NaN or infinity")
    return array


def nonnegative(name: str, value: Any) -> Array:
    """Numbers that are 0 or more."""
    array = finite(name, value)
    if (array < 0).any():
        raise AdvlabError(f"{name} must not be negative", f"{array.min()}")
    return array


def positive(name: str, value: Any) -> Array:
    """Numbers above 0."""
    array = nonnegative(name, value)
    if (array == 0).any():
        raise AdvlabError(f"{name} must be positive", 0)
    return array


def scalar(name: str, value: Any) -> float:
    """One number that is 0 or more."""
    array = nonnegative(name, value)
    if array.ndim:
        raise AdvlabError(f"{name} must be one number", f"shape {array.shape}")
    return float(array)


def length(name: str, value: Any) -> float:
    """One number above 0."""
    number = scalar(name, value)
    if number == 0:
        raise AdvlabError(f"{name} must be positive", 0)
    return number


def fraction(name: str, value: Any) -> float:
    """One number in (0, 1]."""
    number = scalar(name, value)
    if not 0 < number <= 1:
        raise AdvlabError(f"{name} must be above 0 and at most 1", number)
    return number


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`."""
    number = finite(name, value)
    if number.ndim or number % 1 or number < least:
        raise AdvlabError(f"{name} must be a whole number of at least {least}", f"{value!r:.80}")
    return int(number)


def cosine(value: Any) -> Array:
    """Numbers in [-1, 1]; a cosine that was computed may pass 1 by rounding."""
    array = finite("cos", value)
    if (np.abs(array) > 1 + 1e-12).any():
        raise AdvlabError("cos must lie between -1 and 1", f"{np.abs(array).max()} in size")
    return np.asarray(np.clip(array, -1, 1))


def chosen(name: str, value: Any, known: tuple[str, ...]) -> str:
    """One of the known words."""
    if value not in known:
        raise AdvlabError(f"{name} must be {' or '.join(known)}", repr(value))
    return value


def vector(name: str, value: Any) -> Array:
    """A vector with at least one entry."""
    array = finite(name, value)
    if array.ndim != 1 or not array.size:
        raise AdvlabError(f"{name} must be a vector", f"shape {array.shape}")
    return array


def stack(name: str, value: Any, dimension: int) -> Array:
    """Vectors of length `dimension` along the last axis, with any batch axes before it."""
    array = finite(name, value)
    if not array.ndim or array.shape[-1] != dimension:
        raise AdvlabError(f"{name} must end in an axis of length {dimension}", array.shape)
    return array


def points(name: str, value: Any, dimension: int | None = None) -> Array:
    """Rows of vectors, at least one, of the given dimension if one is given."""
    array = finite(name, value)
    if array.ndim != 2 or not array.size:
        raise AdvlabError(f"{name} must be rows of vectors", f"shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise AdvlabError(f"{name} must have {dimension} columns", f"shape {array.shape}")
    return array


def points_of(points: Any) -> Array:
    """Points as rows, at least one, for functions whose argument is called `points`."""
    array = finite("points", points)
    if array.ndim != 2 or not array.size:
        raise AdvlabError("points must be rows of an (n, d) array", f"shape {array.shape}")
    return array


def signs(labels: Any, n: int | None = None) -> Array:
    """Labels -1, +1 as a vector, of length n where it is known."""
    array = finite("labels", labels)
    if array.ndim != 1 or not np.isin(array, (-1, 1)).all() or not array.size:
        raise AdvlabError("labels must be a vector of -1 and +1", f"{labels!r:.80}")
    if n is not None and len(array) != n:
        raise AdvlabError(f"one label for each of {n} points", f"{len(array)} labels")
    return array


def covariance(cov: ArrayLike | None, dimension: int) -> Array | None:
    """A symmetric positive semi-definite matrix; None stands for the identity."""
    if cov is None:
        return None
    matrix = finite("cov", cov)
    if matrix.shape != (dimension, dimension):
        raise AdvlabError(f"cov must have shape ({dimension}, {dimension})", matrix.shape)
    scale = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > 1e-10 * scale:
        raise AdvlabError("cov must be symmetric", advice="use (cov + cov.T) / 2")
    matrix = (matrix + matrix.T) / 2
    try:
        # The ridge lets exact singular matrices pass and stops indefinite ones.
        np.linalg.cholesky(matrix + 1e-10 * scale * np.eye(dimension))
    except np.linalg.LinAlgError:
        raise AdvlabError("cov must have no negative eigenvalue", "an indefinite matrix") from None
    return matrix


def together(**named: Array) -> tuple[int, ...]:
    """The shape the arrays broadcast to."""
    try:
        return np.broadcast_shapes(*(array.shape for array in named.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in named.items())
        raise AdvlabError("shapes must broadcast", shapes, "add axes of length one") from None
