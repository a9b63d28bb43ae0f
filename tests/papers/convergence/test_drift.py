"""Lemma A.5's drifts: exact against brute force, found moves in B(R), bounds that hold."""

import itertools
import math

import numpy as np
import pytest
import torch

from advlab.core.randomness import generator
from advlab.papers.convergence.measures.drift import (
    drift_bounds,
    gradient_distances,
    limit_drift,
    sampled_drift,
    searched_drift,
    states,
    turned,
)
from advlab.papers.convergence.models import DeepReLU


def drawn(m, depth, seed=0):
    rng = generator("drift", m, depth, seed)
    x = torch.randn(5, generator=rng, dtype=torch.float64)
    return DeepReLU.draw(5, m, depth, rng), x / x.norm(), rng


@pytest.mark.parametrize("seed", range(10))
def test_turned_units_are_those_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    p, value, budget = rng.normal(size=9), rng.normal(size=9), float(rng.uniform(0.1, 3))
    sets = [
        list(chosen)
        for k in range(10)
        for chosen in itertools.combinations(range(9), k)
        if (p[list(chosen)] ** 2).sum() <= budget**2
    ]
    most, found, bound = turned(p, value, budget)
    best = max((value[chosen] ** 2).sum() for chosen in sets)
    assert most == max(len(chosen) for chosen in sets)
    assert found <= best + 1e-12
    assert best <= bound + 1e-12
    assert bound - found <= (value**2).max()


def with_moves(net, lefts, rights):
    """The same network with its matrices moved."""
    weights = [w + torch.outer(u, v) for w, u, v in zip(net.hidden, lefts, rights, strict=True)]
    return DeepReLU(net.bottom, weights, net.top)


@pytest.mark.parametrize("depth", [1, 3])
def test_states_and_distances_are_those_of_autograd(depth):
    net, x, rng = drawn(12, depth)
    lefts, rights = (0.1 * torch.randn(depth, 12, generator=rng).double() for _ in range(2))
    moves = [(u[None], v[None]) for u, v in zip(lefts, rights, strict=True)]
    start = (net.bottom @ x)[None]
    here, there = states(net, start), states(net, start, moves)
    moved = with_moves(net, lefts, rights)
    one, other = (torch.autograd.grad(f(x[None]).sum(), list(f.hidden)) for f in (net, moved))
    expected = [float((a - b).norm()) for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(gradient_distances(here, there)[:, 0], expected, rtol=1e-10)
    torch.testing.assert_close(there.pre[-1], moved.preactivations(x[None])[-1].detach())


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_finds_lie_between_random_moves_and_bounds(depth):
    net, x, rng = drawn(40, depth)
    found, bounds = searched_drift(net, x, 1.0, rng), drift_bounds(net, x, 1.0)
    start = (net.bottom @ x)[None]
    here = states(net, start)
    for _ in range(40):
        lefts, rights = torch.randn(2, depth, 40, generator=rng, dtype=torch.float64)
        lefts = lefts / lefts.norm(dim=1, keepdim=True) / math.sqrt(40)
        rights = rights / rights.norm(dim=1, keepdim=True)
        there = states(net, start, [(u[None], v[None]) for u, v in zip(lefts, rights, strict=True)])
        for p, q in zip(here.pre, there.pre, strict=True):
            assert ((p > 0) != (q > 0)).sum() <= found.flips
        assert gradient_distances(here, there).max() <= found.gradient
        assert (here.features[-1] - there.features[-1]).norm() <= found.features
    for one, limit in zip(found, bounds, strict=True):
        assert one <= limit * (1 + 1e-9)


@pytest.mark.parametrize("depth", [1, 3])
def test_with_the_input_in_a_cap_finds_lie_between_random_ones_and_bounds_too(depth):
    """Moves of W and x' together: what a search finds is more than with x' = x, below the norms."""
    (net, x, rng), delta = drawn(40, depth), 1 / math.sqrt(40)
    alone = searched_drift(net, x, 1.0, rng)
    found, bounds = (fun(net, x, 1.0, *more) for fun, more in (
        (searched_drift, (rng, delta)), (drift_bounds, (delta,))))  # fmt: skip
    here = states(net, (net.bottom @ x)[None])
    angle = 2 * math.asin(delta / 2)
    for _ in range(40):
        lefts, rights = torch.randn(2, depth, 40, generator=rng, dtype=torch.float64)
        lefts = lefts / lefts.norm(dim=1, keepdim=True) / math.sqrt(40)
        rights = rights / rights.norm(dim=1, keepdim=True)
        across = torch.randn(5, generator=rng, dtype=torch.float64)
        across = across - (across @ x) * x
        near = math.cos(angle) * x + math.sin(angle) * across / across.norm()
        assert float((near - x).norm()) == pytest.approx(delta)
        start, moves = (net.bottom @ near)[None], list(zip(lefts, rights, strict=True))
        there = states(net, start, [(u[None], v[None]) for u, v in moves])
        # b x' are the gradients of the moved network at the moved input.
        moved = with_moves(net, lefts, rights)
        grads = torch.autograd.grad(moved(near[None]).sum(), list(moved.hidden))
        sizes = [float(g.norm()) for g in grads]
        backs = [b.norm() * a.norm() for b, a in zip(there.backs, there.inputs, strict=True)]
        np.testing.assert_allclose(backs, sizes, rtol=1e-9)
        assert max(sizes) <= bounds.size * (1 + 1e-9)
        assert max(float(a.norm()) for a in there.features) <= bounds.length * (1 + 1e-9)
        pairs = zip(here.backs, there.backs, strict=True)
        assert max(float((b - c).norm()) for b, c in pairs) <= found.backs
        assert gradient_distances(here, there).max() <= found.gradient
    for name in ("flips", "features", "gradient", "backs"):
        assert getattr(found, name) >= 0.9 * getattr(alone, name)
    for one, limit in zip(found, bounds, strict=True):
        assert one <= limit * (1 + 1e-9)


def test_with_one_hidden_layer_the_search_is_exact():
    net, x, rng = drawn(200, 1)
    found, bounds = searched_drift(net, x, 1.0, rng), drift_bounds(net, x, 1.0)
    assert found.flips == bounds.flips
    assert found.features == pytest.approx(bounds.features)
    assert found.gradient == pytest.approx(bounds.gradient, rel=0.05)


def test_the_law_without_a_matrix_is_that_of_networks():
    law = np.array([sampled_drift(64, (1.0,), np.random.default_rng(s))[0] for s in range(200)])
    nets = np.array([drift_bounds(*drawn(64, 1, seed)[:2], 1.0)[:3] for seed in range(60)])
    error = np.hypot(law.std(0) / 200**0.5, nets.std(0) / 60**0.5)
    assert (np.abs(law.mean(0) - nets.mean(0)) < 4 * error + [0, 0, 0.3]).all()


def test_the_limit_law_is_met_by_wide_layers():
    for R in (0.5, 2.0):
        found = np.mean(
            [sampled_drift(2**18, (R,), np.random.default_rng(s))[0] for s in range(5)], axis=0
        )
        np.testing.assert_allclose(found, limit_drift(2**18, R), rtol=0.03)
