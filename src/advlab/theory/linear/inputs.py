"""What the functions of this package accept, checked once at the door."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...errors import AdvlabError

Array = NDArray[np.floating]
Scalar = float | int | np.number
ArrayLike = Scalar | np.ndarray | Sequence
"""What numpy turns into an array of numbers. (numpy's own alias has no float in it at run time.)"""
Numbers = Any
"""A float64 number, or an array of them when an argument was an array; as loose as numpy's own."""

C0 = float(np.sqrt(2 / np.pi))
"""E|Z| for a standard normal Z; the paper's c0."""


@runtime_checkable
class HasBall(Protocol):
    """Anything with a norm and a radius, such as `advlab.threats.Ball`."""

    @property
    def norm(self) -> Any: ...
    @property
    def radius(self) -> Any: ...


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
    array = finite(name, value)
    if (array < 0).any():
        raise AdvlabError(f"{name} must not be negative", f"{array.min()}")
    return array


def scalar(name: str, value: Any) -> float:
    array = nonnegative(name, value)
    if array.ndim:
        raise AdvlabError(f"{name} must be one number", f"shape {array.shape}")
    return float(array)


def vector(name: str, value: Any) -> Array:
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


def norm_name(name: Any) -> str:
    if name not in ("l1", "l2", "linf"):
        raise AdvlabError("the norm must be l1, l2 or linf", repr(name))
    return name


def ball_of(ball: HasBall) -> tuple[str, float]:
    """Norm and radius of a ball that has no box: the closed forms know of no box."""
    if getattr(ball, "box", None) is not None:
        raise AdvlabError("closed-form risks need a ball without a box", ball)
    return norm_name(ball.norm), scalar("radius", ball.radius)


def together(**named: Array) -> tuple[int, ...]:
    """The shape the arrays broadcast to."""
    try:
        return np.broadcast_shapes(*(array.shape for array in named.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in named.items())
        raise AdvlabError("shapes must broadcast", shapes, "add axes of length one") from None
