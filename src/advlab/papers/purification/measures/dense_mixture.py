"""Neurons in the basis of the dictionary: own features and the dense mixture (Theorem 5.2).

Everything is read off A = W M, A_ij = <w_i, M_j>, and w*. For an orthogonal M the rows of A are the
coordinates of the neurons, and w_i = sum_j (A_ij / w*_j) w*_j M_j.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ....core.errors import AdvlabError
from .correlations import alive, squares


@torch.no_grad()
def coordinates(
    weight: Float[Tensor, "*R m d"], M: Float[Tensor, "*R d D"]
) -> Float[Tensor, "*R m D"]:
    """A = W M"""
    return weight @ M


@torch.no_grad()
def label_direction(M: Float[Tensor, "*R d D"], w: Float[Tensor, "*R D"]) -> Float[Tensor, "*R d"]:
    """M w*, the direction of the label and of the universal attack."""
    return (M @ w[..., None])[..., 0]


@torch.no_grad()
def top(A: Float[Tensor, "*R m D"]) -> Int[Tensor, "*R m"]:
    """The atom a neuron points at: argmax_j |A_ij|."""
    return A.abs().argmax(-1)


@torch.no_grad()
def own_sets(A: Float[Tensor, "*R m D"]) -> Bool[Tensor, "*R m D"]:
    """N_i of Theorem 5.2, read off the trained weights: the top atom only."""
    return torch.zeros_like(A, dtype=torch.bool).scatter(-1, top(A)[..., None], True)


@dataclass(frozen=True)
class DenseMixture:
    """w_i = sum over N_i of alpha_ij w*_j M_j + sum outside N_i of beta_ij w*_j M_j."""

    alpha: Float[Tensor, "*R m D"]
    """Zero outside N_i."""
    beta: Float[Tensor, "*R m D"]
    """Zero on N_i."""
    own: Bool[Tensor, "*R m D"]

    @property
    def counts(self) -> Int[Tensor, "*R m"]:
        """|N_i|, claimed to be O(1)."""
        return self.own.sum(-1)

    @property
    def mean_beta(self) -> Float[Tensor, "*R"]:
        """(1/(m D)) sum_i sum_{j not in N_i} beta_ij, claimed to be k/d up to d^c."""
        return self.beta.mean(dim=(-2, -1))

    @property
    def largest_beta(self) -> Float[Tensor, "*R"]:
        """max |beta_ij|, claimed to be below k/d^(1-c)."""
        return self.beta.abs().amax(dim=(-2, -1))

    def mean_beta_over(self, k: float) -> Float[Tensor, "*R"]:
        """The average beta in units of k/d."""
        return self.mean_beta * self.own.shape[-1] / k

    def winners(self, least: float) -> Int[Tensor, "*R"]:
        """Neurons with one own atom and alpha above `least`; claimed Omega(d) of them."""
        return ((self.counts == 1) & (self.alpha.amax(-1) > least)).sum(-1)


@torch.no_grad()
def mixture(
    A: Float[Tensor, "*R m D"],
    w: Float[Tensor, "*R D"],
    own: Bool[Tensor, "*R m D"] | None = None,
) -> DenseMixture:
    """alpha and beta of every neuron.

    Args:
        A: the coordinates W M.
        w: w*, without zeros.
        own: which atoms are in N_i; the top atom if left out.
    """
    if not bool((w != 0).all()):
        raise AdvlabError("a w* without zeros", f"{int((w == 0).sum())} zeros")
    own = own_sets(A) if own is None else own
    share = A / w[..., None, :]
    return DenseMixture(torch.where(own, share, 0.0), torch.where(own, 0.0, share), own)


@torch.no_grad()
def top_energy(
    weight: Float[Tensor, "*R m d"], M: Float[Tensor, "*R d D"]
) -> Float[Tensor, "*R m"]:
    """max_j A_ij^2 / |w_i|^2; 0 for a neuron that is zero."""
    size = squares(weight)
    peak = (coordinates(weight, M) ** 2).amax(-1)
    return torch.where(size > 0, peak / size, 0.0)


@torch.no_grad()
def dense_over_top(A: Float[Tensor, "*R m D"], w: Float[Tensor, "*R D"]) -> Float[Tensor, "*R m"]:
    """sum_{j' != j} A_ij' w*_j' / |A_ij| for the top atom j: about d p at activation rate p."""
    peak = top(A)[..., None]
    each = A * w[..., None, :]
    dense = each.sum(-1) - each.gather(-1, peak)[..., 0]
    size = A.abs().amax(-1)
    return torch.where(size > 0, dense / size, 0.0)


@torch.no_grad()
def label_cosine(
    weight: Float[Tensor, "*R m d"], direction: Float[Tensor, "*R d"]
) -> Float[Tensor, "*R m"]:
    """cos(w_i, M w*); 0 for a neuron that is zero."""
    size = weight.norm(dim=-1) * direction.norm(dim=-1)[..., None]
    return torch.where(size > 0, label_parts(weight, direction) / size, 0.0)


@torch.no_grad()
def label_parts(
    weight: Float[Tensor, "*R m d"], direction: Float[Tensor, "*R d"]
) -> Float[Tensor, "*R m"]:
    """<w_i, M w*>; its sum over the neurons is claimed to be Omega(k d) (Lemma E.2)."""
    return (weight @ direction[..., None])[..., 0]


@torch.no_grad()
def covered(weight: Float[Tensor, "*R m d"], M: Float[Tensor, "*R d D"]) -> Int[Tensor, "*R"]:
    """How many atoms are the top atom of a neuron that is alive."""
    A = coordinates(weight, M)
    seen = torch.zeros_like(A[..., 0, :], dtype=torch.int64)
    return (seen.scatter_add(-1, top(A), alive(weight).long()) > 0).sum(-1)


@torch.no_grad()
def change_energy(
    before: Float[Tensor, "*R m d"],
    after: Float[Tensor, "*R m d"],
    direction: Float[Tensor, "*R d"],
) -> Float[Tensor, "*R"]:
    """The share of |W' - W|_F^2 that lies on one direction, M w*; by chance 1/d."""
    change = after - before
    along = label_parts(change, direction) / direction.norm(dim=-1)[..., None]
    return (along**2).sum(-1) / squares(change).sum(-1)


@torch.no_grad()
def idealised(
    M: Float[Tensor, "*R d D"], w: Float[Tensor, "*R D"], p: float, scale: float = 1.0
) -> Float[Tensor, "*R D d"]:
    """One neuron per atom: scale (sign(w*_j) M_j + p sum_{j' != j} w*_j' M_j'), p about k/d (6.1).

    With |w*| = 1 and orthogonal M its theta with M_j is 1/sqrt(1 + p^2 (d - 1)).

    Args:
        M: the dictionary.
        w: w*.
        p: the share of the dense mixture.
        scale: the length of the own atom.
    """
    mixed = p * (label_direction(M, w)[..., None, :] - (M * w[..., None, :]).mT)
    return scale * ((M * w.sign()[..., None, :]).mT + mixed)
