"""Uniform draws from a ball, also when a box cuts it."""

import torch
from jaxtyping import Float
from torch import Tensor

from ..core.randomness import Rng, generator, normal, uniform
from .base import unit_l2
from .norms import Norm

TRIES = 32
ROUNDING = 1e-6
"""A box that cuts off less than this share of the radius cuts by rounding alone."""
MANY, FEW_TRIES = 64, 4
"""In many dimensions a box that cuts the ball at all leaves next to no draw: soon given up."""


def uniform_in_ball(
    norm: Norm,
    radius: float,
    low: Float[Tensor, "batch d"],
    high: Float[Tensor, "batch d"],
    rng: Rng,
) -> Float[Tensor, "batch d"]:
    """A uniform move with norm <= radius and low <= move <= high (low <= 0 <= high)."""
    if norm == "linf":
        return low + (high - low) * uniform(low, rng)
    draw = _in_l2 if norm == "l2" else _in_l1
    move = draw(low, rng) * radius
    reach = (1 - ROUNDING) * radius
    if bool((low <= -reach).all() and (high >= reach).all()):
        return move
    # How often is drawn again depends on all rows, so that is done from a stream of its own: what
    # is drawn next is the same alone and in company.
    rng = split(rng, 1)[0]
    # A side without room folds onto the other: by symmetry that half of the ball stays uniform.
    move = _fold(move, low, high)
    for _ in range(TRIES if low.shape[1] < MANY else FEW_TRIES):
        out = ((move < low) | (move > high)).any(1)
        if not bool(out.any()):
            return move
        again = _fold(draw(low, rng) * radius, low, high)
        move = torch.where(out[:, None], again, move)
    out = ((move < low) | (move > high)).any(1, keepdim=True)
    return torch.where(out, _on_the_shell(norm, radius, low, high, rng), move)


def split(rng: Rng, count: int) -> list[Rng]:
    """Independent streams, each for draws whose number may depend on other rows.

    One number is taken from each generator, however many streams are made of it.
    """
    if isinstance(rng, torch.Generator):
        seed = int(torch.randint(2**62, (), generator=rng, device=rng.device))
        return [generator("stream", k, seed) for k in range(count)]
    each = [split(one, count) for one in rng]
    return [[one[k] for one in each] for k in range(count)]  # type: ignore[misc]


def _fold(move: Tensor, low: Tensor, high: Tensor) -> Tensor:
    move = torch.where(low >= 0, move.abs(), move)
    return torch.where(high <= 0, -move.abs(), move)


def _in_l2(like: Float[Tensor, "batch d"], rng: Rng) -> Float[Tensor, "batch d"]:
    length = uniform(like[:, :1], rng) ** (1.0 / like.shape[1])
    return unit_l2(normal(like, rng)) * length


def _in_l1(like: Float[Tensor, "batch d"], rng: Rng) -> Float[Tensor, "batch d"]:
    """d + 1 exponentials over their sum are uniform on a simplex; drop one, give random signs."""
    wide = torch.empty(len(like), like.shape[1] + 1, dtype=like.dtype, device=like.device)
    weights = -torch.log1p(-uniform(wide, rng))
    size = weights[:, :-1] / weights.sum(1, keepdim=True)
    return torch.where(uniform(like, rng) < 0.5, -size, size)


def _on_the_shell(
    norm: Norm, radius: float, low: Tensor, high: Tensor, rng: Rng
) -> Float[Tensor, "batch d"]:
    """Coordinates from the truncated normal (l2) or Laplace (l1) law whose norm meets the radius.

    In many dimensions a uniform point lies near the sphere, and there its coordinates are nearly
    independent with that law (the equivalence of ensembles): uniform up to O(1/sqrt(d)).
    """
    u = uniform(low, rng)
    order = 2.0 if norm == "l2" else 1.0
    small, large = torch.full_like(u[:, :1], -12.0), torch.full_like(u[:, :1], 12.0)
    for _ in range(24):
        middle = (small + large) / 2
        scale = radius * 2.0**middle
        short = _truncated(norm, u, low / scale, high / scale) * scale
        fits = torch.linalg.vector_norm(short, order, dim=1, keepdim=True) <= radius
        small, large = torch.where(fits, middle, small), torch.where(fits, large, middle)
    scale = radius * 2.0**small
    move = _truncated(norm, u, low / scale, high / scale) * scale
    return move * uniform(low[:, :1], rng) ** (1.0 / low.shape[1])


def _truncated(norm: Norm, u: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The u-quantile of the standard normal or Laplace law cut to [low, high]."""
    if norm == "l2":
        below, above = torch.special.ndtr(low), torch.special.ndtr(high)
        return torch.special.ndtri(below + u * (above - below)).clamp(low, high)
    below, above = low.exp() / 2, 1 - (-high).exp() / 2
    p = below + u * (above - below)
    x = torch.where(p < 0.5, (2 * p).log(), -(2 - 2 * p).clamp(min=1e-30).log())
    return x.clamp(low, high)
