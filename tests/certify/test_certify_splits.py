"""Branch and bound for deep ReLU networks, against mixed-integer programs and all patterns."""

import itertools
import time

import cvxpy
import numpy as np
import pytest
import torch
from certify_nets import network, sampled_worst
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import nn

from advlab.attacks import PGD
from advlab.certify import BetaCrown, Crown, certify
from advlab.certify._graph.input_sets import InputSets
from advlab.certify._graph.reader import read
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball, Cap

F64 = torch.float64


def deep(seed: int, inputs: int = 3, widths: tuple[int, ...] = (6, 5), leak: float = 0.0):
    torch.manual_seed(seed)
    sizes, layers = (inputs, *widths), []
    for i in range(len(widths)):
        layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.LeakyReLU(leak) if leak else nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(sizes[-1], 2)).double()
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.7)
    x = torch.rand(2, inputs, dtype=F64)
    return net, x, net(x).argmax(1)


def solve(net, x, y, ball, **settings):
    with torch.no_grad():
        return BetaCrown(**settings).solve(read(net.eval(), x), InputSets(x, ball), y)


def by_milp(net: nn.Sequential, x: np.ndarray, y: int, radius: float, box) -> float:
    """The worst margin over a box by the big-M program, with crude interval bounds as M."""
    low, high = x - radius, x + radius
    if box is not None:
        low, high = low.clip(*box), high.clip(*box)
    dense = [layer for layer in net if isinstance(layer, nn.Linear)]
    count = sum(layer.out_features for layer in dense[:-1])
    total = len(x) + 2 * count
    lower, upper = np.full(total, 0.0), np.full(total, 1.0)
    lower[: len(x)], upper[: len(x)] = low, high
    rows, left, right = [], [], []
    here, at = np.arange(len(x)), len(x)
    for layer in dense[:-1]:
        w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        pos, neg = w.clip(min=0), w.clip(max=0)
        low, high = pos @ low + neg @ high + b, pos @ high + neg @ low + b
        for i in range(len(w)):
            h, d, least, most = at + i, at + count + i, min(low[i], 0.0), max(high[i], 0.0)
            lower[h], upper[h] = 0.0, most
            line = np.zeros(total)
            line[here], line[h] = -w[i], 1.0
            rows.append(line)  # h - z >= b
            left.append(b[i]), right.append(np.inf)
            line = line.copy()
            line[d] = -least
            rows.append(line)  # h - z - least d <= b - least
            left.append(-np.inf), right.append(b[i] - least)
            line = np.zeros(total)
            line[h], line[d] = 1.0, -most
            rows.append(line)  # h <= most d
            left.append(-np.inf), right.append(0.0)
        here, low, high = np.arange(at, at + len(w)), low.clip(min=0), high.clip(min=0)
        at += len(w)
    w, b = dense[-1].weight.detach().numpy(), dense[-1].bias.detach().numpy()
    goal = np.zeros(total)
    goal[here] = -(w[1 - y] - w[y])
    whole = np.zeros(total)
    whole[len(x) + count :] = 1
    found = milp(
        goal, integrality=whole, bounds=Bounds(lower, upper),
        constraints=LinearConstraint(np.array(rows), left, right), options={"mip_rel_gap": 1e-9},
    )  # fmt: skip
    return float(-found.fun + b[1 - y] - b[y])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_deep_networks_in_linf_against_mixed_integer_programs(seed, box):
    widths = ((6, 5), (5, 4, 4))[seed % 2]
    net, x, y = deep(seed, widths=widths)
    found = solve(net, x, y, Ball("linf", 0.3, box), tolerance=1e-6)
    assert found.exact.all()
    for i in range(2):
        truth = by_milp(net, x[i].numpy(), int(y[i]), 0.3, box)
        assert float(found.upper[i]) == pytest.approx(truth, abs=1e-5)
        assert float(found.lower[i]) == pytest.approx(truth, abs=1e-5)
        assert float(found.upper[i]) >= truth - 1e-7
    assert (found.upper <= Crown().worst_margin(net, x, y, Ball("linf", 0.3, box)) + 1e-9).all()


@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_deep_networks_in_l2_against_all_activation_patterns(box):
    """On each of 2^6 patterns the network is linear: a convex program each, by cvxpy."""
    net, x, y = deep(7, inputs=2, widths=(3, 3))
    x, y, ball = x[:1], y[:1], Ball("l2", 0.8, box)
    w, b, v, c, t, d = (parameter.detach().numpy() for parameter in net.parameters())
    own, point = int(y[0]), cvxpy.Variable(2)
    top, shift = t[1 - own] - t[own], d[1 - own] - d[own]
    limits = [cvxpy.norm(point - x[0].numpy(), 2) <= 0.8]
    limits += [] if box is None else [point >= box[0], point <= box[1]]
    best = -np.inf
    for pattern in itertools.product([0.0, 1.0], repeat=6):
        first, second = np.array(pattern[:3]), np.array(pattern[3:])
        inner, at = v * first @ w, v * first @ b + c
        signs = [cvxpy.multiply(2 * first - 1, w @ point + b) >= 0]
        signs += [cvxpy.multiply(2 * second - 1, inner @ point + at) >= 0]
        goal = (top * second) @ inner @ point + (top * second) @ at + shift
        problem = cvxpy.Problem(cvxpy.Maximize(goal), limits + signs)
        value = problem.solve(solver="CLARABEL")
        best = max(best, value) if problem.status == "optimal" else best
    found = solve(net, x, y, ball, tolerance=1e-6)
    assert float(found.upper[0]) == pytest.approx(best, abs=1e-5)
    assert float(found.lower[0]) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "ball"),
    [
        ("mlp", Ball("l1", 0.3)),
        ("conv", Ball("linf", 0.02, (0.0, 1.0))),
        ("residual", Ball("l2", 0.2)),
        ("forked", Ball("linf", 0.1)),
        ("deep_relu", Ball("l2", 0.5, (0.0, 1.0))),
    ],
)
def test_bounds_of_all_kinds_hold_and_gain_on_crown(kind, ball):
    net, x, y = network(kind, 1)
    x, y = x[:2], y[:2]
    reached = torch.maximum(
        sampled_worst(net, x, y, ball, draws=60),
        PGD(steps=10)(ModelLoss(net, y, margin), x, ball, rng=torch.Generator()).loss,
    )
    found = solve(net, x, y, ball, nodes=12)
    assert (found.upper >= reached).all()
    assert (found.lower <= found.upper).all()
    assert (found.upper <= Crown().worst_margin(net, x, y, ball) + 1e-9).all()


def test_a_budget_leaves_a_bound_that_says_it_is_not_exact():
    net, x, y = deep(3, inputs=6, widths=(16, 16))
    ball = Ball("linf", 0.5)
    begun = time.monotonic()
    short, longer = (solve(net, x, y, ball, nodes=n) for n in (4, 40))
    timed = solve(net, x, y, ball, seconds=0.2)
    assert time.monotonic() - begun < 30
    assert not short.exact.any()
    assert (short.nodes <= 4).all()
    assert (longer.nodes <= 40).all()
    assert (longer.upper <= short.upper + 1e-9).all()
    assert (longer.upper < short.upper - 1e-3).any()
    assert (timed.upper >= timed.lower).all()
    assert (short.lower <= short.upper).all()


def test_certify_runs_it_under_a_deadline_and_it_proves_what_crown_cannot():
    net, x, y = deep(2, inputs=3, widths=(8, 8))
    ball = Ball("linf", 0.58)
    assert (Crown().worst_margin(net, x, y, ball) > 0.3).all()
    result = certify(net, x, y, ball, deadline=time.monotonic() + 60)
    assert result.tried["beta_crown"].proved == 2
    assert result.robust.all()
    assert "beta_crown" in result.by
    assert "beta_crown" not in certify(net, x, y, ball).tried


def test_it_is_for_relu_alone_and_sets_without_a_program_still_have_bounds():
    net, x, y = network("pooled", 1)
    assert "ReLU" in str(BetaCrown().refuses(net, Ball("linf", 0.1), x))
    net, x, y = network("deep_relu", 1)
    x = x / x.norm(dim=1, keepdim=True)
    cap = Cap(0.3)
    assert (solve(net, x, y, cap, nodes=20).upper >= sampled_worst(net, x, y, cap)).all()


def test_float32_bounds_hold():
    net, x, y = deep(5, inputs=4, widths=(8, 8), leak=0.1)
    ball = Ball("linf", 0.2)
    wide = solve(net, x, y, ball)
    net, x = net.float(), x.float()
    found = solve(net, x, y, ball)
    attacked = PGD(steps=20, restarts=3)(ModelLoss(net, y, margin), x, ball, rng=torch.Generator())
    assert (found.upper >= attacked.loss).all()
    torch.testing.assert_close(found.upper.double(), wide.upper, atol=1e-3, rtol=0)
