"""How neurons correlate with their start, their end and each other.

theta is the cosine of the principle of feature purification (section 1), G1 and G2 are the ratios
of Theorem 5.1a, G7 that of Theorem 5.3c.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

ALIVE = 0.2
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
ROWS = 512
"""Rows of the matrix of pairs that are held at one time."""


@torch.no_grad()
def alive(weight: Float[Tensor, "*R m d"]) -> Bool[Tensor, "*R m"]:
    """Neurons longer than a fifth of the longest."""
    length = weight.norm(dim=-1)
    return length > ALIVE * length.amax(-1, keepdim=True)


@torch.no_grad()
def theta(a: Float[Tensor, "*R m d"], b: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R m"]:
    """|<a_i, b_i>| / (|a_i| |b_i|) neuron by neuron; 0 where one of them is zero."""
    return (unit(a) * unit(b)).sum(-1).abs()


@torch.no_grad()
def unit(weight: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R m d"]:
    """Each neuron over its length; zero stays zero."""
    length = weight.norm(dim=-1, keepdim=True)
    return torch.where(length > 0, weight / length, 0.0)


@dataclass(frozen=True)
class Spread:
    """The law of one number per neuron, for each replicate; NaN where no neuron counts."""

    mean: Float[Tensor, "*R"]
    quantiles: Float[Tensor, "levels *R"]
    below: Float[Tensor, "*R"]
    """The share below the threshold."""
    above: Float[Tensor, "*R"]


@torch.no_grad()
def spread(
    values: Float[Tensor, "*R m"],
    threshold: float,
    keep: Bool[Tensor, "*R m"] | None = None,
    levels: tuple[float, ...] = LEVELS,
) -> Spread:
    """Mean, quantiles and shares on either side of a threshold.

    Args:
        values: one number per neuron.
        threshold: of `below` and `above`.
        keep: the neurons that count; all if left out.
        levels: of the quantiles.
    """
    kept = values if keep is None else torch.where(keep, values, torch.nan)
    known = ~kept.isnan()

    def share(past: Tensor) -> Tensor:
        return (past & known).sum(-1) / known.sum(-1).to(values)

    return Spread(
        kept.nanmean(-1),
        kept.nanquantile(kept.new_tensor(levels), dim=-1),
        share(kept < threshold),
        share(kept > threshold),
    )


@dataclass(frozen=True)
class Pairs:
    """theta(w_i, w_j) over all i != j: its mean, and the share below the threshold."""

    mean: Float[Tensor, "*R"]
    below: Float[Tensor, "*R"]


@torch.no_grad()
def pairs(
    weight: Float[Tensor, "*R m d"],
    threshold: float = 0.2,
    keep: Bool[Tensor, "*R m"] | None = None,
) -> Pairs:
    """theta over the pairs of neurons, some rows of their matrix at a time.

    Args:
        weight: the neurons.
        threshold: of the share below.
        keep: the neurons that count; all if left out.
    """
    flat = unit(weight).flatten(0, -3) if weight.ndim > 2 else unit(weight)[None]
    chosen = torch.ones_like(flat[..., 0], dtype=torch.bool)
    if keep is not None:
        chosen = keep.reshape(chosen.shape)
    found = torch.stack([_pairs(w[k], threshold) for w, k in zip(flat, chosen, strict=True)])
    mean, below = found.mT.reshape(2, *weight.shape[:-2])
    return Pairs(mean, below)


def _pairs(w: Float[Tensor, "m d"], threshold: float) -> Float[Tensor, " 2"]:
    total, count = w.new_zeros(()), w.new_zeros(())
    for block in w.split(ROWS):
        c = (block @ w.mT).abs()
        total, count = total + c.sum(), count + (c < threshold).sum()
    own = (w * w).sum(1)
    off = torch.stack([total - own.sum(), count - (own < threshold).sum()])
    return off / (len(w) * (len(w) - 1))


@torch.no_grad()
def start_ratio(
    start: Float[Tensor, "*R m d"], weight: Float[Tensor, "*R m d"]
) -> Float[Tensor, "*R"]:
    """G1 (Theorem 5.1a): sum_i <w_i, w_i0>^2 / sum_i |w_i|^2 |w_i0|^2."""
    inner, sizes = (start * weight).sum(-1) ** 2, squares(start) * squares(weight)
    return inner.sum(-1) / sizes.sum(-1)


@torch.no_grad()
def pair_ratio(weight: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R"]:
    """G2 (Theorem 5.1a): |W W'|_F^2 / |W|_F^4, by the smaller of the two Gram matrices."""
    wide = weight.shape[-2] < weight.shape[-1]
    gram = weight @ weight.mT if wide else weight.mT @ weight
    return squares(gram).sum(-1) / squares(weight).sum(-1) ** 2


@torch.no_grad()
def pair_floor(weight: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R"]:
    """1 / rank(W), below which G2 cannot fall (Cauchy-Schwarz on the eigenvalues of W W')."""
    return 1 / torch.linalg.matrix_rank(weight).to(weight)


@torch.no_grad()
def move_ratio(
    start: Float[Tensor, "*R m d"], weight: Float[Tensor, "*R m d"]
) -> Float[Tensor, "*R"]:
    """G7 (Theorem 5.3c): sum_i |w_i(T_f) - w_i(t)|^2 / sum_i |w_i(T_f)|^2, `start` at T_f."""
    return squares(weight - start).sum(-1) / squares(start).sum(-1)


@torch.no_grad()
def turn_ratio(
    start: Float[Tensor, "*R m d"],
    weight: Float[Tensor, "*R m d"],
    keep: Bool[Tensor, "*R m"] | None = None,
) -> Float[Tensor, "*R"]:
    """G7 of the neurons scaled to length 1: 2 - 2 cos on average, blind to growth in norm."""
    moved = squares(unit(weight) - unit(start))
    return spread(moved, 1.0, keep, levels=(0.5,)).mean


@torch.no_grad()
def squares(weight: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R m"]:
    """|w_i|^2"""
    return (weight * weight).sum(-1)
