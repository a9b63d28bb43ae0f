"""Robust interpolation in l2 by square networks, O(d log + nd) parameters (CGRO spec 2.6).

Inputs are moved to t in [0, 1]^d, and |x - x_i|^2 = w^2 (sum_j t_j^2 - 2 t.t_i + |t_i|^2) with w
the width of the box. One square network a coordinate serves all n points; their error adds up to
e1 = w^2 d 2^{-2k-2}, always upwards. A soft indicator of two ReLUs is 1 up to delta^2 + e1 and 0
from (separation - delta)^2 on, which needs e1 < separation (separation - 2 delta).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ...errors import AdvlabError
from ..linear.inputs import Array, Scalar
from .inputs import length, points_of, signs, whole
from .networks import Layer, Network, copies
from .separation import require_separated
from .squares import SHIFTS, square_error, square_output, square_step

DEEPEST = 20
"""Beyond it, what a square network adds is lost in the rounding of float64."""


@dataclass(frozen=True)
class RobustL2:
    """The network, the depth k of its square networks, and the error of its squared distances."""

    network: Network
    depth: int
    error: float
    """e1: squared distances come out too large, by at most this, within delta of the data."""
    room: float
    """separation (separation - 2 delta): what the error must stay below."""

    @property
    def parameters(self) -> int:
        """d (22k - 6) + n (d + 8) + 2."""
        return self.network.parameters

    def __call__(self, x: Any) -> Array:
        return self.network(x)


def robust_l2(points: Any, labels: Any, delta: Scalar, depth: int | None = None) -> RobustL2:
    """sum_i y_i I(|x - x_i|^2) as a ReLU network: y f >= 1 on the ball of radius delta around each
    point, and f = y where balls of equal labels are as far apart as those of different ones.

    By default the least depth whose error fills at most half of its room.
    """
    radius, found = length("delta", delta), require_separated(points, labels, delta, "l2")
    rows = points_of(points)
    y = signs(labels, len(rows))
    low = rows.min() - radius
    box = rows.max() + radius - low
    # With one label only, any distance separates: the indicators need not fall at all.
    apart = min(found.distance, 2 * radius + 2 * box * np.sqrt(rows.shape[1]))
    room = apart * (apart - 2 * radius)
    scale = box**2 * rows.shape[1]
    k = _least_depth(scale, room) if depth is None else whole("depth", depth, 1)
    error = scale * square_error(k)
    if not error < room:
        raise AdvlabError(
            f"square networks with an error below separation (separation - 2 delta) = {room:.3g}",
            f"error {error:.3g} at depth {k}",
            f"use depth {_least_depth(scale, room)}",
        )
    inside, outside = radius**2 + error, (apart - radius) ** 2
    layers = (
        *_squares(rows.shape[1], k, low, box),
        *_distances((rows - low) / box, box, k),
        *_indicators(y, inside, outside),
    )
    return RobustL2(Network(layers), k, error, room)


def _least_depth(scale: float, room: float) -> int:
    """The least k with an error of at most half the room."""
    k = max(1, int(np.ceil(np.log2(scale / (2 * room)) / 2)))
    if k > DEEPEST:
        raise AdvlabError(
            f"a gap between the labels that square networks of depth {DEEPEST} resolve",
            f"one that needs depth {k}",
            "use a smaller delta",
        )
    return k


def _squares(d: int, k: int, low: float, box: float) -> list[Layer]:
    """k layers: for each coordinate a square network (four units) and t itself (the fifth)."""
    shifts = np.tile(np.r_[SHIFTS, 0.0, 0.0], d)
    layers = [Layer(copies(np.full((5, 1), 1 / box), d), shifts - low / box)]
    for s in range(1, k):
        step = np.zeros((5, 5))
        step[:4, :4], step[4, 4] = square_step(s), 1.0
        # Within itself the square network is dense.
        wired = np.pad(np.ones((4, 4)), (0, 1))
        wired[4, 4] = 1.0
        layers.append(Layer(copies(step, d, wired), shifts))
    return layers


def _distances(t: Array, box: float, k: int) -> list[Layer]:
    """(sum_j q(t_j), t), then the n squared distances; all are positive, so ReLUs leave them."""
    n, d = t.shape
    total = np.tile(np.r_[square_output(k), 0.0], d)[None]
    carry = copies(np.eye(5)[4:], d, np.eye(5)[4:])
    gather = sparse.csr_array(sparse.vstack([sparse.csr_array(total), carry]))
    weight = box**2 * np.hstack([np.ones((n, 1)), -2 * t])
    return [
        Layer(gather, np.zeros(1 + d)),
        Layer(weight, box**2 * (t**2).sum(axis=1)),
    ]


def _indicators(y: Array, inside: float, outside: float) -> list[Layer]:
    """sum_i y_i I_i, I = 1 - relu(u) + relu(u - 1) with u = (s - inside)/(outside - inside)."""
    n, slope = len(y), 1 / (outside - inside)
    start = -slope * inside
    return [
        Layer(copies(np.full((2, 1), slope), n), np.tile([start, start - 1], n)),
        Layer(np.kron(y, [-1.0, 1.0])[None], np.array([y.sum()])),
    ]
