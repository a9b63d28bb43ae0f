"""Balls with a radius and limits per feature: their laws, a convex solver, and plain balls."""

import cvxpy as cp
import numpy as np
import pytest
import torch

from advlab.attacks import APGD, FAB, PGD, Square
from advlab.certify import certify
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball, FeatureBall

NORM = {"l1": 1, "l2": 2, "linf": "inf"}


def scene(norm: str, seed: int, d: int = 6):
    """A set with frozen features and limits, centers inside, points around."""
    rng = np.random.default_rng(seed)
    radius = rng.uniform(0.05, 2.0, d) * (rng.random(d) < 0.8)
    low = rng.uniform(-1, 0, d) if seed % 2 else None
    high = rng.uniform(0, 1, d) if seed % 3 else None
    ball = FeatureBall(norm, radius, low=low, high=high)
    center = rng.uniform(-1 if low is None else low, 1 if high is None else high, (5, d))
    point = center + rng.normal(size=(5, d)) * 10.0 ** (seed % 4 - 2)
    return ball, radius, low, high, torch.tensor(center), torch.tensor(point)


@pytest.mark.parametrize("norm", sorted(NORM))
@pytest.mark.parametrize("seed", range(4))
def test_steepest_attains_the_dual_norm(norm, seed):
    """The other laws are in tests/laws."""
    ball, _, _, _, _, point = scene(norm, seed)
    step = ball.steepest(point)
    assert (ball.norm_of(step) <= 1 + 1e-9).all()
    gain = (step * point).sum(1)
    torch.testing.assert_close(gain, ball.dual_norm(point), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("norm", sorted(NORM))
@pytest.mark.parametrize("seed", range(10))
def test_a_convex_solver_agrees(norm, seed):
    ball, radius, low, high, center, point = scene(norm, seed)
    c, p, free = center[0].numpy(), point[0].numpy(), radius > 0
    z = cp.Variable(len(c))
    limits = [z[~free] == c[~free]] if (~free).any() else []
    if free.any():
        limits.append(cp.norm(cp.multiply(z[free] - c[free], 1 / radius[free]), NORM[norm]) <= 1)
    limits += [z >= low] if low is not None else []
    limits += [z <= high] if high is not None else []
    for goal, ours, value in (
        (cp.Minimize(cp.sum_squares(z - p)), ball.project, lambda x: np.sum((x - p) ** 2)),
        (cp.Maximize(p @ z), ball.maximiser, lambda x: p @ x),
    ):
        cp.Problem(goal, limits).solve(solver=cp.CLARABEL)
        found = ours(point[:1], center[:1])[0].numpy()
        assert value(found) == pytest.approx(value(z.value), abs=1e-6, rel=1e-6)


@pytest.mark.parametrize("norm", sorted(NORM))
def test_equal_radii_are_a_plain_ball(norm):
    plain, ours = Ball(norm, 0.3, box=(0, 1)), FeatureBall(norm, [0.3] * 6, low=0.0, high=1.0)
    rng = generator("plain")
    center = torch.rand(20, 6, generator=rng, dtype=torch.float64)
    point = center + torch.randn(20, 6, generator=rng, dtype=torch.float64)
    for name in ("project", "maximiser", "support"):
        torch.testing.assert_close(getattr(ours, name)(point, center),
                                   getattr(plain, name)(point, center))  # fmt: skip


def test_a_mask_freezes_pixels_in_every_attack_and_certificates_know_it():
    torch.manual_seed(0)
    mask = torch.zeros(1, 4, 4, dtype=torch.bool)
    mask[..., :2, :2] = True
    ball = FeatureBall("linf", 0.4, low=0.0, high=1.0, mask=mask)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 8), torch.nn.ReLU(),
                              torch.nn.Linear(8, 3))  # fmt: skip
    x = torch.rand(12, 1, 4, 4)
    y = net(x).argmax(1)
    loss = ModelLoss(net, y, margin)
    worst = torch.full((12,), -torch.inf)
    for attack in (PGD(), APGD(), Square(queries=50), FAB(steps=10)):
        found = attack(loss, x, ball, rng=0)
        assert torch.equal((found.x - x)[:, ~mask], torch.zeros(12, 12))
        worst = torch.maximum(worst, found.loss)
    assert (certify(net, x, y, ball).bound >= worst - 1e-5).all()
    whole = certify(net, x, y, Ball("linf", 0.4, box=(0, 1)))
    assert (certify(net, x, y, ball, ["ibp"]).bound <= whole.bound + 1e-4).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"radius": [1.0, 2.0], "low": [0.0, 0.0, 0.0]}, "as many features"),
        ({"radius": [1.0, -2.0]}, "at least 0"),
        ({"radius": 1.0, "low": [1.0, 0.0], "high": 0.5}, "low at most high"),
        ({"radius": 1.0, "mask": [0.5, 1]}, "a mask of flags"),
        ({"radius": [1.0, 2.0], "mask": [True]}, "a mask of 2 features"),
        ({"radius": [1.0, float("nan")]}, "finite"),
    ],
)
def test_what_does_not_fit_is_one_line(settings, words):
    with pytest.raises(AdvlabError, match=words):
        FeatureBall("l2", **settings)


def test_inputs_of_another_size_or_outside_are_refused():
    ball = FeatureBall("l2", [1.0, 2.0], low=[0.0, -1.0])
    with pytest.raises(AdvlabError, match="inputs of 2 features"):
        ball.check_center(torch.zeros(3, 4))
    with pytest.raises(AdvlabError, match=r"feature 0 between 0 and inf.*row 1"):
        ball.check_center(torch.tensor([[0.0, 0.0], [-2.0, 0.0]]))


def test_it_is_a_setting_like_any_other():
    ball = FeatureBall("linf", [2.0, 1.0, 0.0], low=0.0)
    assert ball.weights == (1.0, 0.5, 0.0)
    assert FeatureBall(**ball.model_dump()) == ball
    assert ball.with_radius(4.0) == FeatureBall("linf", [4.0, 2.0, 0.0], low=0.0)
