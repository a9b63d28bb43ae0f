"""The adversarial LASSO against a conic solver; Lemma 5 and the cone, sample by sample."""

from types import SimpleNamespace

import cvxpy
import numpy as np
import pytest

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.papers.generalization import theory


def samples(seed: int, n: int = 60, d: int = 4):
    rng = np.random.default_rng(seed)
    theta0 = np.r_[1.0, -1.0, np.zeros(d - 2)]
    x = rng.normal(size=(n, d))
    return x, x @ theta0 + 0.5 * rng.normal(size=n), theta0


def conic_minimiser(x, y, radius, penalty):
    theta = cvxpy.Variable(x.shape[1])
    size = cvxpy.abs(x @ theta - y) + radius * cvxpy.norm(theta, 2)
    loss = cvxpy.sum_squares(size) / len(y) + penalty * cvxpy.norm(theta, 1)
    cvxpy.Problem(cvxpy.Minimize(loss)).solve(solver="CLARABEL")
    return theta.value


def test_the_potential_on_many_samples_is_that_of_the_population():
    x, y, theta0 = samples(2, n=400_000)
    value, gradient = theory.empirical_potential(theta0 / 2, x, y, 0.5, 0.3)
    args = (theta0 / 2, theta0, 0.25, 0.5, 0.3)
    assert value == pytest.approx(theory.potential(*args), rel=1e-2)
    np.testing.assert_allclose(gradient, theory.potential_gradient(*args), atol=2e-2)


def test_lasso_against_the_conic_solver():
    x, y, _ = samples(3, n=30, d=50)
    found = theory.adversarial_lasso(x, y, 0.3, 0.2, xi=1e-4)
    other = conic_minimiser(x, y, 0.3, 0.2)
    np.testing.assert_allclose(found, other, atol=2e-3)
    assert 0 < np.count_nonzero(found) < 30


def test_lasso_is_zero_from_the_gradient_at_zero_on():
    x, y, _ = samples(4, d=20)
    edge = np.abs(2 * x.T @ y / len(y)).max()
    assert not theory.adversarial_lasso(x, y, 0.3, edge * (1 + 1e-9), xi=0.1).any()
    assert theory.adversarial_lasso(x, y, 0.3, edge * 0.99, xi=0.1).any()
    with pytest.raises(AdvlabError, match="kink"):
        theory.adversarial_lasso(x, y, 0.3, 0.1, xi=0.0)


def test_lemma_5_bounds_every_sample():
    x, y, theta0 = samples(5, n=2000)
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.3, 3.0):
        theta, eps = theta0 + scale * rng.normal(size=4), 0.6
        loss = lambda t: (np.abs(x @ t - y) + eps * np.linalg.norm(t)) ** 2  # noqa: B023, E731
        bound = theory.loss_increase_bound(theta, theta0, x, y, eps)
        assert (loss(theta) - loss(theta0) <= bound + 1e-9).all()


def test_the_estimate_lies_in_the_cone():
    x, y, theta0 = samples(6, n=200, d=100)
    eps = 0.3
    star = linear.optimal(theta0, 0.25, SimpleNamespace(ball_norm="l2", radius=eps)).theta
    found = theory.cone(star, star * 0.9, x, y, eps, 1.0)
    penalty = 1.5 * found.noise
    estimate = theory.adversarial_lasso(x, y, eps, penalty, xi=1e-4)
    inside = theory.cone(estimate, star, x, y, eps, penalty)
    assert inside.ratio <= inside.bound < np.inf
    assert inside.curvature > linear.quadratic_growth(eps)
    assert inside.error == pytest.approx(np.abs(estimate - star).sum() / penalty)
    assert theory.cone(estimate, star, x, y, eps, inside.noise / 2).bound == np.inf
