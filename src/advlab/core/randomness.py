"""Randomness is an argument: generators made from names, draws that split over replicates."""

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .errors import AdvlabError

Rng = torch.Generator | Sequence[torch.Generator]
"""One generator for all rows, or one per replicate: the rows are then R equal blocks in order."""


def generator(*name: object) -> torch.Generator:
    """The generator of a name: same name, same bits.

    Args:
        name: what tells this stream of numbers from all others, written with `str`.

    Example:
        from advlab.core.randomness import generator
        rng = generator("benign/fig1", "data", seed)
    """
    digest = hashlib.sha256("/".join(str(part) for part in name).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def generators(*name: object, seeds: Sequence[int]) -> list[torch.Generator]:
    """One generator per replicate; adding seeds changes none of the earlier ones.

    Args:
        name: what the replicates have in common.
        seeds: one number per replicate, which ends its name.
    """
    return [generator(*name, seed) for seed in seeds]


def normal(like: Tensor, rng: Rng) -> Tensor:
    """Standard normal numbers in the shape, dtype and place of `like`.

    Args:
        like: rows; with R generators their number must be a multiple of R.
        rng: one generator for all rows, or one per replicate.
    """
    return _draw(like, rng, lambda block, one: block.normal_(generator=one))


def uniform(like: Tensor, rng: Rng) -> Tensor:
    """Uniform numbers on [0, 1) in the shape, dtype and place of `like`.

    Args:
        like: rows; with R generators their number must be a multiple of R.
        rng: one generator for all rows, or one per replicate.
    """
    return _draw(like, rng, lambda block, one: block.uniform_(generator=one))


def _draw(like: Tensor, rng: Rng, fill: Callable[[Tensor, torch.Generator], object]) -> Tensor:
    """Numbers made where the generator is, then moved: a name gives the same on every device."""
    if isinstance(rng, torch.Generator):
        out = torch.empty(like.shape, dtype=like.dtype, device=rng.device)
        fill(out, rng)
        return out.to(like.device)
    if len(rng) == 0 or len(like) % len(rng):
        raise AdvlabError(
            f"{len(like)} rows must split evenly over the generators", f"{len(rng)} generators"
        )
    return torch.cat(
        [_draw(block, one, fill) for block, one in zip(like.chunk(len(rng)), rng, strict=True)]
    )
