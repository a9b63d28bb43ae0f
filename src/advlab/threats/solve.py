"""Exact one-parameter solves behind the balls: a sort, or a few rounds, and a root."""

import torch
from jaxtyping import Float
from torch import Tensor


def shrink_to_l1(
    size: Float[Tensor, "batch d"], room: Float[Tensor, "batch d"], radius: float
) -> Float[Tensor, "batch d"]:
    """clip(size - tau, 0, room) with the smallest tau >= 0 that makes the sum at most radius.

    This is the Euclidean projection of `size` >= 0 on {0 <= z <= room, sum z <= radius}: the sum
    falls piecewise linearly in tau, with kinks where a coordinate leaves its bound or reaches zero.
    """
    free = torch.minimum(size, room)
    kinks, order = torch.cat([(size - room).clamp(min=0.0), size], dim=1).sort(dim=1)
    change = torch.cat([-torch.ones_like(size), torch.ones_like(size)], dim=1).gather(1, order)
    slope = change.cumsum(1)
    fall = torch.cat([torch.zeros_like(kinks[:, :1]), slope[:, :-1] * kinks.diff(dim=1)], dim=1)
    value = free.sum(1, keepdim=True) + fall.cumsum(1)
    # The last kink whose value is still above the radius starts the segment that holds tau.
    start = ((value > radius).sum(1, keepdim=True) - 1).clamp(min=0)
    steepness = -slope.gather(1, start).clamp(max=-1.0)
    tau = kinks.gather(1, start) + (value.gather(1, start) - radius) / steepness
    inside = free.sum(1, keepdim=True) <= radius
    out = torch.minimum((size - tau).clamp(min=0.0), room)
    out = torch.where(inside, free, out)
    # Rounding in long sums may leave a hair too much; towards zero every bound still holds.
    total = out.sum(1, keepdim=True).clamp(min=max(radius, torch.finfo(out.dtype).tiny))
    return out * (radius / total).clamp(max=1.0)


def stretch_to_l2(
    size: Float[Tensor, "batch d"],
    room: Float[Tensor, "batch d"],
    radius: float,
    most: float = float("inf"),
) -> Float[Tensor, "batch d"]:
    """min(s * size, room) with the largest s <= most that keeps the length at most radius.

    The squared length grows piecewise quadratically in s, with kinks where a coordinate meets its
    bound. With most = 1 this projects; with most = inf it maximises <size, z> over the same set.
    """
    largest = size.amax(1, keepdim=True)
    size = torch.where(largest > 0, size / largest, 0.0)
    s = _scale_by_rounds(size, room, radius)
    if s is None:
        s = _scale_by_sorting(size, room, radius)
    s = torch.minimum(s, most * largest)
    return torch.where(size > 0, torch.minimum(s * size, room), 0.0)


ROUNDS = 16


def _scale_by_rounds(
    size: Float[Tensor, "batch d"], room: Float[Tensor, "batch d"], radius: float
) -> Float[Tensor, "batch 1"] | None:
    """s from below: stretch what is free to fill the radius, see what meets its bound, repeat.

    What is bounded at one s is bounded at all larger ones, so this ends; most often after a few
    rounds, each far cheaper than a sort. None where it has not.
    """
    bounded = torch.zeros_like(size, dtype=torch.bool)
    room2, size2 = room.square(), size.square()
    tiny = torch.finfo(size.dtype).tiny
    for _ in range(ROUNDS):
        free = (~bounded).to(size)
        left = torch.linalg.vecdot(free, size2)[:, None]
        used = torch.linalg.vecdot(free.neg_().add_(1), room2)[:, None]
        s = ((radius**2 - used).clamp(min=0.0) / left.clamp(min=tiny)).sqrt()
        s = torch.where(left > 0, s, float("inf"))
        now = (s * size > room).logical_or_(bounded)
        if torch.equal(now, bounded):
            return s
        bounded = now
    return None


def _scale_by_sorting(
    size: Float[Tensor, "batch d"], room: Float[Tensor, "batch d"], radius: float
) -> Float[Tensor, "batch 1"]:
    """s by all kinks in their order."""
    kinks, order = torch.where(size > 0, room / size, float("inf")).sort(dim=1)
    bounded = kinks.isfinite()
    room2 = torch.where(bounded, room.gather(1, order) ** 2, 0.0)
    size2 = size.gather(1, order) ** 2
    used = room2.cumsum(1) - room2
    left = size2.flip(1).cumsum(1).flip(1)
    reached = torch.where(left > 0, used + torch.where(bounded, kinks, 0.0) ** 2 * left, used)
    reached = torch.where(bounded | (left <= 0), reached, float("inf"))
    enough = reached >= radius**2
    first = enough.int().argmax(1, keepdim=True)
    budget = (radius**2 - used.gather(1, first)).clamp(min=0.0)
    s = (budget / left.gather(1, first).clamp(min=torch.finfo(size.dtype).tiny)).sqrt()
    return torch.where(enough.any(1, keepdim=True), s, float("inf"))


def fill_l1(
    gain: Float[Tensor, "batch d"], room: Float[Tensor, "batch d"], radius: float
) -> Float[Tensor, "batch d"]:
    """Maximise <gain, z> over {0 <= z <= room, sum z <= radius}: the largest gains come first."""
    _, order = gain.sort(dim=1, descending=True, stable=True)
    offered = room.gather(1, order).clamp(max=radius)
    before = offered.cumsum(1) - offered
    spent = torch.minimum(offered, (radius - before).clamp(min=0.0))
    spent = torch.where(gain.gather(1, order) > 0, spent, 0.0)
    return torch.zeros_like(gain).scatter(1, order, spent)
