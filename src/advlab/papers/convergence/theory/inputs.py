"""What the theory of the convergence paper accepts besides numbers: points of the unit sphere."""

from typing import Any

import numpy as np

from ....core.checks import Array, finite, points, scalar
from ....core.errors import AdvlabError

ON_SPHERE = 1e-6
"""How far from 1 a norm may be: data in float32 is still on the sphere."""


def on_sphere(name: str, value: Any, dimension: int | None = None) -> Array:
    """Rows of unit vectors, made exactly so; refused if one is not on the sphere.

    Args:
        name: what to call them in a refusal.
        value: the rows.
        dimension: which they must have, if it is known.
    """
    array = points(name, value, dimension)
    lengths = np.linalg.norm(array, axis=1)
    away = np.abs(lengths - 1)
    if away.max() > ON_SPHERE:
        row = int(away.argmax())
        raise AdvlabError(
            f"{name} must lie on the unit sphere",
            f"row {row} of length {lengths[row]:.6g}",
            "divide each row by its length",
        )
    return array / lengths[:, None]


def labels(name: str, value: Any, count: int) -> Array:
    """Labels +1 or -1; refused otherwise.

    Args:
        name: what to call them in a refusal.
        value: the labels.
        count: how many there must be.
    """
    array = finite(name, value)
    if array.shape != (count,) or not np.isin(array, (-1, 1)).all():
        raise AdvlabError(f"{name} must be {count} labels +1 or -1", f"shape {array.shape}")
    return array


def cap_radius(value: Any) -> float:
    """delta of a cap, below 2.

    Args:
        value: the radius.
    """
    radius = scalar("delta", value)
    if radius >= 2:
        raise AdvlabError("delta must be below 2, or the cap is the whole sphere", radius)
    return radius
