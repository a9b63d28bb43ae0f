"""Sets that are made of other sets: what a product and a union have in common."""

from collections.abc import Sequence
from typing import Any

from .base import Threat


def described(parts: Sequence[Threat]) -> list[dict[str, Any]]:
    """Each set by its class and settings, so that sets of different kinds have different keys."""
    return [
        {"kind": f"{type(one).__module__}.{type(one).__qualname__}", **one.model_dump(mode="json")}
        for one in parts
    ]


def scaled(parts: Sequence[Threat], radius: float | None) -> tuple[tuple[Threat, ...], float]:
    """The sets with their radii in the same proportions, the largest of them as given.

    Args:
        parts: The sets.
        radius: What the largest radius is to be; as it is if left out.
    """
    largest = max((one.radius for one in parts), default=0.0)
    if radius is None or radius == largest or largest == 0:
        return tuple(parts), largest
    # Multiplied last, so that the largest is the radius itself.
    return tuple(one.with_radius(one.radius / largest * radius) for one in parts), radius
