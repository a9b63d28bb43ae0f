"""A certificate for networks without noise that bounds what closed neurons can do together; ours.

Bounds neuron by neuron add up the worst moves of all neurons, which no single delta can make. Here
(b >= 0, sigma = 0) with gates G_i at the clean x, t_i = <w_i, delta> and g_i as below,

    y f(x + delta) >= y f(x) + y sum_i G_i t_i - sum_i (|t_i| - g_i)_+ :

- a unit with y u_i > b loses no more than its slope says: g_i is infinite;
- a closed unit turns against the label only after t_i has crossed g_i = b + y u_i;
- an open unit with y u_i < -b gains less than its slope says after g_i = -y u_i - b.

Now (|t| - g)_+ <= q t^2 for |t| <= r with q = 1/(4 g), or (r - g)/r^2 if r < 2 g, or 0 if r <= g;
and sum_i q_i t_i^2 = delta' Q delta with Q = sum_i q_i w_i w_i'. So y f > 0 on the ball if

    y f(x) - tau |sum_i G_i w_i|_* > |delta|_2^2 lambda_max(Q),

|delta|_2 at most tau in l1 and l2, sqrt(d) tau in linf. Small g_i, whose q_i explode, are raised to
s at a price of s - g_i, since (|t| - g)_+ <= (|t| - s)_+ + s - g for g <= s.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ....core.errors import AdvlabError
from ....threats import Ball
from ....threats.norms import enclosing_exponent
from .certificate import certified_margin, dual_norm, reach
from .networks import Nets

SHARE = 0.2
"""s as a share of the mean reach tau |w_i|_*; any is sound."""
ROUNDING = 4
"""Rounding in a Cholesky factor, in units of d eps."""


@torch.no_grad()
def curve_certified(
    nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"], ball: Ball
) -> Bool[Tensor, "*R n"]:
    """Which examples no perturbation of the ball can turn, by the bound above.

    Args:
        nets: networks without noise.
        x: inputs.
        y: labels in {-1, 1}.
        ball: the threat.
    """
    if nets.smooth:
        raise AdvlabError("networks without noise", "sigma > 0", "use slope_bound")
    room, q = curve_terms(nets, x, y, ball)
    m, d = nets.weight.shape[-2:]
    flat = zip(
        nets.weight.reshape(-1, m, d),
        room.reshape(-1, room.shape[-1]),
        q.reshape(-1, q.shape[-2], m),
        strict=True,
    )
    size = ball.radius**2 * d ** (2 * enclosing_exponent(2.0, ball.order))
    return torch.stack([_below(w, a, b, size) for w, a, b in flat]).reshape(y.shape)


@torch.no_grad()
def rounding(nets: Nets, x: Float[Tensor, "*R n d"]) -> Float[Tensor, "*R n"]:
    """What rounding may add to y f: a margin below it proves nothing (units far below their bias
    are differences of numbers that cancel)."""
    terms = nets.inner(x).abs().sum(-1) + x.norm(dim=-1)
    fixed = (nets.bias + nets.sigma)[..., None] * nets.weight.shape[-2]
    return 16 * torch.finfo(x.dtype).eps * (terms + fixed)


@torch.no_grad()
def certified(
    nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"], ball: Ball
) -> Bool[Tensor, "*R n"]:
    """Which examples no perturbation of the ball can turn, by any of the certificates.

    Arguments as in `curve_certified`, with or without noise.
    """
    proved = certified_margin(nets, x, y, ball) > rounding(nets, x)
    return proved if nets.smooth else proved | curve_certified(nets, x, y, ball)


@torch.no_grad()
def curve_terms(
    nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"], ball: Ball
) -> tuple[Float[Tensor, "*R n"], Float[Tensor, "*R n m"]]:
    """a and q with y f(x + delta) >= a - sum_i q_i <w_i, delta>^2 everywhere on the ball.

    a is what the first order and the raised g_i leave of the margin. Arguments as in
    `curve_certified`.
    """
    u, r, b = nets.inner(x), reach(nets, ball), nets.bias[..., None, None]
    toward, gates = y[..., None] * u, nets.gates(u)
    g = torch.where(gates > 0, -toward - b, toward + b).masked_fill(toward > b, torch.inf)
    s = SHARE * r.mean(-1, keepdim=True)
    raised = g.maximum(s)
    price = (s - g).clamp(min=0.0).sum(-1)
    q = torch.where(2 * raised <= r, 1 / (4 * raised), (r - raised) / r**2)
    slope = ball.radius * dual_norm(gates @ nets.weight, ball)
    return y * nets.units(u).sum(-1) - slope - price, torch.where(r > raised, q, 0.0)


def _below(
    w: Float[Tensor, "m d"], room: Float[Tensor, " n"], q: Float[Tensor, "n m"], size: float
) -> Bool[Tensor, " n"]:
    """size lambda_max(Q) < room, row by row: room I - size Q has a Cholesky factor."""
    found = torch.zeros_like(room, dtype=torch.bool)
    d = w.shape[1]
    sure = 1 - ROUNDING * d * torch.finfo(w.dtype).eps
    for n in (room > 0).nonzero()[:, 0].tolist():
        moving = q[n] > 0
        part = w[moving]
        Q = (part * q[n][moving, None]).mT @ part
        gap = sure * room[n] * torch.eye(d).to(Q) - size * Q
        found[n] = torch.linalg.cholesky_ex(gap).info == 0
    return found
