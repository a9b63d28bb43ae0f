"""Norms of the tensors behind the NTK lower bound (Lemma G.4).

T_{r+1}(x) = sum_i <v_i, x> <wh_i, x>^r with wh_i = w_i/|w_i|. Everything is in Gram matrices: no
tensor is made. Claim: |T_{r+1}|_F >= Omega(max |v_i| / sqrt(d)) for r >= 3C and m <= d^C.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ....core.errors import AdvlabError
from .correlations import unit


@torch.no_grad()
def tensor_norm(
    v: Float[Tensor, "*R m d"], w: Float[Tensor, "*R m d"], r: int
) -> Float[Tensor, "*R"]:
    """|sum_i v_i x wh_i x ... x wh_i|_F = sqrt(sum_il <v_i, v_l> c_il^r), c_il = <wh_i, wh_l>."""
    c = _cosines(w, r)
    return _root(((v @ v.mT) * c**r).sum(dim=(-2, -1)))


@torch.no_grad()
def symmetric_tensor_norm(
    v: Float[Tensor, "*R m d"], w: Float[Tensor, "*R m d"], r: int
) -> Float[Tensor, "*R"]:
    """The same symmetrised, which is the norm of the polynomial T_{r+1} itself:

    its square is (1/(r+1)) sum_il [<v_i, v_l> c_il^r + r <v_i, wh_l> <wh_i, v_l> c_il^(r-1)].
    """
    c = _cosines(w, r)
    cross = v @ unit(w).mT
    total = (v @ v.mT) * c**r + r * cross * cross.mT * c ** (r - 1)
    return _root(total.sum(dim=(-2, -1)) / (r + 1))


@torch.no_grad()
def claimed_norm(v: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R"]:
    """max_i |v_i| / sqrt(d), to hold the norms against."""
    return v.norm(dim=-1).amax(-1) / v.shape[-1] ** 0.5


@torch.no_grad()
def least_ratio(w: Float[Tensor, "m d"], r: int) -> tuple[Float[Tensor, ""], Float[Tensor, "m d"]]:
    """The exact minimum over v of |T_{r+1}|_F / (max_i |v_i| / sqrt(d)), and a v that attains it.

    The symmetric norm is a quadratic form v' K v on R^(m d), and the least of v' K v over all v
    with |v_i| = 1 is c_i = 1/lambda_max of the i-th diagonal block of K^-1. Every v has a longest
    row i, so its ratio is at least sqrt(d c_i); and where c_i is least over i, no other row of its
    minimiser is longer, so the minimum is sqrt(d min_i c_i).

    Args:
        w: the neurons; the tensors must be independent, which m = d Gaussian ones are for r >= 2.
        r: the power.

    K has (m d)^2 entries: 4096^2 at m = d = 64.
    """
    m, d = w.shape
    c, wh = _cosines(w, r), unit(w)
    # Block (i, l) is (c_il^r I + r c_il^(r-1) wh_l wh_i') / (r + 1).
    K = torch.einsum("il,la,ib->ialb", r * c ** (r - 1), wh, wh)
    K += (c**r)[:, None, :, None] * torch.eye(d).to(w)[None, :, None, :]
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(K.reshape(m * d, m * d) / (r + 1)))
    blocks = inverse.reshape(m, d, m, d).diagonal(dim1=0, dim2=2).permute(2, 0, 1)
    sizes, directions = torch.linalg.eigh(blocks)
    i = int(sizes[:, -1].argmax())
    v = inverse.reshape(m, d, m, d)[:, :, i] @ directions[i, :, -1]
    return (d / sizes[i, -1]).sqrt(), v / sizes[i, -1]


def _cosines(w: Float[Tensor, "*R m d"], r: int) -> Float[Tensor, "*R m m"]:
    if r < 1:
        raise AdvlabError("a power r of at least 1", r)
    return unit(w) @ unit(w).mT


def _root(square: Float[Tensor, "*R"]) -> Float[Tensor, "*R"]:
    # Sums that cancel may end a rounding below zero.
    return square.clamp(min=0.0).sqrt()
