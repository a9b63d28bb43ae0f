"""Lower bounds of y f on the whole ball that always hold (b >= 0, any norm); ours.

A unit h(u) = S(u - b) - S(-u - b) rises with slope G(u) in [0, 1], and G grows with |u|. While x
moves within the ball, u_i stays within r_i = tau |w_i|_* of <w_i, x>, |.|_* the dual norm.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ....core.errors import AdvlabError
from ....threats import Ball
from ....threats.norms import dual_order
from .networks import Nets


@torch.no_grad()
def fixed_bound(
    nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"], ball: Ball
) -> Float[Tensor, "*R n"]:
    """y f(x) - tau |sum of the w_i that stay open|_* - tau sum_{i ambiguous} |w_i|_*, sigma = 0.

    A neuron is ambiguous unless ||u_i| - b| > r_i; it cannot change by more than r_i.

    Args:
        nets: networks without noise.
        x: inputs.
        y: labels in {-1, 1}.
        ball: the threat.
    """
    if nets.smooth:
        raise AdvlabError("networks without noise", "sigma > 0", "use slope_bound")
    u, r = nets.inner(x), reach(nets, ball)
    b = nets.bias[..., None, None]
    decided = (u.abs() - b).abs() > r
    spread = dual_norm((decided & (u.abs() > b)).to(u) @ nets.weight, ball) * ball.radius
    return y * nets.units(u).sum(-1) - spread - torch.where(decided, 0.0, r).sum(-1)


@torch.no_grad()
def slope_bound(
    nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"], ball: Ball
) -> Float[Tensor, "*R n"]:
    """y f(x) - tau |sum_i c_i w_i|_* - sum_i e_i r_i, for any sigma.

    On |u - u_i| <= r_i the slope of unit i is in [G(|u_i| - r_i), G(|u_i| + r_i)], where the lower
    end is G(0) if r_i >= |u_i|. With c_i the middle and e_i half the width of that interval,
    h(u) - h(u_i) = c_i (u - u_i) + a rest of at most e_i r_i. Arguments as in `fixed_bound`, with
    or without noise.
    """
    u, r = nets.inner(x), reach(nets, ball)
    low, high = nets.gates((u.abs() - r).clamp(min=0.0)), nets.gates(u.abs() + r)
    spread = dual_norm(((low + high) / 2) @ nets.weight, ball) * ball.radius
    return y * nets.units(u).sum(-1) - spread - ((high - low) / 2 * r).sum(-1)


@torch.no_grad()
def certified_margin(
    nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"], ball: Ball
) -> Float[Tensor, "*R n"]:
    """The better of the two bounds that apply: y f is at least this on the ball.

    Arguments as in `fixed_bound`, with or without noise.
    """
    bound = slope_bound(nets, x, y, ball)
    return bound if nets.smooth else torch.maximum(bound, fixed_bound(nets, x, y, ball))


def reach(nets: Nets, ball: Ball) -> Float[Tensor, "*R 1 m"]:
    """r_i = tau |w_i|_*"""
    return ball.radius * dual_norm(nets.weight, ball)[..., None, :]


def dual_norm(vectors: Float[Tensor, "*R n d"], ball: Ball) -> Float[Tensor, "*R n"]:
    """The norm dual to the ball's, row by row."""
    if not ball.within_radius:
        raise AdvlabError("a set that states that it lies within its radius", type(ball).__name__)
    return torch.linalg.vector_norm(vectors, dual_order(ball.order), dim=-1)
