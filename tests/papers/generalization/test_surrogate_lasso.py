"""The surrogate training loss with an l1 penalty, against attack and autograd, and its limits."""

import numpy as np
import pytest
import torch

from advlab.attacks import Exact, Surrogate
from advlab.core.errors import AdvlabError
from advlab.losses import squared
from advlab.models import Linear
from advlab.papers.generalization import theory
from advlab.threats import Ball


def samples(n: int = 80, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, d))
    return x, x[:, 0] - 0.5 * x[:, 1] + 0.5 * rng.normal(size=n)


def test_the_loss_is_that_of_attacked_inputs():
    x, y = samples()
    theta = np.array([0.6, -0.2, 0.1, 0.3, 0.0, -0.4])
    model = Linear(torch.from_numpy(theta))
    points, answers = torch.from_numpy(x), torch.from_numpy(y)
    attack = Surrogate(xi=0.4, inner=Exact())
    loss = lambda z: squared(model(z), answers)  # noqa: E731
    moved = attack(loss, points, Ball("l2", 0.3), rng=torch.Generator()).x
    value, gradient = theory.surrogate_loss(theta, x, y, 0.3, 0.4)
    assert value == pytest.approx(loss(moved).mean().item(), rel=1e-12)
    ends = [
        [theory.surrogate_loss(theta + s * e, x, y, 0.3, 0.4)[0] for s in (1e-6, -1e-6)]
        for e in np.eye(6)
    ]
    assert gradient == pytest.approx([(a - b) / 2e-6 for a, b in ends], rel=1e-5)


def test_the_loss_is_that_of_the_population_with_many_samples():
    rng = np.random.default_rng(6)
    theta0, theta = np.array([1.0, 0.0]), np.array([0.5, 0.2])
    x = rng.normal(size=(400_000, 2))
    y = x @ theta0 + rng.normal(size=len(x))
    value, _ = theory.surrogate_loss(theta, x, y, 0.5, 0.8)
    assert value == pytest.approx(float(theory.surrogate_risk(theta, theta0, 1.0, 0.5, 0.8)), 1e-2)


@pytest.mark.parametrize("penalty", [0.0, 0.1, 0.5])
def test_it_ends_at_a_stationary_point_below_its_start(penalty):
    x, y = samples()
    found = theory.surrogate_lasso(x, y, 0.3, penalty, 0.3)
    assert found.residual <= 1e-5
    start = theory.adversarial_lasso(x, y, 0.3, penalty, 0.3).theta
    loss, gradient = theory.surrogate_loss(found.theta, x, y, 0.3, 0.3)
    assert found.value == pytest.approx(loss + penalty * np.abs(found.theta).sum())
    before = theory.surrogate_loss(start, x, y, 0.3, 0.3)[0] + penalty * np.abs(start).sum()
    assert found.value <= before + 1e-12
    on = found.theta != 0
    assert gradient[on] == pytest.approx(-penalty * np.sign(found.theta[on]), abs=1e-5)
    assert np.abs(gradient[~on]).max(initial=0.0) <= penalty + 1e-5


def test_without_attack_it_is_the_lasso():
    x, y = samples()
    found = theory.surrogate_lasso(x, y, 0.0, 0.3, 0.1).theta
    plain = theory.adversarial_lasso(x, y, 0.0, 0.3, 0.1).theta
    assert found == pytest.approx(plain, abs=1e-5)


def test_xi_must_be_positive():
    x, y = samples()
    with pytest.raises(AdvlabError, match="xi must be positive"):
        theory.surrogate_lasso(x, y, 0.3, 0.1, 0.0)
