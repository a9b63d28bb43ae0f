"""Networks with frozen gates, the reference point, the split (appendix D, F; section 2.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .correlations import squares
from .dense_mixture import coordinates
from .networks import Nets


@torch.no_grad()
def surrogate(
    nets: Nets,
    mu: Float[Tensor, "*R m d"],
    x: Float[Tensor, "*R n d"],
    at: Float[Tensor, "*R n d"] | None = None,
) -> Float[Tensor, "*R n"]:
    """g_t(mu; x, x0) = E_rho of the network with weights mu at x and the gates of `nets` at x0.

    `at` is x0, x itself if left out. Linear in mu; at mu = w and x0 = x its value and its gradient
    in mu are those of f. With v = <mu_i, x>, u = <w_i, x0> and P = Pr[u + rho > b] a unit is
    (v - b) P(u) - (-v - b) P(-u) + E[rho 1[u + rho > b]] - E[rho 1[-u + rho > b]].
    """
    u, v = nets.inner(x if at is None else at), x @ mu.mT
    b = nets.bias[..., None, None]
    opened = (v - b) * nets.side(u) + (v + b) * nets.side(-u)
    return (opened + nets.overshoot(u) - nets.overshoot(-u)).sum(-1)


@torch.no_grad()
def reference_point(
    sure: Bool[Tensor, "*R m D"],
    M: Float[Tensor, "*R d D"],
    w: Float[Tensor, "*R D"],
    alpha: float,
) -> Float[Tensor, "*R m d"]:
    """mu*_i = alpha w*_j M_j / |S_j,sure| for i in S_j,sure, 0 for other neurons (Claim D.5).

    Where every atom has a sure neuron, g_t(mu*; x) = alpha <w*, z> up to O(1/Xi2^2).
    """
    shares = sure.to(w) / sure.sum(-2, keepdim=True).clamp(min=1)
    return alpha * (shares * w[..., None, :]) @ M.mT


@dataclass(frozen=True)
class Split:
    """w_i(t) = g_i + v_i(t): own part frozen at T_f, and the rest."""

    own: Float[Tensor, "*R m d"]
    """g_i = sum_{j in S_i} A_ij(T_f) M_j"""
    rest: Float[Tensor, "*R m d"]
    """v_i(t)"""

    @property
    def mean_energy(self) -> Float[Tensor, "*R"]:
        """(1/m) sum_i |v_i|^2, claimed at most r^2 with r = Theta(k Xi2^2 / sqrt(d))."""
        return squares(self.rest).mean(-1)

    def largest(self, order: float) -> Float[Tensor, "*R"]:
        """max_i |v_i|_p: at most 1 for p = 2, O(k Xi2^2 |M|_inf) for p = 1."""
        return torch.linalg.vector_norm(self.rest, order, dim=-1).amax(-1)

    def largest_coordinate(self, M: Float[Tensor, "*R d D"]) -> Float[Tensor, "*R"]:
        """max_ij |<v_i, M_j>|, at T_f at most k Xi2^2 / d."""
        return coordinates(self.rest, M).abs().amax(dim=(-2, -1))


@torch.no_grad()
def split(
    start: Float[Tensor, "*R m d"],
    weight: Float[Tensor, "*R m d"],
    M: Float[Tensor, "*R d D"],
    own: Bool[Tensor, "*R m D"],
) -> Split:
    """The split of the weights at t; `start` are those of T_f, where the own parts are read."""
    g = torch.where(own, coordinates(start, M), 0.0) @ M.mT
    return Split(g, weight - g)


@dataclass(frozen=True)
class Couplings:
    """How far the robust surrogate is from what it stands for, on average over x."""

    robust: Float[Tensor, "*R"]
    """E|g_t(v; x + delta, x) - f_t(x + delta)|, claimed O(tau^2) (Lemmas F.11, F.13)."""
    clean: Float[Tensor, "*R"]
    """E|g_t(0; x + delta, x) - f_{T_f}(x)| (Lemmas F.12, F.14)."""


@torch.no_grad()
def couplings(
    start: Nets,
    nets: Nets,
    parts: Split,
    x: Float[Tensor, "*R n d"],
    delta: Float[Tensor, "*R n d"],
) -> Couplings:
    """Both gaps; gates are frozen at the clean x. `start` are the networks of T_f."""
    moved = x + delta
    robust = surrogate(nets, nets.weight, moved, at=x) - nets.value(moved)
    clean = surrogate(nets, parts.own, moved, at=x) - start.value(x)
    return Couplings(robust.abs().mean(-1), clean.abs().mean(-1))
