"""Distances of x to n points as networks with n outputs (CGRO paper, Theorem 5.2).

l1 and linf are exact. Squares make the squared l2 distance too large, by at most
`squared_distance_error`, as long as every coordinate of x is in the box; outside it they mean
nothing. The paper has n d square networks on |x_j - x_ij|; sharing them takes d, as
|x - x_i|^2 = w^2 (sum_j t_j^2 - 2 t.t_i + |t_i|^2) for x = low + w t.
"""

from typing import Any

import numpy as np
from scipy import sparse

from ...core.checks import Array, Scalar, chosen, length, points_of, whole
from ...core.errors import AdvlabError
from .networks import Layer, Network, across, affine, chain, copies
from .squares import SHIFTS, square_error, square_network, square_output, square_step

STYLES = ("shared", "paper")


def squared_distance_error(d: int, depth: int, width: Scalar) -> float:
    """e1 = w^2 d 2^{-2k-2}: how far squared distances exceed the truth at most."""
    return length("width", width) ** 2 * whole("d", d, 1) * square_error(depth)


def squared_distances(
    points: Any, depth: int, low: Scalar, width: Scalar, style: str = "shared"
) -> Network:
    """|x - x_i|^2 for x and points in [low, low + width]^d; never below the truth.

    d (22k - 6) + 1 + n (d + 2) parameters if squares are shared, n (20 k d + 1) in the paper's way.
    """
    rows, k, w = points_of(points), whole("depth", depth, 1), length("width", width)
    corner = float(low)
    t = (rows - corner) / w
    # Rounding may put the outermost point a little outside its own box.
    if t.min() < -1e-9 or t.max() > 1 + 1e-9:
        raise AdvlabError(
            f"points in the box from {corner:.6g} to {corner + w:.6g}",
            f"coordinates from {rows.min():.6g} to {rows.max():.6g}",
        )
    if chosen("style", style, STYLES) == "shared":
        return Network((*_squares(rows.shape[1], k, corner, w), *_gathered(t, w, k)))
    squares = across(square_network(k), rows.size)
    sums = affine(w**2 * copies(np.ones((1, rows.shape[1])), len(rows)))
    return chain(_differences(rows / w, 1 / w), squares, sums)


def l1_distances(points: Any) -> Network:
    """sum_j |x_j - x_ij|: n (6d + 1) parameters."""
    rows = points_of(points)
    return chain(_differences(rows), affine(copies(np.ones((1, rows.shape[1])), len(rows))))


def linf_distances(points: Any) -> Network:
    """max_j |x_j - x_ij|, by a tournament of max(a, b) = relu(a - b) + relu(b) for a, b >= 0."""
    rows = points_of(points)
    n, d = rows.shape
    network = _differences(rows)
    while d > 1:
        network, d = chain(network, across(_round(d), n)), (d + 1) // 2
    return network


def linf_indicators(points: Any, delta: Scalar, gap: Scalar) -> Network:
    """relu of its n outputs: 1 up to linf distance delta from x_i, 0 from delta + gap on.

    1 - sum_j [relu((x_j - x_ij - delta)/gap) + relu((x_ij - x_j - delta)/gap)]: 6d + 1 parameters a
    point. With an infinite gap it is 1 everywhere.
    """
    if not gap > 0:
        raise AdvlabError("gap must be positive", gap)
    rows, slope = points_of(points), 1 / float(gap)
    n, d = rows.shape
    first = _sides(rows, slope, length("delta", delta))
    return Network((first, Layer(copies(-np.ones((1, 2 * d)), n), np.ones(n))))


def _sides(rows: Array, slope: float, margin: float = 0.0) -> Layer:
    """Unit 2 (i d + j) looks above x_ij + margin, the next one below: each sees one coordinate."""
    n, d = rows.shape
    signs = np.tile([slope, -slope], n * d)
    columns = np.tile(np.repeat(np.arange(d), 2), n)
    weight = sparse.csr_array((signs, (np.arange(2 * n * d), columns)), shape=(2 * n * d, d))
    return Layer(weight, -signs * np.repeat(rows.ravel(), 2) - slope * margin)


def _differences(rows: Array, scale: float = 1.0) -> Network:
    """|scale x_j - rows_ij|, all n d of them."""
    first = _sides(rows / scale, scale)
    return Network((first, Layer(copies(np.ones((1, 2)), rows.size), np.zeros(rows.size))))


def _round(d: int) -> Network:
    """From d numbers >= 0 to the maxima of neighbours; an odd one goes through."""
    pairs, odd = divmod(d, 2)
    duel, through = np.array([[1.0, -1.0], [0.0, 1.0]]), np.ones((odd, odd))
    first = sparse.block_diag([*[sparse.csr_array(duel)] * pairs, *[through] * odd], format="csr")
    last = sparse.block_diag([*[np.ones((1, 2))] * pairs, *[through] * odd], format="csr")
    parts = (sparse.csr_array(first), sparse.csr_array(last))
    return Network(tuple(Layer(part, np.zeros(part.shape[0])) for part in parts))  # type: ignore[index]


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


def _gathered(t: Array, box: float, k: int) -> list[Layer]:
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
