"""Which neurons are active, how often, and what one coordinate of z can do (appendix C)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .networks import Nets

TENTH = 0.1


@dataclass(frozen=True)
class ActiveNeurons:
    """How many neurons answer to each input."""

    near: Int[Tensor, "*R n"]
    """#{i: |<w_i, x>| >= b/10}, claimed to be O(k Xi2) (Lemma C.19)."""
    open: Float[Tensor, "*R n"]
    """sum_i G_i, the expected number of open gates."""


@torch.no_grad()
def active(nets: Nets, x: Float[Tensor, "*R n d"]) -> ActiveNeurons:
    """Count the neurons that answer to each input, near their bias and open."""
    u = nets.inner(x)
    near = u.abs() >= TENTH * nets.bias[..., None, None]
    return ActiveNeurons(near.sum(-1), nets.gates(u).sum(-1))


@torch.no_grad()
def activation_probability(nets: Nets, x: Float[Tensor, "*R n d"]) -> Float[Tensor, "*R m"]:
    """E_x G_i for each neuron, claimed to be O(k/d) (Lemma C.7)."""
    return nets.gates(nets.inner(x)).mean(-2)


@torch.no_grad()
def near_probability(
    nets: Nets, x: Float[Tensor, "*R n d"], share: float = TENTH
) -> Float[Tensor, "*R m"]:
    """Pr_x[|<w_i, x>| >= share b] for each neuron.

    Args:
        nets: the networks.
        x: inputs.
        share: of the bias; Lemma C.7 has c2/(10 c1), later lemmas 1/10.
    """
    u = nets.inner(x)
    return (u.abs() >= share * nets.bias[..., None, None]).double().mean(-2)


@torch.no_grad()
def gamma(nets: Nets, x: Float[Tensor, "*R n d"], share: float = TENTH) -> Float[Tensor, "*R"]:
    """Gamma_t of Lemma C.7, claimed to be O(k/d): the least that bounds Pr[|<w_i, x>| >= share b]
    for every neuron, and Pr[|rho_i| >= share b]. Arguments are those of `near_probability`.
    """
    found = near_probability(nets, x, share).amax(-1)
    if not nets.smooth:
        return found
    noise = 2 * torch.special.ndtr(-share * nets.bias / nets.sigma).double()
    return torch.maximum(found, noise)


@torch.no_grad()
def leftover(
    nets: Nets,
    x: Float[Tensor, "*R n d"],
    z: Float[Tensor, "*R n D"],
    A: Float[Tensor, "*R m D"],
    own: Bool[Tensor, "*R m D"],
) -> Float[Tensor, "*R n m"]:
    """<w_i, sum_{j not own} M_j z_j + xi>: the pre-activation without a neuron's own atoms.

    Args:
        nets: the networks.
        x: inputs M z + xi.
        z: their hidden vectors.
        A: the coordinates W M.
        own: which atoms are a neuron's own.
    """
    return nets.inner(x) - z @ torch.where(own, A, 0.0).mT


@torch.no_grad()
def leftover_share(nets: Nets, rest: Float[Tensor, "*R n m"]) -> Float[Tensor, "*R"]:
    """The share of leftovers of at most b/10 (Lemma C.19 claims all)."""
    small = rest.abs() <= TENTH * nets.bias[..., None, None]
    return small.to(rest).mean(dim=(-2, -1))


@torch.no_grad()
def coordinate_lipschitz(
    nets: Nets,
    x: Float[Tensor, "*R n d"],
    z: Float[Tensor, "*R n D"],
    A: Float[Tensor, "*R m D"],
    levels: tuple[float, ...],
    quantile: float = 0.99,
) -> Float[Tensor, "*R D"]:
    """L_j: the quantile over x of max over v = +-levels of |f(z_j = v) - f(z_j = 0)| / |v|.

    Definition C.13 takes the supremum over all |v| <= 1: a finite grid gives a lower estimate.

    Args:
        nets: the networks.
        x: inputs M z + xi.
        z: their hidden vectors.
        A: the coordinates W M.
        levels: the sizes |v| that are tried.
        quantile: over the inputs.
    """
    u = nets.inner(x)
    rows = [
        _steepness(nets, u - z[..., j, None] * A[..., None, :, j], A[..., :, j], levels)
        for j in range(z.shape[-1])
    ]
    return torch.stack([row.quantile(quantile, dim=-1) for row in rows], -1)


def _steepness(
    nets: Nets,
    u: Float[Tensor, "*R n m"],
    atom: Float[Tensor, "*R m"],
    levels: tuple[float, ...],
) -> Float[Tensor, "*R n"]:
    """max over v of |f(u + v atom) - f(u)| / |v|."""
    base = nets.units(u).sum(-1)
    moves = [sign * level for level in levels for sign in (-1, 1)]
    changes = [
        (nets.units(u + v * atom[..., None, :]).sum(-1) - base).abs() / abs(v) for v in moves
    ]
    return torch.stack(changes).amax(0)


@torch.no_grad()
def lipschitz_bound(
    A: Float[Tensor, "*R m D"], plus: Bool[Tensor, "*R m D"], k: float
) -> Float[Tensor, "*R D"]:
    """sum_{i in S_pot+} |A_ij| + k/sqrt(d) (Lemma C.20, its O(.) with constant 1).

    With every pair in `plus` the first sum alone is a bound: the units are 1-Lipschitz.
    """
    return torch.where(plus, A.abs(), 0.0).sum(-2) + k / A.shape[-1] ** 0.5


@dataclass(frozen=True)
class Rates:
    """How fast A_ij grows, by Monte Carlo (Lemmas C.8-C.11, with l' C.14-C.17)."""

    signal: Float[Tensor, "*R m D"]
    """E[y l' 1[<w_i, x> + rho >= b] z_j], claimed Theta(1/d) for sure pairs."""
    noise: Float[Tensor, "*R m D"]
    """E[y l' 1[<w_i, x> + rho >= b] <xi, M_j>]"""


@torch.no_grad()
def growth_rates(
    nets: Nets,
    x: Float[Tensor, "*R n d"],
    y: Float[Tensor, "*R n"],
    z: Float[Tensor, "*R n D"],
    M: Float[Tensor, "*R d D"],
    slope: Float[Tensor, "*R n"] | None = None,
) -> Rates:
    """The rates at given points.

    Args:
        nets: the networks.
        x: inputs M z + xi, labels `y`, hidden vectors `z`.
        y: labels in {-1, 1}.
        z: hidden vectors.
        M: the dictionary.
        slope: l' at each point, 1 if left out (phase I).
    """
    pull = y if slope is None else y * slope
    gated = (nets.side(nets.inner(x)) * pull[..., None]).mT / x.shape[-2]
    return Rates(gated @ z, gated @ ((x - z @ M.mT) @ M))
