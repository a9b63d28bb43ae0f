"""Caps of the unit sphere: which of them meet, points in them, and ascent over them.

cap(x, delta) = {z on the sphere, ||z - x|| <= delta}, of angle 2 arcsin(delta/2).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar
from ....core.errors import AdvlabError
from .inputs import cap_radius, labels, on_sphere

STEPS, DECAY = 60, 0.85


class OverlappingCaps(NamedTuple):
    """Pairs (i, j) of opposite labels whose caps meet; slack, in radians, of the nearest pair."""

    pairs: list[tuple[int, int]]
    slack: float


def overlapping_caps(x: ArrayLike, y: ArrayLike, delta: Scalar) -> OverlappingCaps:
    """The assumption of section 3.3: caps meet, at angles of at most twice theirs, at equal labels.

    The slack is the least angle of two points of opposite labels less that; infinite if there is
    one label only.

    Args:
        x: centres, unit vectors as rows.
        y: their labels, +1 or -1.
        delta: the radius of the caps.
    """
    rows = on_sphere("x", x)
    signs, reach = labels("y", y, len(rows)), 4 * np.arcsin(cap_radius(delta) / 2)
    first, second = np.nonzero(np.triu(signs[:, None] != signs))
    # arccos would lose the digits of small angles.
    gaps = 2 * np.arcsin(np.clip(np.linalg.norm(rows[first] - rows[second], axis=1) / 2, 0, 1))
    gaps = gaps - reach
    # Equality counts as meeting, and rounding must not part them.
    meet = gaps <= 1e-12
    pairs = [(int(i), int(j)) for i, j in zip(first[meet], second[meet], strict=True)]
    return OverlappingCaps(pairs, float(gaps.min(initial=np.inf)))


def require_disjoint_caps(x: ArrayLike, y: ArrayLike, delta: Scalar) -> None:
    """Refuse caps of opposite labels that meet. Arguments as for `overlapping_caps`."""
    found = overlapping_caps(x, y, delta)
    if found.pairs:
        i, j = found.pairs[0]
        raise AdvlabError(
            "caps of opposite labels must not meet",
            f"{len(found.pairs)} pairs that do, such as points {i} and {j}; slack {found.slack:.4g}"
            " radians",
            "take a smaller delta or points farther apart",
        )


def project(z: Array, centre: Array, delta: float) -> Array:
    """The nearest point of the cap around each centre, along the last axis.

    Args:
        z: points, not zero.
        centre: unit vectors.
        delta: the radius.
    """
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    least = 1 - delta**2 / 2
    along = (z * centre).sum(-1, keepdims=True)
    across = z - along * centre
    length = np.linalg.norm(across, axis=-1, keepdims=True)
    around = np.divide(across, length, out=np.zeros_like(across), where=length > 0)
    rim = least * centre + np.sqrt(1 - least**2) * around
    return np.where(along < least, rim, z)


def sample(centre: Array, delta: float, number: int, rng: np.random.Generator) -> Array:
    """Points of each cap, shape (n, number, d): the centre, rim, and inside, half and half.

    Args:
        centre: unit vectors (n, d).
        delta: the radius.
        number: of points per cap.
        rng: where they are drawn from.
    """
    n, d = centre.shape
    normal = rng.standard_normal((n, number, d))
    tangent = normal - (normal * centre[:, None]).sum(-1, keepdims=True) * centre[:, None]
    tangent /= np.linalg.norm(tangent, axis=-1, keepdims=True)
    share = rng.uniform(size=(n, number, 1)) ** (1 / (d - 1))
    share[:, number // 2 :] = 1.0
    share[:, 0] = 0.0
    angle = 2 * np.arcsin(delta / 2) * share
    return np.cos(angle) * centre[:, None] + np.sin(angle) * tangent


def ascend(
    function: Callable[[Array], tuple[Array, Array]], start: Array, centre: Array, delta: float
) -> tuple[Array, Array]:
    """Projected ascent over caps: the best point of each path and its value.

    Unit steps along the gradient's tangent part; their length falls from delta by 15 % per step.

    Args:
        function: values and gradients at points (n, s, d).
        start: where paths begin, (n, s, d).
        centre: of the caps, (n, d).
        delta: their radius.
    """
    z, middle = start, centre[:, None]
    value, grad = function(z)
    best, most = z, value
    for step in range(STEPS):
        grad = grad - (grad * z).sum(-1, keepdims=True) * z
        length = np.linalg.norm(grad, axis=-1, keepdims=True)
        unit = np.divide(grad, length, out=np.zeros_like(grad), where=length > 0)
        z = project(z + delta * DECAY**step * unit, middle, delta)
        value, grad = function(z)
        better = value > most
        best, most = np.where(better[..., None], z, best), np.where(better, value, most)
    return best, most
