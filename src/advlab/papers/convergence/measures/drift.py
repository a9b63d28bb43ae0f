"""How far masks, features and gradients of a deep ReLU network go in B(R) (Lemma A.5).

The lemma bounds the units of a layer that change sign (10), ||x_h(W, x') - x_h(W0, x)|| (11), the
move of the gradient in the pre-activations (12; printed with one factor W_h too many), ||x_h(W,
x')|| (13), and ||grad_h f(W, x') - grad_h f(W0, x)||_F and ||grad_h f(W, x')||_F, over all W in
B(R) and all x' within delta of x. At x' = x and with one hidden layer the suprema are known: a move
of norm r shifts the pre-activations by at most B = r |x_0| in l2, to turn a unit costs p^2, and the
gradient changes by |x_0| times the l2 norm of a over the units that turn. So the units of least
|p|, or of least |p|/|a|, are turned until B^2 is used up. With more layers a search gives lower
bounds, and operator norms give upper ones.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ....core.checks import Array
from ..models import DeepReLU

SHARES = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
"""Of the units that a layer's own ball can turn, how many a move aims at."""
ROUNDS, STARTS = 3, 4
TRIED, KEPT = 32, 2
"""Points of the rim of a cap that x' may be."""


class Drift(NamedTuple):
    """The largest of one input, over moves in B(R) and, with several layers, over layers."""

    flips: float
    """Units that change sign in a layer, equation (10)."""
    features: float
    """||x_h(W) - x_h(W0)||, equation (11)."""
    gradient: float
    """||grad_h f(W) - grad_h f(W0)||_F."""


class DriftTogether(NamedTuple):
    """As `Drift`, over W in B(R) and x' in a cap, with what (12), (13) and the lemma's last line
    have: the largest over layers."""

    flips: float
    """Units that change sign in a layer, equation (10)."""
    features: float
    """||x_h(W, x') - x_h(W0, x)||, equation (11)."""
    gradient: float
    """||grad_h f(W, x') - grad_h f(W0, x)||_F."""
    backs: float
    """||b_h(W, x') - b_h(W0, x)||, b_h the gradient in the pre-activations of layer h: (12)."""
    length: float
    """||x_h(W, x')||, equation (13)."""
    size: float
    """||grad_h f(W, x')||_F."""


def turned(p: Array, value: Array, budget: float) -> tuple[int, float, float]:
    """The most units, and the largest sum of value^2, that shifts of l2 norm `budget` turn.

    Args:
        p: pre-activations.
        value: what a unit counts.
        budget: B.

    Returns:
        The number, which is exact, and the sum from below and from above: units are turned in the
        order of |p|/|value|, and the bound counts a part of the first one that is too dear.
    """
    cost, gain = p**2, value**2
    most = int((np.cumsum(np.sort(cost)) <= budget**2).sum())
    order = np.argsort(cost / np.maximum(gain, np.finfo(float).tiny))
    spent, sums = np.cumsum(cost[order]), np.cumsum(gain[order])
    count = int((spent <= budget**2).sum())
    found = float(sums[count - 1]) if count else 0.0
    if count == len(p):
        return most, found, found
    left = budget**2 - (spent[count - 1] if count else 0.0)
    return most, found, found + float(gain[order[count]] * left / cost[order[count]])


def sampled_drift(m: int, radii: Sequence[float], rng: np.random.Generator) -> list[Drift]:
    """The suprema of one hidden layer at one input, for each R, in law and without the matrix.

    Given x_0 = A x the pre-activations are independent N(0, 2 |x_0|^2/m), and |x_0|^2 is 2/m times
    a chi-square of m degrees. The features' is B itself, by a unit that is on.

    Args:
        m: the width.
        radii: R of the balls, of Frobenius radius R/sqrt(m).
        rng: where weights are drawn from.

    Example:
        import numpy as np
        from advlab.papers.convergence.measures.drift import sampled_drift
        sampled_drift(2**20, (1.0,), np.random.default_rng(0))[0].flips  # near 2**(40/3)
    """
    length = math.sqrt(2 / m * rng.chisquare(m))
    p = math.sqrt(2 / m) * length * rng.standard_normal(m)
    top = rng.standard_normal(m)
    found = []
    for R in radii:
        budget = R / math.sqrt(m) * length
        most, square, _ = turned(p, top, budget)
        found.append(Drift(most, budget, length * math.sqrt(square)))
    return found


def limit_drift(m: float, R: float) -> Drift:
    """The limit law of one wide hidden layer.

    Near 0 the pre-activations N(0, 4/m) have the density sqrt(m)/(2 sqrt(2 pi)). Turning all with
    |p| < t costs m^(3/2) t^3/(3 sqrt(2 pi)) = B^2 = 2 R^2/m: (3/pi)^(1/3) (m R)^(2/3) units. Those
    with |p| < |a| t cost 2/(3 pi) m^(3/2) t^3 and have sum a^2 = 2/pi m^(3/2) t: the gradient moves
    by (2/sqrt(pi)) (3 pi)^(1/6) (m R)^(1/3).

    Args:
        m: the width.
        R: of the ball.
    """
    gradient = 2 / math.sqrt(math.pi) * (3 * math.pi) ** (1 / 6) * (m * R) ** (1 / 3)
    return Drift((3 / math.pi) ** (1 / 3) * (m * R) ** (2 / 3), math.sqrt(2 / m) * R, gradient)


class States(NamedTuple):
    """Of each layer, for C inputs or moves: x_{h-1}, pre-activations, and the gradient in them."""

    inputs: list[Float[Tensor, "C m"]]
    pre: list[Float[Tensor, "C m"]]
    backs: list[Float[Tensor, "C m"]]

    @property
    def features(self) -> list[Float[Tensor, "C m"]]:
        """x_h."""
        return [p.relu() for p in self.pre]


Moves = list[tuple[Tensor, Tensor]]
"""Of each layer (left, right), both (C, m): W_h is moved by left right'."""


def states(net: DeepReLU, start: Float[Tensor, "C m"], moves: Moves | None = None) -> States:
    """Forward and back, with rank-one moves of the layers; the gradient is back input'.

    Args:
        net: the network.
        start: x_0, one row per move.
        moves: none by default.
    """
    state, inputs, pre = start, [], []
    for h, weight in enumerate(net.hidden):
        inputs.append(state)
        p = state @ weight.detach().T
        if moves is not None:
            left, right = moves[h]
            p = p + left * (right * state).sum(1, keepdim=True)
        pre.append(p)
        state = p.relu()
    silent = [torch.zeros_like(p) for p in pre[:-1]]
    return States(inputs, pre, pulled(net, pre, [*silent, net.top * (pre[-1] > 0)], moves))


def pulled(
    net: DeepReLU, pre: list[Tensor], targets: list[Tensor], moves: Moves | None = None
) -> list[Float[Tensor, "C m"]]:
    """The gradient of sum_h <target_h, p_h> in each layer's pre-activations.

    Args:
        net: the network.
        pre: its pre-activations p_h.
        targets: one per layer.
        moves: of the weights, as for `states`.
    """
    grads = [targets[-1]]
    for h in range(len(pre) - 1, 0, -1):
        back = grads[0] @ net.hidden[h].detach()
        if moves is not None:
            left, right = moves[h]
            back = back + right * (left * grads[0]).sum(1, keepdim=True)
        grads.insert(0, targets[h - 1] + back * (pre[h - 1] > 0))
    return grads


def gradient_distances(one: States, other: States) -> Float[Tensor, "H C"]:
    """||b x' - b' x''||_F of each layer's gradients, without a matrix.

    Args:
        one: states of one row, or of C.
        other: states of C rows.
    """
    found = []
    for b, x, c, z in zip(one.backs, one.inputs, other.backs, other.inputs, strict=True):
        # c z' - b x' = b (z - x)' + (c - b) z': no digits are lost where they are near.
        dx, db = z - x, c - b
        square = (b**2).sum(1) * (dx**2).sum(1) + (db**2).sum(1) * (z**2).sum(1)
        square = square + 2 * (b * db).sum(1) * (dx * z).sum(1)
        found.append(square.clamp(min=0).sqrt())
    return torch.stack(found)


def searched_drift(
    net: DeepReLU, x: Float[Tensor, " d"], radius: float, rng: torch.Generator, delta: float = 0.0
) -> DriftTogether:
    """The largest drifts found in B(R) and the cap of radius delta: lower bounds of the suprema.

    With one hidden layer and delta = 0 the units are exact. A move aims at units of one layer, or
    of all, that have not turned: those nearest to 0, by |p| or by |p| over the gradient there.
    Every layer goes, within its ball, where it carries them across fastest, a few rounds. Features
    are carried away by ascents from random directions. x' is x, or one of the points of the rim,
    of many, at which most units have turned. Lengths and sizes are the largest of all moves that
    were made.

    Args:
        net: the network.
        x: the input.
        radius: R.
        rng: for the directions.
        delta: how far x' may be from x.
    """
    limit = radius / math.sqrt(len(net.top))
    here = states(net, (net.bottom @ x)[None])
    found = []
    for start in (net.bottom @ x, *_rim(net, x, delta, here, rng)):
        targets = _targets(net, here, states(net, start[None]), limit)
        there = _ascended(net, start.expand(len(targets[0]), -1), limit, targets)
        features, ends = 0.0, [there]
        for h, p in enumerate(here.pre):
            random = [torch.zeros(STARTS, p.shape[1], dtype=p.dtype) for _ in here.pre]
            random[h] = torch.randn(STARTS, p.shape[1], dtype=p.dtype, generator=rng) * (p > 0)
            went, end = _carried(net, start.expand(STARTS, -1), limit, random, h, here)
            features = max(features, went)
            ends.append(end)
        pairs = list(zip(here.backs, there.backs, strict=True))
        length, size = (max(each) for each in zip(*map(_lengths, ends), strict=True))
        found.append((
            _turned(here, there), features, float(gradient_distances(here, there).max()),
            max(float((b - c).norm(dim=1).max()) for b, c in pairs), length, size,
        ))  # fmt: skip
    return DriftTogether(*(max(each) for each in zip(*found, strict=True)))


def _turned(here: States, there: States) -> float:
    """The most units of a layer with another sign, over rows."""
    signs = zip(here.pre, there.pre, strict=True)
    return max(float(((p > 0) != (q > 0)).sum(1).max()) for p, q in signs)


def _rim(
    net: DeepReLU, x: Float[Tensor, " d"], delta: float, here: States, rng: torch.Generator
) -> list[Float[Tensor, " m"]]:
    """x_0 of the points at the distance delta, of TRIED random ones, that turn most units."""
    if delta == 0:
        return []
    drawn = torch.randn(TRIED, len(x), dtype=x.dtype, generator=rng)
    across = drawn - (drawn @ x)[:, None] * x
    angle = 2 * math.asin(delta / 2)
    points = math.cos(angle) * x + math.sin(angle) * across / across.norm(dim=1, keepdim=True)
    starts = points @ net.bottom.T
    there = states(net, starts)
    signs = zip(here.pre, there.pre, strict=True)
    units = torch.stack([((p > 0) != (q > 0)).sum(1) for p, q in signs]).amax(0)
    return list(starts[units.argsort(descending=True, stable=True)[:KEPT]])


def _lengths(there: States) -> tuple[float, float]:
    """The largest ||x_h|| and ||grad_h f||_F, over layers and rows."""
    sizes = [
        float((b.norm(dim=1) * x.norm(dim=1)).max())
        for b, x in zip(there.backs, there.inputs, strict=True)
    ]
    return max(float(x.norm(dim=1).max()) for x in [*there.inputs, *there.features]), max(sizes)


def drift_bounds(
    net: DeepReLU, x: Float[Tensor, " d"], radius: float, delta: float = 0.0
) -> DriftTogether:
    """What no move in B(R) and the cap exceeds, by operator norms layer by layer.

    e_h = |x_h(W, x') - x_h(W0, x)| <= s_h = |W0_h| e_{h-1} + r (|x_{h-1}| + e_{h-1}), with e_0 =
    |A| delta; a shift of l2 norm s_h turns at most so many units, and backwards |b_h(W) - b_h| has
    three parts: of the later gradient, of W_{h+1}, and of the units that turn.

    Args:
        net: the network.
        x: the input.
        radius: R.
        delta: how far x' may be from x.
    """
    limit = radius / math.sqrt(len(net.top))
    here = states(net, (net.bottom @ x)[None])
    norms = [float(torch.linalg.matrix_norm(w.detach(), 2)) for w in net.hidden]
    shifts, moved = [], [float(torch.linalg.matrix_norm(net.bottom, 2)) * delta]
    for norm, state in zip(norms, here.inputs, strict=True):
        shifts.append(norm * moved[-1] + limit * (float(state.norm()) + moved[-1]))
        moved.append(shifts[-1])
    flips, gradient, away, backs, size = 0, 0.0, 0.0, 0.0, 0.0
    behind = net.top[None]
    for h in range(len(norms) - 1, -1, -1):
        most, _, square = turned(here.pre[h][0].numpy(), behind[0].numpy(), shifts[h])
        if h < len(norms) - 1:
            away = (norms[h + 1] + limit) * away + limit * float(here.backs[h + 1].norm())
        away += math.sqrt(square)
        long, back = float(here.inputs[h].norm()) + moved[h], float(here.backs[h].norm())
        gradient = max(gradient, away * long + back * moved[h])
        flips, backs, size = max(flips, most), max(backs, away), max(size, (back + away) * long)
        behind = here.backs[h] @ net.hidden[h].detach()
    states_h = [*here.inputs, here.features[-1]]
    length = max(float(x_h.norm()) + e for x_h, e in zip(states_h, moved, strict=True))
    return DriftTogether(flips, max(moved), gradient, backs, length, size)


def _targets(net: DeepReLU, here: States, base: States, limit: float) -> list[Float[Tensor, "C m"]]:
    """Shifts of `base` that would carry the chosen units across 0, one row per move that is tried.

    Units whose sign in `base` is no more that of `here` stay as they are.
    """
    later = zip(base.backs[1:], list(net.hidden)[1:], strict=True)
    values = [back @ w.detach() for back, w in later]
    plain = [torch.ones_like(p[0]) for p in base.pre]
    same = [((p > 0) == (q > 0))[0] for p, q in zip(here.pre, base.pre, strict=True)]
    aims = []
    for weights in (plain, [*(v[0].abs() for v in values), net.top.abs()]):
        each = [
            _nearest(p[0], w, limit * float(state.norm()), left)
            for p, w, state, left in zip(base.pre, weights, base.inputs, same, strict=True)
        ]
        silent = [torch.zeros_like(one) for one in each]
        aims += [[*silent[:h], each[h], *silent[h + 1 :]] for h in range(len(each))]
        # All at once, of equal length, as each has a ball of its own.
        aims += [[one / one.norm(dim=1, keepdim=True) for one in each]] if len(each) > 1 else []
    return [torch.cat([aim[h] for aim in aims]) for h in range(len(here.pre))]


def _nearest(
    p: Float[Tensor, " m"], weight: Float[Tensor, " m"], budget: float, left: Bool[Tensor, " m"]
) -> Float[Tensor, "K m"]:
    """-p on the units that come first of those left, for numbers around what the budget can
    turn."""
    order = torch.argsort(p.abs() / weight.clamp(min=torch.finfo(p.dtype).tiny))
    order = order[left[order]]
    most = max(1, int((torch.cumsum(p[order] ** 2, 0) <= budget**2).sum()))
    rows = []
    for share in SHARES:
        chosen = order[: max(1, min(len(order), round(share * most)))]
        row = torch.zeros_like(p)
        row[chosen] = -p[chosen]
        rows.append(row)
    return torch.stack(rows)


def _ascended(net: DeepReLU, start: Tensor, limit: float, targets: list[Tensor]) -> States:
    """The states where sum_h <target_h, p_h> is largest, after rounds of linearised steps."""
    moves, there = None, states(net, start)
    for _ in range(ROUNDS):
        moves = _steepest(pulled(net, there.pre, targets, moves), there.inputs, limit)
        there = states(net, start, moves)
    return there


def _carried(
    net: DeepReLU, start: Tensor, limit: float, targets: list[Tensor], h: int, here: States
) -> tuple[float, States]:
    """The largest |x_h(W) - x_h(W0)| on an ascent, and its end; each round aims where the features
    went."""
    moves, there, best = None, states(net, start), 0.0
    for _ in range(3 * ROUNDS):
        moves = _steepest(pulled(net, there.pre, targets, moves), there.inputs, limit)
        there = states(net, start, moves)
        went = there.features[h] - here.features[h]
        best = max(best, float(went.norm(dim=1).max()))
        targets = [*targets[:h], went * (there.pre[h] > 0), *targets[h + 1 :]]
    return best, there


def _steepest(grads: list[Tensor], inputs: list[Tensor], limit: float) -> Moves:
    """Of each layer the move of norm `limit` along grad input'; none where the gradient is 0."""
    tiny = torch.finfo(grads[0].dtype).tiny
    return [
        (
            limit * grad / grad.norm(dim=1, keepdim=True).clamp(min=tiny),
            state / state.norm(dim=1, keepdim=True),
        )
        for grad, state in zip(grads, inputs, strict=True)
    ]
