"""The shortest move onto a hyperplane, free or inside a box: the geometry of FAB and DeepFool.

Norms are named by their order: 1, 2 or infinity.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Box = tuple[float, float] | None
"""The lower and upper end of every coordinate, if there are any."""
Boxes = Box | tuple[Tensor, Tensor]
"""The same, or the ends of each coordinate."""


def onto_plane(
    order: float,
    slope: Float[Tensor, "batch d"],
    rise: Float[Tensor, " batch"],
    start: Float[Tensor, "batch d"],
    box: Boxes = None,
) -> tuple[Float[Tensor, "batch d"], Bool[Tensor, " batch"]]:
    """The move of least norm with <slope, move> = rise that keeps start + move in the box.

    Args:
        order: The order of the norm that is least: 1, 2 or infinity.
        slope, rise: One hyperplane per row.
        start: Where each move starts; it lies in the box.
        box: The lower and upper end of every coordinate, if there are any.

    Returns:
        The moves, and whether each reaches its plane. Where no move of the box rises so far, the
        one that rises furthest is given.
    """
    largest = slope.abs().amax(1)
    scale = torch.where(largest > 0, largest, 1.0)
    weight, need = slope.abs() / scale[:, None], rise.abs() / scale
    toward = slope.sign() * torch.where(rise < 0, -1.0, 1.0)[:, None]
    if box is None:
        return toward * _free(order, weight, need), (largest > 0) | (rise == 0)
    room = torch.where(toward > 0, box[1] - start, start - box[0]).clamp(min=0.0)
    return toward * _boxed(order, weight, room, need), (weight * room).sum(1) >= need


def nearest_plane(
    order: float,
    values: Float[Tensor, "batch planes"],
    slopes: Float[Tensor, "batch planes d"],
    start: Float[Tensor, "batch d"],
    box: Boxes = None,
) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch d"], Float[Tensor, " batch"]]:
    """The shortest move onto one of several planes: the move, and that plane's slope and value.

    Args:
        order: The order of the norm: 1, 2 or infinity.
        values, slopes: Plane k is where values[k] + <slopes[k], move> = 0.
        start, box: As in `onto_plane`.
    """
    dual = torch.linalg.vector_norm(slopes, _dual(order), dim=2)
    bound, ranked = (values.abs() / dual).nan_to_num(nan=float("inf")).sort(dim=1)
    length, move, best = torch.full_like(bound[:, 0], float("inf")), start * 0, ranked[:, 0].clone()
    for k in range(values.shape[1]):
        # Without the box a plane is no further away, and that rules most of them out.
        rows = (bound[:, k] < length).nonzero()[:, 0]
        if len(rows) == 0:
            break
        plane = ranked[rows, k]
        there, reached = onto_plane(
            order, slopes[rows, plane], -values[rows, plane], start[rows], box
        )
        # A plane that the box keeps out of reach is only a way out if all of them are.
        far = torch.linalg.vector_norm(there, order, dim=1)
        far = torch.where(reached, far, torch.finfo(far.dtype).max)
        closer = far < length[rows]
        chosen = rows[closer]
        move[chosen], length[chosen], best[chosen] = there[closer], far[closer], plane[closer]
    row = torch.arange(len(start), device=start.device)
    return move, slopes[row, best], values[row, best]


def _dual(order: float) -> float:
    return {1.0: float("inf"), 2.0: 2.0}.get(order, 1.0)


def _free(order: float, weight: Tensor, need: Tensor) -> Tensor:
    if order == 1:
        # The largest weight is one: all of the rise is bought there.
        first = torch.zeros_like(weight).scatter(1, weight.argmax(1, keepdim=True), 1.0)
        return first * need[:, None]
    speed = _speed(order, weight)
    return speed * (need / (weight * speed).sum(1).clamp(min=1e-30))[:, None]


def _boxed(order: float, weight: Tensor, room: Tensor, need: Tensor) -> Tensor:
    if order == 1:
        return _best_value_first(weight, room, need)
    return _together(weight, _speed(order, weight), room, need)


def _speed(order: float, weight: Tensor) -> Tensor:
    """Free coordinates of the best move are a multiple of this: the weights in l2, one in linf."""
    return weight if order == 2 else (weight > 0).to(weight)


def _best_value_first(weight: Tensor, room: Tensor, need: Tensor) -> Tensor:
    """l1 pays alike for every coordinate, so the heaviest are used up first."""
    heavy, order = weight.sort(dim=1, descending=True, stable=True)
    gain = heavy * room.gather(1, order)
    left = need[:, None] - (gain.cumsum(1) - gain)
    spent = torch.where(heavy > 0, left / heavy.clamp(min=1e-30), 0.0).clamp(min=0.0)
    return torch.zeros_like(weight).scatter(1, order, torch.minimum(spent, room.gather(1, order)))


def _together(weight: Tensor, speed: Tensor, room: Tensor, need: Tensor) -> Tensor:
    """min(t speed, room) with the t at which sum weight * move = need, by Newton's method.

    The sum is concave and piecewise linear in t, so Newton climbs from t = 0 without overshoot and
    is exact after at most as many steps as there are kinks before the root; mostly three or four.
    """
    time, gain = torch.zeros_like(need), weight * speed
    slack = 4 * torch.finfo(need.dtype).eps * need
    for _ in range(weight.shape[1] + 1):
        move = torch.minimum(time[:, None] * speed, room)
        short = need - torch.linalg.vecdot(weight, move)
        rate = torch.linalg.vecdot(gain, (move < room).to(gain))
        step = short / rate.clamp(min=1e-30) * ((short > slack) & (rate > 0))
        if not bool((time + step > time).any()):
            break
        time = time + step
    return move
