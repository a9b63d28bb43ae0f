"""The worst move: exact against brute force, feasible, and with the exponents of its limit law."""

import math

import numpy as np
import pytest
import torch

from advlab.core.randomness import generator
from advlab.measure.linearity import lin_residual
from advlab.papers.convergence.measures.worst_move import (
    limit_constant,
    sampled_worst,
    worst_residual,
    worst_shifts,
)
from advlab.papers.convergence.models import DeepReLU


def brute(p, top, budget):
    """Over all sets of units that cross: u proportional to a, if it carries each across."""
    units, best = np.flatnonzero(top > 0), 0.0
    for code in range(1, 2 ** len(units)):
        on = units[[bool(code >> k & 1) for k in range(len(units))]]
        a = top[on]
        best = max(best, budget * np.linalg.norm(a) - float(a @ np.abs(p[on])))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_shifts_are_the_best_of_all_sets_of_units(seed):
    rng = np.random.default_rng(seed)
    p, top, budget = rng.normal(size=8), rng.normal(size=8), float(rng.uniform(0.1, 3))
    found = worst_shifts(p, top, budget)
    best = brute(p, top, budget)
    assert np.linalg.norm(found.shifts) <= budget * (1 + 1e-12)
    gain = top @ (np.maximum(p + found.shifts, 0) - np.maximum(p, 0) - (p > 0) * found.shifts)
    assert gain == pytest.approx(found.gain, abs=1e-12)
    assert found.gain <= best + 1e-12
    assert best <= found.bound + 1e-12
    assert found.gain >= 0.8 * best


def test_nothing_is_gained_by_a_budget_that_reaches_no_unit():
    assert worst_shifts(np.ones(3), np.ones(3), 0.1).gain == 0
    assert worst_shifts(np.ones(3), -np.ones(3), 9.0).gain == 0


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_worst_move_is_feasible_and_worse_than_random_moves(depth):
    net = DeepReLU.draw(5, 48, depth, generator("worst", depth))
    x = torch.randn(5, generator=generator("x"), dtype=torch.float64)
    x /= x.norm()
    value, move = worst_residual(net, x, 1.0)
    assert value == pytest.approx(lin_residual(net, x[None], move))
    for step in move.values():
        assert float(step.norm()) <= 1 / math.sqrt(48) * (1 + 1e-9)
    rng = generator("other moves")
    for _ in range(50):
        other = {name: torch.randn(48, 48, generator=rng, dtype=torch.float64) for name in move}
        other = {name: step / step.norm() / math.sqrt(48) for name, step in other.items()}
        assert lin_residual(net, x[None], other) < value


def test_the_law_without_a_matrix_is_that_of_networks():
    rng, drawn = np.random.default_rng(0), generator("law")
    law = [sampled_worst(64, (1.0,), rng)[0].gain for _ in range(200)]
    nets = []
    for _ in range(60):
        net = DeepReLU.draw(5, 64, 1, drawn)
        x = torch.randn(5, generator=drawn, dtype=torch.float64)
        nets.append(worst_residual(net, x / x.norm(), 1.0)[0])
    error = math.hypot(np.std(law) / 200**0.5, np.std(nets) / 60**0.5)
    assert abs(np.mean(law) - np.mean(nets)) < 4 * error


def test_the_limit_law_is_met_by_wide_layers():
    rng = np.random.default_rng(1)
    for R in (0.5, 2.0):
        found = np.mean([sampled_worst(2**18, (R,), rng)[0].gain for _ in range(5)])
        expected = limit_constant() * 2 ** (-18 / 6) * R ** (4 / 3)
        assert found == pytest.approx(expected, rel=0.03)
