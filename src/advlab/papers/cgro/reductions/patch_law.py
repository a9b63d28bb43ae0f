"""Patch problems in the coordinates that training moves in (CGRO paper, appendix C).

Gradient descent on f(X) = sum <w_r, X[j]>^3 never leaves W_0 + span{w*, x_k}, where x_k are the
K = N (P - 1) noise patches. It needs only u_r = <w_r, w*>, the products c_kr = <w_r, x_k> and the
Gram matrix of the x_k. With the label of its example in each noise patch, x_k -> y_k x_k, labels
disappear: v_kr = y_k c_kr. These coordinates come from d-vectors, or from their law without any.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ....core.errors import AdvlabError
from ....core.randomness import normal, uniform
from ....reductions.bartlett import bartlett
from ..data import Patches, PatchPoints


@dataclass(frozen=True)
class PatchProblem:
    """R problems and the start of their networks; K = N (P - 1), patches of an example in a row."""

    y: Float[Tensor, "R N"]
    gram: Float[Tensor, "R K K"]
    """<y_k x_k, y_l x_l>."""
    v: Float[Tensor, "R K m"]
    """y_k <w_r, x_k> at the start."""
    u: Float[Tensor, "R m"]
    """<w_r, w*> at the start."""
    weight_gram: Float[Tensor, "R m m"]
    """<w_r, w_q> at the start without the part along w*."""
    alpha: Float[Tensor, " R"]
    sigma: Float[Tensor, " R"]
    gamma: Float[Tensor, " R"]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def patches(self) -> int:
        """P."""
        return self.v.shape[1] // self.y.shape[1] + 1

    @property
    def largest(self) -> Float[Tensor, "R N"]:
        """max_{j,r} v_ijr at the start: what each example's memorisation grows from."""
        return self.v.reshape(*self.y.shape, -1).amax(-1)


def of_points(
    data: Patches, points: PatchPoints, weight: Float[Tensor, "*stack m d"]
) -> PatchProblem:
    """The coordinates of given examples and weights; without a stack axis, a stack of one.

    Args:
        data: the law of the examples.
        points: the examples.
        weight: the filters at the start, (m, d) per network.
    """
    x, y, _ = points
    if x.ndim == 3:
        return of_points(data, PatchPoints(*(one[None] for one in points)), weight[None])
    # A copy: networks train in place, and u would move with them.
    w = weight.detach().clone()
    check_memory(len(y), data)
    noise = noise_patches(data, points)
    return PatchProblem(
        y=y,
        gram=noise @ noise.mT,
        v=noise @ w.mT,
        u=w[..., 0],
        weight_gram=w[..., 1:] @ w[..., 1:].mT,
        **_scales(data, len(y)),
    )


def noise_patches(data: Patches, points: PatchPoints) -> Float[Tensor, "*stack K d"]:
    """y_k x_k, the patches of an example in their order."""
    x, y, signal = points
    kept = torch.arange(data.P) != signal[..., None]
    noise = (y[..., None, None] * x)[kept]
    return noise.reshape(*y.shape[:-1], y.shape[-1] * (data.P - 1), data.d)


def draw(data: Patches, filters: int, sigma0: float, rng: torch.Generator) -> PatchProblem:
    """A problem from its law, with w_r ~ N(0, sigma0^2 I), at a cost that does not know d.

    With Bartlett's L, L L' has the law of the Gram matrix; the weights are independent normals in
    the basis in which the patches are L, and beyond it only their own Gram matrix matters.

    Args:
        data: the law of the examples.
        filters: m.
        sigma0: the spread of the weights.
        rng: where all of it is drawn from.
    """
    k = data.n * (data.P - 1)
    y = (uniform(torch.empty(data.n, dtype=torch.float64), rng) < 0.5).double() * 2 - 1
    u = sigma0 * normal(torch.empty(filters, dtype=torch.float64), rng)
    seen = bartlett(k, data.d - 1, rng)
    inside = sigma0 * normal(seen.new_empty(seen.shape[1], filters), rng)
    beyond = sigma0 * bartlett(filters, data.d - 1 - seen.shape[1], rng)
    # Noise is symmetric: with or without the labels in it, its law is the same.
    noise = data.sigma * seen
    return PatchProblem(
        y=y[None],
        gram=(noise @ noise.T)[None],
        v=(noise @ inside)[None],
        u=u[None],
        weight_gram=(inside.T @ inside + beyond @ beyond.T)[None],
        **_scales(data, 1),
    )


def draw_stack(
    data: Patches | Sequence[Patches],
    filters: int,
    sigma0: float | Sequence[float],
    generators: Sequence[torch.Generator],
) -> PatchProblem:
    """R problems from their laws; replicate r depends on its own law and generator only.

    Args:
        data: one law for all, or R that may differ in all but N and P.
        filters: m.
        sigma0: the spread of the weights, one for all or R.
        generators: R.
    """
    each = [data] * len(generators) if isinstance(data, Patches) else list(data)
    starts = [sigma0] * len(each) if isinstance(sigma0, float | int) else list(sigma0)
    if not len(each) == len(starts) == len(generators) > 0:
        raise AdvlabError(
            "one law and one sigma0 per generator, at least one",
            f"{len(each)}, {len(starts)} and {len(generators)}",
        )
    if len({(one.n, one.P) for one in each}) > 1:
        raise AdvlabError("problems of a stack share n and P", {(one.n, one.P) for one in each})
    check_memory(len(each), each[0])
    drawn = [
        draw(*one) for one in zip(each, [filters] * len(each), starts, generators, strict=True)
    ]
    names = PatchProblem.__dataclass_fields__
    return PatchProblem(**{name: torch.cat([getattr(p, name) for p in drawn]) for name in names})


def check_memory(replicates: int, data: Patches) -> None:
    """Refuse what cannot be held: three matrices of N (P - 1) rows per replicate, float64."""
    needed = 3 * 8 * replicates * (data.n * (data.P - 1)) ** 2
    held = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > held:
        raise AdvlabError(
            f"Gram matrices that fit in {held / 2**30:.3g} GiB of memory",
            f"{needed / 2**30:.3g} GiB for {replicates} of N (P - 1) = {data.n * (data.P - 1)} "
            "noise patches",
            "lower n, P or the number of replicates in a stack",
        )


def _scales(data: Patches, replicates: int) -> dict[str, Tensor]:
    names = ("alpha", "sigma", "gamma")
    return {
        name: torch.full((replicates,), getattr(data, name), dtype=torch.float64) for name in names
    }
