"""Certificates against the exact minimum over the ball and sampling; and linearity.

The exact minimum of a tiny network without noise: on each pattern of its units f is linear, so the
minimum over a pattern's part of the ball is a convex programme (cvxpy) or a linear one (scipy).
"""

import itertools

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.models import Stack, TwoLayer
from advlab.papers.purification.measures import (
    Nets,
    certified,
    certified_margin,
    curve_certified,
    curve_terms,
    fgm_argument,
    fixed_bound,
    linearity_gap,
    slope_bound,
    survival,
)
from advlab.papers.purification.models import SymmetricReLU
from advlab.threats import Ball


def some(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=generator("certificate", name), dtype=torch.float64)


def least(weight: np.ndarray, b: float, x: np.ndarray, y: float, ball: Ball) -> float:
    """min of y f over the ball, pattern by pattern: each u_i is below -b, between, or above b."""
    best, dual = np.inf, {"l2": 2, "linf": 1}[ball.norm]
    reach = [ball.radius * np.linalg.norm(w, dual) for w in weight]
    lows, highs = (
        [float(w @ x) + s * r for w, r in zip(weight, reach, strict=True)] for s in (-1, 1)
    )
    states = [
        [s for s, can in ((-1, low <= -b), (0, high >= -b and low <= b), (1, high >= b)) if can]
        for low, high in zip(lows, highs, strict=True)
    ]
    for pattern in itertools.product(*states):
        rows, right = [], []
        for w, state in zip(weight, pattern, strict=True):
            u = float(w @ x)
            if state:
                rows.append(-state * w)
                right.append(state * u - b)
            else:
                rows += [w, -w]
                right += [b - u, b + u]
        slope = y * sum((w for w, s in zip(weight, pattern, strict=True) if s), np.zeros(len(x)))
        start = y * sum(float(w @ x) - s * b for w, s in zip(weight, pattern, strict=True) if s)
        solve = _cone if ball.norm == "l2" else _linear
        best = min(best, start + solve(slope, np.array(rows), np.array(right), ball.radius))
    return best


def _cone(c, rows, right, radius) -> float:
    delta = cp.Variable(len(c))
    limits = [rows @ delta <= right, cp.norm(delta) <= radius]
    problem = cp.Problem(cp.Minimize(c @ delta), limits)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value) if problem.status == "optimal" else np.inf


def _linear(c, rows, right, radius) -> float:
    found = linprog(c, A_ub=rows, b_ub=right, bounds=[(-radius, radius)] * len(c))
    return float(found.fun) if found.status == 0 else np.inf


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_bounds_are_below_the_exact_minimum_and_meet_it_where_all_units_are_decided(norm):
    weight, x = some(3, 2, name="w"), 1.5 * some(6, 2)
    nets, met, curved = Nets.at(weight, 0.4), 0, 0
    for radius in (0.02, 0.3):
        ball = Ball(norm=norm, radius=radius)
        y = torch.where(nets.value(x) >= 0, 1.0, -1.0).double()
        exact = [
            least(weight.numpy(), 0.4, p.numpy(), float(s), ball) for p, s in zip(x, y, strict=True)
        ]
        exact = torch.tensor(exact).double()
        fixed, slope = fixed_bound(nets, x, y, ball), slope_bound(nets, x, y, ball)
        assert bool((torch.maximum(fixed, slope) <= exact + 1e-6).all())
        torch.testing.assert_close(certified_margin(nets, x, y, ball), torch.maximum(fixed, slope))
        curved += int(curve_certified(nets, x, y, ball).sum())
        proved = certified(nets, x, y, ball)
        assert not bool((proved & (exact <= -1e-6)).any())
        direction, rng = some(2, name="direction"), generator("survival")
        worst = survival(nets, x, y, ball, direction, rng).worst
        assert not bool(((exact > 1e-6) & ~worst).any())
        assert not bool((proved & ~worst).any())
        dual = weight.norm(dim=1) if norm == "l2" else weight.abs().sum(1)
        clear = (((x @ weight.T).abs() - 0.4).abs() > radius * dual).all(1)
        torch.testing.assert_close(fixed[clear], exact[clear], atol=1e-5, rtol=0)
        torch.testing.assert_close(slope[clear], exact[clear], atol=1e-5, rtol=0)
        met += int(clear.sum())
    assert met >= 3
    assert curved >= 3


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.floats(0.01, 1.0),
    st.sampled_from(["l1", "l2", "linf"]),
)
def test_no_point_of_the_ball_is_below_the_bounds(seed, b, sigma, radius, norm):
    weight, x = some(4, 2, name=seed), some(5, 2, name=("x", seed))
    nets, ball = Nets.at(weight, b, sigma), Ball(norm=norm, radius=radius)
    y = torch.where(some(5, name=("y", seed)) > 0, 1.0, -1.0).double()
    angle = torch.linspace(0, 2 * torch.pi, 180, dtype=torch.float64)
    ring = torch.stack([angle.cos(), angle.sin()], 1)
    ring = ring / ball.norm_of(ring)[:, None] * radius
    grid = torch.cat([share * ring for share in (0.25, 0.5, 0.75, 1.0)])
    points = (x[:, None] + grid).reshape(-1, 2)
    lowest = (y[:, None] * nets.value(points).reshape(5, -1)).amin(1)
    assert bool((certified_margin(nets, x, y, ball) <= lowest + 1e-9).all())
    assert not bool((certified(nets, x, y, ball) & (lowest <= 0)).any())


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_curvature_certifies_what_neuron_by_neuron_bounds_cannot(norm):
    """Pure neurons, a radius past b: every neuron is ambiguous, yet the worst delta wakes few."""
    d, b, radius = 12, 0.2, {"l2": 0.25, "linf": 0.07}[norm]
    M = torch.linalg.qr(some(d, d, name="pure")).Q if norm == "l2" else torch.eye(d).double()
    nets, ball = Nets.at(M.mT.clone(), b), Ball(norm=norm, radius=radius)
    z = torch.zeros(40, d).double()
    z[:, :4] = 0.3 + 0.2 * some(40, 4, name="z").abs()
    x, y = z @ M.mT, torch.ones(40).double()
    flags = curve_certified(nets, x, y, ball)
    found = survival(nets, x, y, ball, M.sum(1), generator("curve"))
    assert not bool((flags & ~found.worst).any())
    assert int(flags.sum()) >= 5
    if norm == "l2":
        assert int(flags.sum()) > int((certified_margin(nets, x, y, ball) > 0).sum())


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_quadratic_bound_holds_at_every_point_and_decides_the_flags(norm):
    """y f(x + delta) >= a - delta' Q delta on a fine grid, and nearly meets it somewhere."""
    nets, slack = Nets.at(some(8, 2, name="quadratic"), 0.5), []
    x = some(40, 2, name="quadratic x")
    y = torch.where(nets.value(x) >= 0, 1.0, -1.0).double()
    line = torch.linspace(-1, 1, 61, dtype=torch.float64)
    square = torch.cartesian_prod(line, line)
    for radius in (0.1, 0.25, 0.5):
        ball = Ball(norm=norm, radius=radius)
        grid = radius * square[ball.norm_of(square) <= 1]
        room, q = curve_terms(nets, x, y, ball)
        values = nets.value((x[:, None] + grid).reshape(-1, 2)).reshape(40, -1)
        curve = (q[:, None] * (grid @ nets.weight.mT) ** 2).sum(-1)
        slack.append((y[:, None] * values - room[:, None] + curve).amin())
        assert float(slack[-1]) > -1e-9
        # Largest at a corner of the square, or anywhere on the circle or diamond around it.
        size = radius**2 * (2 if norm == "linf" else 1)
        Q = torch.einsum("ni,ia,ib->nab", q, nets.weight, nets.weight)
        sure = room > size * torch.linalg.eigvalsh(Q)[:, -1]
        assert torch.equal(curve_certified(nets, x, y, ball), sure)
        assert 0 < int(sure.sum()) < 40
    assert float(torch.stack(slack).amin()) < 1e-6


def test_flags_of_the_corners():
    """In linf the convex delta' Q delta is largest at a corner: no flagged example fails there."""
    nets, x = Nets.at(some(14, 6, name="corners"), 0.4), 0.6 * some(300, 6, name="corner x")
    y = torch.where(nets.value(x) >= 0, 1.0, -1.0).double()
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0]).double()] * 6)
    ball = Ball(norm="linf", radius=0.04)
    room, q = curve_terms(nets, x, y, ball)
    curve = (q[:, None] * (0.04 * corners @ nets.weight.mT) ** 2).sum(-1).amax(1)
    flags = curve_certified(nets, x, y, ball)
    assert not bool((flags & (room <= curve)).any())
    assert int(flags.sum()) > 10
    assert int((curve > 0).sum()) > 10


def test_stacks_give_the_bounds_of_their_networks():
    weight, x = some(2, 6, 3, name="stack"), some(2, 5, 3)
    y, ball = torch.ones(2, 5).double(), Ball(norm="l2", radius=0.1)
    both = Nets.at(weight, 0.3)
    for r in range(2):
        one = Nets.at(weight[r], 0.3)
        for bound in (fixed_bound, slope_bound):
            torch.testing.assert_close(bound(both, x, y, ball)[r], bound(one, x[r], y[r], ball))
        for flags in (curve_certified, certified):
            assert torch.equal(flags(both, x, y, ball)[r], flags(one, x[r], y[r], ball))
    with pytest.raises(AdvlabError, match="without noise"):
        fixed_bound(Nets.at(weight, 0.3, 0.1), x, y, ball)


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_the_linearity_gap_is_that_of_autograd(sigma):
    nets = [SymmetricReLU.draw(3, 5, 1.0, 0.4, generator("gap", r), sigma) for r in range(2)]
    x, delta = some(2, 4, 3), 0.5 * some(2, 4, 3, name="delta")
    found = linearity_gap(Stack(nets), x, delta)
    for r, n in itertools.product(range(2), range(4)):
        leaf = x[r, n].clone().requires_grad_()
        f = nets[r](leaf[None])[0]
        (grad,) = torch.autograd.grad(f, leaf)
        gap = abs(nets[r]((leaf + delta[r, n])[None])[0] - f - grad @ delta[r, n])
        assert float(found[r, n]) == pytest.approx(float(gap.detach()), abs=1e-12)
    other = TwoLayer.draw(3, 8, "relu", generator("two"), omega=1.0)
    assert float(linearity_gap(other, x[0], 0 * delta[0]).max()) == 0


def test_the_fgm_argument_holds_where_the_gap_is_that_of_the_whole_ball():
    """In one dimension the ball is an interval, so a grid finds its gap."""
    nets, radius = Nets.at(torch.tensor([[2.0], [3.0], [-1.0]]).double(), 0.5, 0.2), 0.3
    x = torch.linspace(0.4, 4, 12, dtype=torch.float64)[:, None]
    y = torch.ones(12).double()
    fgm = -radius * nets.gradient(x).sign()
    deltas = [torch.full_like(x, v) for v in np.linspace(-radius, radius, 41)]
    found = fgm_argument(nets, x, y, fgm, deltas)
    values = torch.stack([nets.value(x + delta) for delta in deltas]).amin(0)
    assert bool((found.floor <= values + 1e-9).all())
    assert torch.equal(found.literal, (found.margin >= 10) & (found.gap <= 1))
    assert 0 < int(found.literal.sum()) < 12
    assert bool((values[found.literal] >= 8).all())


def test_a_margin_that_is_rounding_proves_nothing():
    """Found by chance: every unit is far below its bias, and f is 0 up to 1e-22 of either sign."""
    weight, x = some(4, 2, name=300), some(5, 2, name=("x", 300))
    nets, ball = Nets.at(weight, 1.0, 0.05), Ball(norm="l1", radius=0.25)
    y = torch.where(some(5, name=("y", 300)) > 0, 1.0, -1.0).double()
    assert 0 < float(certified_margin(nets, x, y, ball)[1]) < 1e-15
    assert not bool(certified(nets, x, y, ball)[1])
