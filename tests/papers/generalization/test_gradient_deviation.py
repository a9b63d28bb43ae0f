"""Lemma 2's gradients, against Algorithm 1's own step and a large sample."""

import numpy as np
import pytest
from scipy.optimize import brentq

from advlab.core.randomness import generators
from advlab.papers.generalization import theory
from advlab.papers.generalization.data import LinearModel
from advlab.papers.generalization.experiments._parts.linear_runs import gradients, train
from advlab.papers.generalization.measures import gradient_deviation
from advlab.papers.generalization.measures.gradient_deviation import (
    largest_deviation,
    sample_gradients,
)
from advlab.threats import Ball


def test_the_sample_gradient_is_the_step_of_algorithm_1():
    x, y = LinearModel(n=50, d=3).sample_stack(generators("deviation", seeds=[0]))
    path = train(x, y, ball=Ball("l2", 0.4), xi=0.2, lr=0.05, steps=5)
    wanted = gradients(path, 0.2)[0][:, 0].numpy()
    found = sample_gradients(path.theta[:, 0].numpy(), x[0].numpy(), y[0].numpy(), 0.4, 0.2)
    assert found == pytest.approx(wanted, rel=1e-12)


def test_the_deviation_is_the_largest_of_the_net_and_vanishes_with_many_samples():
    law = LinearModel(n=200_000, d=2, theta0="unit")
    x, y = (one[0].numpy() for one in law.sample_stack(generators("deviation", seeds=[1])))
    at = (law.theta0_vector(), law.sigma2, 0.5, 0.3)
    few, many = (largest_deviation(x[:n], y[:n], *at, 1.0) for n in (500, 200_000))
    assert many < few / 5
    one = np.array([[1.0, 0.0]])
    there = sample_gradients(one, x[:500], y[:500], 0.5, 0.3) - theory.frozen_gradient(one, *at)
    assert few >= np.linalg.norm(there)


@pytest.mark.parametrize("d", [2, 7])
@pytest.mark.parametrize("seed", range(4))
def test_without_attack_it_is_the_supremum(d, seed):
    """There the deviation is A theta + b with A = 2 (X'X/n - I), b = -2 (X'y/n - theta0), and its
    largest length over the ball is a trust-region problem: (mu - A^2) theta = A b, mu >= |A|^2."""
    law = LinearModel(n=300, d=d, theta0="unit")
    x, y = (one[0].numpy() for one in law.sample_stack(generators("deviation", seeds=[seed])))
    found = largest_deviation(x, y, law.theta0_vector(), law.sigma2, 0.0, 0.3, 1.5)
    matrix = 2 * (x.T @ x / 300 - np.eye(d))
    constant = -2 * (x.T @ y / 300 - law.theta0_vector())
    square, pull = matrix @ matrix, matrix @ constant
    solve = lambda mu: np.linalg.solve(mu * np.eye(d) - square, pull)  # noqa: E731
    top = np.linalg.eigvalsh(square)[-1]
    mu = brentq(lambda one: np.linalg.norm(solve(one)) - 1.5, top * (1 + 1e-12), 100 * (1 + top))
    supremum = np.linalg.norm(matrix @ solve(mu) + constant)
    assert found <= supremum * (1 + 1e-9)
    assert found == pytest.approx(supremum, rel=0.01)


def test_ascent_finds_more_than_the_net(monkeypatch):
    law = LinearModel(n=300, d=7, theta0="unit")
    x, y = (one[0].numpy() for one in law.sample_stack(generators("deviation", seeds=[2])))
    args = (x, y, law.theta0_vector(), law.sigma2, 0.5, 0.3, 1.5)
    found = largest_deviation(*args)
    monkeypatch.setattr(gradient_deviation, "CLIMB", 0)
    assert largest_deviation(*args) < found
