"""Networks at drawn noise, and with frozen gates: the robust coupling of appendix F.

Neurons are split as w_i(t) = g_i + v_i(t), where g_i is the part of w_i(T_f) on its own atoms
(Definition F.9).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from .networks import Nets


@torch.no_grad()
def coupled(
    nets: Nets,
    weight: Float[Tensor, "*R m d"],
    x: Float[Tensor, "*R n d"],
    at: Float[Tensor, "*R n d"],
    rho: Float[Tensor, "*R n m"] | float = 0.0,
) -> Float[Tensor, "*R n"]:
    """g_t(mu; x, x0, rho) of Definition F.10: weights g + mu at x, with the gates of `nets` at x0.

    Linear in the weights, and f_t(x, rho) where they are those of `nets` and x0 is x.

    Args:
        nets: the networks whose gates are frozen.
        weight: g_i + mu_i.
        x: where the linear functions are evaluated.
        at: x0, where the gates are.
        rho: the noise of each neuron at each input.
    """
    u, v, b = nets.inner(at), x @ weight.mT, nets.bias[..., None, None]
    up = torch.where(u + rho >= b, v + rho - b, 0.0)
    down = torch.where(-u + rho >= b, -v + rho - b, 0.0)
    return (up - down).sum(-1)


def sampled(
    nets: Nets, x: Float[Tensor, "*R n d"], rho: Float[Tensor, "*R n m"] | float = 0.0
) -> Float[Tensor, "*R n"]:
    """f_t(w; x, rho): the networks at drawn noise."""
    return coupled(nets, nets.weight, x, x, rho)
