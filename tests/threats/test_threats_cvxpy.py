"""Projections and linear maximisation against a convex solver."""

import cvxpy as cp
import numpy as np
import pytest
import torch

from advlab.threats import Ball

NORM = {"l1": 1, "l2": 2, "linf": "inf"}


def problem(seed: int, boxed: bool):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    center = rng.uniform(0, 1, d)
    center[rng.random(d) < 0.3] = rng.choice([0.0, 1.0])
    point = center + rng.normal(size=d) * rng.choice([0.1, 0.5, 2.0])
    return center, point, float(rng.choice([0.05, 0.3, 1.0])), (0.0, 1.0) if boxed else None


def solve(goal, z, center, radius, norm, box):
    limits = [cp.norm(z - center, NORM[norm]) <= radius]
    if box:
        limits += [z >= box[0], z <= box[1]]
    cp.Problem(goal, limits).solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    return z.value


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_project_is_the_nearest_point(norm, boxed, seed):
    center, point, radius, box = problem(seed, boxed)
    z = cp.Variable(len(center))
    expected = solve(cp.Minimize(cp.sum_squares(z - point)), z, center, radius, norm, box)
    ball = Ball(norm=norm, radius=radius, box=box)
    ours = ball.project(torch.tensor(point)[None], torch.tensor(center)[None])[0].numpy()
    np.testing.assert_allclose(ours, expected, atol=2e-5)
    assert np.sum((ours - point) ** 2) <= np.sum((expected - point) ** 2) + 1e-8


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_maximiser_reaches_the_largest_value(norm, boxed, seed):
    center, point, radius, box = problem(seed, boxed)
    gain = point - center
    z = cp.Variable(len(center))
    expected = solve(cp.Maximize(gain @ z), z, center, radius, norm, box)
    ball = Ball(norm=norm, radius=radius, box=box)
    c = torch.tensor(center)[None]
    ours = ball.maximiser(torch.tensor(gain)[None], c)
    assert ball.contains(ours, c).all()
    assert float(ours[0].numpy() @ gain) == pytest.approx(gain @ expected, abs=1e-7)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_dual_norm_is_the_largest_inner_product(norm):
    w = np.random.default_rng(0).normal(size=6)
    z = cp.Variable(6)
    expected = w @ solve(cp.Maximize(w @ z), z, np.zeros(6), 1.0, norm, None)
    ours = float(Ball(norm=norm, radius=0.3).dual_norm(torch.tensor(w)))
    assert ours == pytest.approx(expected, abs=1e-8)
