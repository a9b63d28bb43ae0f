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

What is proved is about real numbers, what is computed is rounded: a margin counts only as far as it
exceeds `rounding`, and Q only as far as a Cholesky factor that exists can prove (`_below`).
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
STEPS = 16
"""More roundings than any one neuron's terms go through before they are summed."""


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
    room = room - rounding(nets, x, ball)
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
def rounding(nets: Nets, x: Float[Tensor, "*R n d"], ball: Ball) -> Float[Tensor, "*R n"]:
    """What rounding may add to any of the bounds of y f: a margin up to it proves nothing.

    The sum, over the n neurons that can be on somewhere in the ball, of

        eps (d + n + 16) (|w_i| |x| + tau |w_i|_* + b + sigma + s),

    and of eps tau |w_i|_* (|u_i| + tau |w_i|_*)/sigma where there is noise. Why it is enough, with
    unit roundoff eps/2 and whatever the order of summation (Higham 2002, sections 3.1 and 3.5):

    - the computed u_i is within d eps/2 |w_i| |x| of <w_i, x>. Units have slopes in [0, 1], so a
      bound that is right for the computed u_i, gates included, loses no more than these errors;
    - a unit, its share of the price and of the linear term go through at most 16 roundings of
      numbers that the bracket bounds; those of d coordinates are in the norms;
    - a sum of n such terms is off by at most n eps/2 of the sum of their sizes;
    - neurons that are off in the whole ball, by more than all this, add zeros, exactly;
    - eps in place of eps/2 pays for products of errors, while (d + n + 16) eps is below 1/4.

    Numbers so small that their squares underflow are not meant.

    Args:
        nets: the networks.
        x: inputs.
        ball: the threat.
    """
    eps, d = torch.finfo(x.dtype).eps, x.shape[-1]
    u, r = nets.inner(x).abs(), reach(nets, ball)
    b, sigma = nets.bias[..., None, None], nets.sigma[..., None, None]
    s = SHARE * r.mean(-1, keepdim=True)
    lengths = x.norm(dim=-1)[..., None] * nets.weight.norm(dim=-1)[..., None, :]
    sizes = lengths + r + b + sigma + s
    on = u + r + eps * (d + STEPS) * sizes >= b
    if nets.smooth:
        on = torch.ones_like(on)
    count = on.sum(-1).to(u)
    total = torch.where(on, sizes, 0.0).sum(-1)
    slack = eps * (d + count + STEPS) * total
    if nets.smooth:
        slack = slack + eps * (r * (u + r) / sigma).sum(-1)
    return torch.where(eps * (d + count + STEPS) < 0.25, slack, torch.inf)


@torch.no_grad()
def certified(
    nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"], ball: Ball
) -> Bool[Tensor, "*R n"]:
    """Which examples no perturbation of the ball can turn, by any of the certificates.

    Arguments as in `curve_certified`, with or without noise.
    """
    proved = certified_margin(nets, x, y, ball) > rounding(nets, x, ball)
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
    raised, crossed = g.maximum(s), r > g
    # A neuron that never crosses its g costs nothing, raised or not.
    price = torch.where(crossed, (s - g).clamp(min=0.0), 0.0).sum(-1)
    q = torch.where(2 * raised <= r, 1 / (4 * raised), (r - raised) / r**2)
    slope = ball.radius * dual_norm(gates @ nets.weight, ball)
    return y * nets.units(u).sum(-1) - slope - price, torch.where(r > raised, q, 0.0)


def _below(
    w: Float[Tensor, "m d"], room: Float[Tensor, " n"], q: Float[Tensor, "n m"], size: float
) -> Bool[Tensor, " n"]:
    """size lambda_max(Q) < room, row by row: room I - size Q has a Cholesky factor.

    A factor that is found proves that no eigenvalue is below -(d + 2) eps times the trace (Higham
    2002, theorem 10.3), and Q is within (n + 16) eps of sum_i q_i |w_i|^2 where n of the q_i are
    positive; both are taken off the room before.
    """
    found, moving = room > 0, q > 0
    d, eps = w.shape[1], torch.finfo(w.dtype).eps
    for n in (found & moving.any(1)).nonzero()[:, 0].tolist():
        part, weights = w[moving[n]], q[n][moving[n]]
        Q = size * ((part * weights[:, None]).mT @ part)
        loss = eps * (d * (d + 2) * room[n] + (len(part) + STEPS) * Q.trace())
        gap = (room[n] - loss) * torch.eye(d).to(Q) - Q
        found[n] = torch.linalg.cholesky_ex(gap).info == 0
    return found
