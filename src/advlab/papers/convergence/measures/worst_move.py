"""The worst move of the weights in B(R): how far from linear a ReLU network can be made.

f(W0 + D, x) - f(W0, x) - <grad f(W0, x), D> of one hidden layer is a sum over units: a unit with
pre-activation p that a shift of size u carries across 0 gives a (u - |p|), others nothing. D of
norm B/||x_0|| shifts by u with sum u^2 <= B^2. With a Lagrange multiplier the best shifts are u =
2 a t for the units with |p|/a < t: so sorting by |p|/a solves it. (Lemmas A.5 and A.6 bound it; for
t small against p's scale it is of order m^(-1/6) R^(4/3), the lemma's own.)
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ....core.checks import Array
from ....measure.linearity import lin_residual
from ..models import DeepReLU


class Worst(NamedTuple):
    """The largest gain of shifts within a budget."""

    gain: float
    """sum a (u - |p|) of the shifts found, which are feasible."""
    bound: float
    """What no shifts exceed, by duality; equal but where one unit's turn makes the budget jump."""
    shifts: Array
    """Signed, 0 for the units that stay."""


def worst_shifts(p: Array, top: Array, budget: float) -> Worst:
    """The shifts s with |s|_2 <= budget that make sum a (relu(p+s) - relu(p) - 1[p>0] s) largest.

    Args:
        p: pre-activations.
        top: a, the weights of the units; only those above 0 can gain.
        budget: B.
    """
    up = np.flatnonzero(top > 0)
    if not up.size:
        return Worst(0.0, 0.0, np.zeros_like(p))
    order = up[np.argsort(np.abs(p[up]) / top[up])]
    a, size = top[order], np.abs(p[order])
    ratio, squares, costs = size / a, np.cumsum(a**2), np.cumsum(a * size)
    # Dual: units are on below t, where the budget 4 t^2 sum a^2 of those on is used up.
    count = int((2 * ratio * np.sqrt(squares) < budget).sum())
    t = budget / (2 * math.sqrt(squares[count - 1])) if count else math.inf
    t = min(t, float(ratio[count])) if count < len(ratio) else t
    on = ratio < t
    bound = float((a[on] * (a[on] * t - size[on])).sum() + budget**2 / (4 * t))
    # Primal: the best first k units, or one unit; in wide layers that is k = count.
    gains = budget * np.sqrt(squares) - costs
    single = a * (budget - size)
    chosen = order[: int(gains.argmax()) + 1]
    if single.max() > gains.max():
        chosen = order[[int(single.argmax())]]
    gain = float(max(gains.max(), single.max()))
    shifts = np.zeros_like(p)
    if gain <= 0:
        return Worst(0.0, bound, shifts)
    along = budget * top[chosen] / np.linalg.norm(top[chosen])
    shifts[chosen] = -np.where(p[chosen] > 0, 1.0, -1.0) * along
    crossing = np.maximum(np.abs(shifts[chosen]) - np.abs(p[chosen]), 0)
    return Worst(float(top[chosen] @ crossing), bound, shifts)


def sampled_worst(m: int, radii: tuple[float, ...], rng: np.random.Generator) -> list[Worst]:
    """The worst move of one hidden layer at one input, for each R, in law and without the matrix.

    Given x_0 = A x the pre-activations are independent N(0, 2 |x_0|^2/m), and |x_0|^2 is 2/m times
    a chi-square of m degrees: so a width of a million costs a sort.

    Args:
        m: the width.
        radii: R of the balls, of Frobenius radius R/sqrt(m).
        rng: where weights are drawn from.
    """
    length = math.sqrt(2 / m * rng.chisquare(m))
    p = math.sqrt(2 / m) * length * rng.standard_normal(m)
    top = rng.standard_normal(m)
    found = []
    for R in radii:
        sides = [worst_shifts(p, sign * top, R / math.sqrt(m) * length) for sign in (1, -1)]
        found.append(max(sides, key=lambda one: one.gain))
    return found


def limit_constant() -> float:
    """c of the worst residual c m^(-1/6) R^(4/3) of one wide hidden layer: 3/(2 pi) (pi/2)^(2/3).

    Near 0 the pre-activations N(0, 4/m) have the density sqrt(m)/(2 sqrt(2 pi)), so units with
    |p| < a t have sum a^2 = m^(3/2) t/pi, the budget gives t^3 = pi R^2/(2 m^(5/2)), and the gain
    is 3/2 m^(3/2) t^2/pi.
    """
    return 3 / (2 * math.pi) * (math.pi / 2) ** (2 / 3)


def worst_residual(
    net: DeepReLU, x: Float[Tensor, " d"], radius: float, rounds: int = 15
) -> tuple[float, dict[str, Tensor]]:
    """The largest distance from linear at x over moves in B(R) that was found, and the move.

    With one hidden layer it is exact (up to `Worst.bound`). With more, the last layer's exact worst
    move starts an ascent over all layers, each round to the move of every layer's ball that the
    residual's gradient likes best: a lower bound of the worst.

    Args:
        net: the network.
        x: the input.
        radius: R.
        rounds: of the ascent.
    """
    m, names = len(net.top), [f"hidden.{h}" for h in range(len(net.hidden))]
    limit, best = radius / math.sqrt(m), (0.0, {})
    with torch.no_grad():
        state = net.bottom @ x
        for weight in list(net.hidden)[:-1]:
            state = (weight @ state).relu()
        p = (net.hidden[-1] @ state).numpy()
    budget = limit * float(state.norm())
    for sign in (1, -1):
        shifts = worst_shifts(p, sign * net.top.numpy(), budget).shifts
        last = torch.outer(torch.from_numpy(shifts), state) / state.dot(state)
        move = {name: torch.zeros_like(w) for name, w in zip(names, net.hidden, strict=True)}
        move[names[-1]] = last
        best = _larger(net, x, move, best)
        for _ in range(rounds if len(names) > 1 else 0):
            move = _ascended(net, x, move, sign, limit)
            best = _larger(net, x, move, best)
    return best


def _larger(
    net: DeepReLU, x: Tensor, move: dict[str, Tensor], best: tuple[float, dict[str, Tensor]]
) -> tuple[float, dict[str, Tensor]]:
    found = lin_residual(net, x[None], move)
    return (found, move) if found > best[0] else best


def _ascended(
    net: DeepReLU, x: Tensor, move: dict[str, Tensor], sign: int, limit: float
) -> dict[str, Tensor]:
    """Each layer's move of norm `limit` along the gradient of the residual (times the sign)."""
    grads = []
    for scale in (1.0, 0.0):
        layers = [
            (w.detach() + scale * move[f"hidden.{h}"]).requires_grad_()
            for h, w in enumerate(net.hidden)
        ]
        state = net.bottom @ x
        for weight in layers:
            state = (weight @ state).relu()
        grads.append(torch.autograd.grad(state @ net.top, layers))
    change = [sign * (there - here) for there, here in zip(*grads, strict=True)]
    return {
        f"hidden.{h}": limit * step / step.norm() if float(step.norm()) > 0 else step
        for h, step in enumerate(change)
    }
