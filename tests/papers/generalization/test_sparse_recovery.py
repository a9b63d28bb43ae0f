"""What `sparse_recovery` measures: its problems, directions in the cone, and the bias of xi."""

from functools import partial

import numpy as np
import pytest
import torch

from advlab import linear
from advlab.papers.generalization import theory
from advlab.papers.generalization.experiments import sparse_recovery
from advlab.papers.generalization.experiments._parts import assumptions as conditions
from advlab.papers.generalization.experiments._parts import recovery_runs as recovery


@pytest.mark.parametrize("truth", ["equal", "decaying"])
def test_both_dense_problems_have_the_same_length(truth):
    case = recovery.Case(part="tuned", n=100, d=20, s=20, constant=0.1, truth=truth)
    theta0 = case.law.theta0_vector()
    assert theta0 @ theta0 == pytest.approx(recovery.NORM2)
    assert (theta0 != 0).all()
    assert theta0[1] / theta0[0] == pytest.approx(1.0 if truth == "equal" else 0.7)


@pytest.mark.parametrize("bound", [0.5, 3.0, np.inf])
def test_directions_lie_in_the_cone(bound):
    x = np.random.default_rng(0).normal(size=(40, 100))
    star = np.r_[np.ones(5), np.zeros(95)]
    moves = recovery.cone_directions(x, star, bound, seed=1)
    on, off = np.abs(moves[:, :5]).sum(1), np.abs(moves[:, 5:]).sum(1)
    assert len(moves) == recovery.RANDOM + recovery.FLAT
    assert (off <= min(bound, 10.0) * on + 1e-12).all()
    if bound == np.inf:
        images = ((moves @ x.T) ** 2).mean(1) / (moves**2).sum(1)
        assert images[recovery.RANDOM :].mean() < images[: recovery.RANDOM].mean() / 2


def test_the_bias_is_the_gradient_of_the_surrogate_risk():
    case = recovery.Case(part="surrogate", n=1000, d=12, s=4, constant=0.8, share=1.0)
    theta0 = case.law.theta0_vector()
    star = linear.optimal(theta0, 1.0, case.ball).theta
    at = (theta0, 1.0, case.ball.radius, case.xi)
    ends = [[theory.surrogate_risk(star + s * e, *at) for s in (1e-5, -1e-5)] for e in np.eye(12)]
    gradient = np.array([(a - b) / 2e-5 for a, b in ends])
    assert recovery.population_bias(case, star) == pytest.approx(np.abs(gradient).max(), rel=1e-4)


def test_lambda_is_that_of_theorem_9():
    case = recovery.Case(part="surrogate", n=400, d=30, s=3, constant=0.8, share=2.0)
    x, y = (one.numpy() for one in case.law.sample(torch.Generator()))
    star = linear.optimal(case.law.theta0_vector(), 1.0, case.ball).theta
    row = recovery.measured(case, 0, x, y, star)
    v = np.sqrt(11.0)
    sampling, smoothing = 0.8 * np.sqrt(3 * np.log(30) / 400), 2 / 20 * np.log(400)
    assert row["penalty"] == pytest.approx(v * max(sampling, smoothing))
    assert case.xi == pytest.approx(11.0 * 2 / 20)


def test_a_surrogate_solve_that_failed_is_outside(monkeypatch):
    """The solver's residual reaches the scope of the claims about surrogate attacks."""
    case = recovery.Case(part="surrogate", n=100, d=30, s=3, constant=0.8, share=1.0)
    x, y = (one.numpy() for one in case.law.sample(torch.Generator()))
    star = linear.optimal(case.law.theta0_vector(), 1.0, case.ball).theta
    solved = recovery.measured(case, 0, x, y, star)["residual"]
    assert conditions.stationary(np.array([solved]), sparse_recovery.STATIONARY).holds
    short = partial(theory.surrogate_lasso, steps=1)
    monkeypatch.setattr(recovery.theory, "surrogate_lasso", short)
    failed = recovery.measured(case, 0, x, y, star)["residual"]
    assert not conditions.stationary(np.array([failed]), sparse_recovery.STATIONARY).holds
