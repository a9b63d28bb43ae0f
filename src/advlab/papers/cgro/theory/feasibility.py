"""How deep square networks must be to tell the balls of f_S apart (proof of Theorem 5.2).

A soft indicator of the squared distance is 1 up to lo = delta^2 + e1 and 0 from
hi = (sep - delta)^2 on, e1 the error of the distance. lo < hi is e1 < sep (sep - 2 delta).
"""

from dataclasses import dataclass

import numpy as np

from ....core.checks import Scalar, length, whole
from ....core.errors import AdvlabError
from ....theory.relu_calculus import least_square_depth, squared_distance_error


@dataclass(frozen=True)
class Feasible:
    """Square networks on a box that are fine enough, and the two ends of the indicators."""

    depth: int
    error: float
    """e1: squared distances come out too large, by at most this, within delta of the support."""
    room: float
    """sep (sep - 2 delta): what the error must stay below."""
    inside: float
    outside: float
    low: float
    width: float
    style: str


def least_depth(d: int, delta: Scalar, separation: Scalar, width: Scalar) -> int:
    """The least k with e1 < sep (sep - 2 delta), that is k > log2(d w^2/(4 sep (sep - 2 delta)))/2.

    Args:
        d: the dimension.
        delta: the radius of the balls.
        separation: the least distance of the two classes, above 2 delta.
        width: the range of the numbers that are squared: 1 + 2 delta for the unit box.
    """
    w = length("width", width)
    ratio = whole("d", d, 1) * w**2 / (4 * _room(length("delta", delta), separation))
    return max(1, int(np.floor(np.log2(ratio) / 2)) + 1)


def feasible(
    d: int,
    delta: float,
    separation: float,
    depth: int | None,
    style: str,
    box: tuple[float, float],
) -> Feasible:
    """Square networks for points and inputs within delta of a box, refused if too shallow.

    Args:
        d: the dimension.
        delta: the radius of the balls.
        separation: the least distance of the two classes, above 2 delta.
        depth: k of the square networks, by default the least whose error fills half of its room.
        style: "shared" squares for all points, or "paper": one set for each.
        box: the range of the coordinates of the support.
    """
    low, width = box[0] - delta, box[1] - box[0] + 2 * delta
    room = _room(delta, separation)
    k = least_square_depth(d * width**2, room) if depth is None else whole("depth", depth, 1)
    error = squared_distance_error(d, k, width)
    if not error < room:
        raise AdvlabError(
            f"square networks with an error below separation (separation - 2 delta) = {room:.3g}",
            f"error {error:.3g} at depth {k}",
            f"use depth {least_depth(d, delta, separation, width)}",
        )
    ends = delta**2 + error, (separation - delta) ** 2
    return Feasible(k, error, room, *ends, low, width, style)


def _room(delta: float, separation: Scalar) -> float:
    apart = length("separation", separation)
    if apart <= 2 * delta:
        raise AdvlabError(f"a separation above 2 delta = {2 * delta:.6g}", apart)
    return apart * (apart - 2 * delta)
