"""Delta_1, Delta_2 and Delta_3 of the proof of Theorem 3: a lazy network less its linear part.

At weights theta, with f the network and OP1 the linear network at the same weights,

    Delta_1 = A_{eps,xi} - A_{eps,xi,OP1}                 how far the attacks are apart
    Delta_2 = f(x + A_{eps,xi}) - f_OP1(x + A_{eps,xi,OP1})   and the outputs under them
    Delta_3,j = phi'((x + A_{eps,xi})'theta_j) - phi'(0)       and the slopes

The difference of the two gradients, projected on a, is one term for each, and a remainder.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ....models.activations import Activation
from ..reductions.repeated_neurons import RepeatedNeurons, shrunk


@dataclass(frozen=True)
class ExpansionTerms:
    """The terms on a sample of n inputs, for R networks of k neurons."""

    attacks: Float[Tensor, "R n"]
    """|Delta_1|"""
    outputs: Float[Tensor, "R n"]
    """|Delta_2|"""
    slopes: Float[Tensor, "R n k"]
    """|Delta_3,j|"""
    weighted_slopes: Float[Tensor, "R n"]
    """|sum_j a_j^2 Delta_3,j| / |a|^2"""
    same_sign: Float[Tensor, "R n"]
    """1 where f - y and its linear part have the same sign, else 0."""
    attack_order: Float[Tensor, "R n"]
    """|x| sum_j |a_j| |theta_j|^2 / |sum_j a_j theta_j|, the proof's order of |Delta_1|."""
    slope_order: Float[Tensor, "R n k"]
    """|theta_j| (|x| + eps), the proof's order of |Delta_3,j| without phi''."""
    attack_bound: Float[Tensor, "R n"]
    """|g - g_OP1| of the attacks' gradients g = 2 (f - y) grad f, by Taylor: at most
    2 |f - y| C |x| sum_j |a_j| |theta_j|^2/sqrt h + |beta| C sum_j |a_j| (x'theta_j)^2/sqrt h, with
    C the Lipschitz constant of phi'."""
    second_order: Float[Tensor, "R n"]
    """sum_j |a_j| ((x + A)'theta_j)^2/sqrt h"""
    gradient: Float[Tensor, " R"]
    """|sum_j a_j (g_j^OP1 - g_j^OP2)|/sqrt(h), at the same weights."""
    parts: Float[Tensor, "3 R"]
    """The lengths of its terms in Delta_1, Delta_2 and Delta_3."""
    remainder: Float[Tensor, " R"]
    """The length of what is left."""


def expansion_terms(
    net: RepeatedNeurons,
    x: Float[Tensor, "R n d"],
    y: Float[Tensor, "R n"],
    eps: float,
    xi: float,
) -> ExpansionTerms:
    """Measure the terms at the networks' weights.

    Args:
        net: the networks; their activation is phi.
        x, y: the sample of each.
        eps, xi: of the surrogate attack, xi as in its definition.
    """
    beta, slope0 = net.linear_part[:, None], net.activation.slope
    residual = net.values(x)[0] - y
    linear = (x * beta).sum(2) - y
    attack = net.attack(x, y, eps, xi)
    plain = shrunk(2 * linear[:, :, None] * beta, eps, xi)
    value, slope = net.values(x + attack)
    attacked = ((x + plain) * beta).sum(2)
    d1, d2, d3 = attack - plain, value - attacked, slope - slope0
    left = (attacked - y)[:, :, None]
    squares = net.top.square()
    share = d3 @ squares / len(squares)
    scale = slope0 * squares.mean()
    parts = -2 * torch.stack(
        [
            (scale * d1 * left).mean(1),
            (scale * (x + plain) * d2[:, :, None]).mean(1),
            (share[:, :, None] * (x + plain) * left).mean(1),
        ]
    )
    linear_net = replace(net, activation=straight(slope0))
    project = torch.einsum(
        "rkd,k->rd", linear_net.gradient(x, y, eps, xi) - net.gradient(x, y, eps, xi), net.weights
    )
    size, weights = net.theta.norm(dim=2), net.weights.abs()
    curve = net.activation.lipschitz or 0.0
    bend = 2 * residual.abs() * x.norm(dim=2) * (size**2 @ weights)[:, None]
    bow = beta.norm(dim=2) * ((x @ net.theta.mT).square() @ weights)
    lean = (net.top.abs() * size**2).sum(1) / torch.einsum("rkd,k->rd", net.theta, net.top).norm(
        dim=1
    )
    return ExpansionTerms(
        attacks=d1.norm(dim=2),
        outputs=d2.abs(),
        slopes=d3.abs(),
        weighted_slopes=share.abs() / squares.mean(),
        same_sign=(residual * linear > 0).to(x.dtype),
        attack_order=x.norm(dim=2) * lean[:, None],
        slope_order=size[:, None] * (x.norm(dim=2)[:, :, None] + eps),
        attack_bound=curve * (bend + bow),
        second_order=((x + attack) @ net.theta.mT).square() @ weights,
        gradient=project.norm(dim=1),
        parts=parts.norm(dim=2),
        remainder=(project - parts.sum(0)).norm(dim=1),
    )


def straight(slope: float) -> Activation:
    """phi(z) = phi'(0) z: the activation of OP1.

    Args:
        slope: phi'(0).
    """
    return Activation(lambda z: slope * z, slope, lambda z: torch.full_like(z, slope))
