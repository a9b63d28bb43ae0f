"""The adversarial LASSO against a conic solver; Lemma 5 and the cone, sample by sample."""

from types import SimpleNamespace

import cvxpy
import numpy as np
import pytest

from advlab import linear
from advlab.papers.generalization import theory
from advlab.papers.generalization.theory.adversarial_lasso import _Lasso


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
    found = theory.adversarial_lasso(x, y, 0.3, 0.2, xi=1e-4).theta
    other = conic_minimiser(x, y, 0.3, 0.2)
    np.testing.assert_allclose(found, other, atol=2e-3)
    assert 0 < np.count_nonzero(found) < 30


@pytest.mark.parametrize("xi", [0.05, 1e-5])
@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_the_gap_is_a_bound_and_small(xi, penalty):
    """80 x 150 at xi = 1e-5, penalty 0.1 once ended 0.6 % above the optimum without a word."""
    x, y, _ = samples(7, n=80, d=150)
    found = theory.adversarial_lasso(x, y, 0.3, penalty, xi=xi)
    assert found.converged
    assert found.gap <= 1e-6 * found.value
    objective = theory.empirical_potential(found.theta, x, y, 0.3, xi)[0]
    assert found.value == pytest.approx(objective + penalty * np.abs(found.theta).sum())
    # The potential exceeds the risk without smoothing by at most 2 eps xi_eff.
    least = risk_of(conic_minimiser(x, y, 0.3, penalty), x, y, penalty)
    assert least - 1e-6 <= found.value <= least + 0.3 * xi + 1e-6
    assert found.value - found.gap <= least + 0.3 * xi + 1e-6


def risk_of(theta, x, y, penalty) -> float:
    loss = (np.abs(x @ theta - y) + 0.3 * np.linalg.norm(theta)) ** 2
    return float(loss.mean() + penalty * np.abs(theta).sum())


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 1.1])
def test_the_gap_never_says_less_than_the_truth(scale):
    x, y, _ = samples(8, n=40, d=60)
    best = theory.adversarial_lasso(x, y, 0.3, 0.1, xi=0.05, tolerance=1e-10)
    problem = _Lasso(x, y, 0.3, 0.1, 0.025)
    theta = scale * best.theta
    excess = problem.value(theta) - best.value
    assert problem.gap(theta) >= excess - 1e-9
    assert problem.gap(best.theta) <= 1e-8 * best.value


def test_a_miss_is_said_in_one_line():
    x, y, _ = samples(9, n=80, d=150)
    with pytest.warns(UserWarning, match="adversarial_lasso not converged in . steps: within"):
        found = theory.adversarial_lasso(x, y, 0.3, 0.1, xi=1e-5, steps=2, tolerance=1e-12)
    assert not found.converged
    assert found.gap > 1e-12 * found.value
    assert "\n" not in found.status


def test_without_attack_it_is_the_lasso():
    x, y, _ = samples(10, n=60, d=20)
    found = theory.adversarial_lasso(x, y, 0.0, 0.3, xi=0.1, tolerance=1e-8)
    theta = cvxpy.Variable(20)
    loss = cvxpy.sum_squares(x @ theta - y) / 60 + 0.3 * cvxpy.norm1(theta)
    assert found.converged
    assert found.value == pytest.approx(
        cvxpy.Problem(cvxpy.Minimize(loss)).solve(solver="CLARABEL"), rel=1e-6
    )


def test_lasso_is_zero_from_the_gradient_at_zero_on():
    x, y, _ = samples(4, d=20)
    edge = np.abs(2 * x.T @ y / len(y)).max()
    assert not theory.adversarial_lasso(x, y, 0.3, edge * (1 + 1e-9), xi=0.1).theta.any()
    assert theory.adversarial_lasso(x, y, 0.3, edge * 0.99, xi=0.1).theta.any()


@pytest.mark.parametrize("d", [20, 120])
def test_without_smoothing_the_lasso_is_exact_and_the_limit_of_small_xi(d):
    x, y, _ = samples(4, d=d)
    exact = theory.adversarial_lasso(x, y, 0.3, 0.1, xi=0.0, tolerance=1e-8)
    assert exact.converged
    assert 0 < (exact.theta != 0).sum() < d
    near = theory.adversarial_lasso(x, y, 0.3, 0.1, xi=1e-5, tolerance=1e-8)
    assert exact.value <= near.value
    assert near.value == pytest.approx(exact.value, rel=1e-4)
    np.testing.assert_allclose(near.theta, exact.theta, atol=5e-3)


def test_lemma_5_bounds_every_sample():
    x, y, theta0 = samples(5, n=2000)
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.3, 3.0):
        theta, eps = theta0 + scale * rng.normal(size=4), 0.6
        loss = lambda t: (np.abs(x @ t - y) + eps * np.linalg.norm(t)) ** 2  # noqa: B023, E731
        bound = theory.loss_increase_bound(theta, theta0, x, y, eps)
        rise = theory.loss_increase(theta, theta0, x, y, eps)
        np.testing.assert_allclose(rise, loss(theta) - loss(theta0), atol=1e-12)
        assert (rise <= bound + 1e-9).all()


def test_lemma_5_as_printed_is_no_bound_for_a_much_shorter_theta():
    x, y, theta0 = samples(5, n=2000)
    rise = theory.loss_increase(0.1 * theta0, theta0, x, y, 0.6)
    assert (rise <= theory.loss_increase_bound(0.1 * theta0, theta0, x, y, 0.6) + 1e-9).all()
    assert (rise > theory.loss_increase_bound(0.1 * theta0, theta0, x, y, 0.6, True)).any()


def test_the_estimate_lies_in_the_cone():
    x, y, theta0 = samples(6, n=200, d=100)
    eps = 0.3
    star = linear.optimal(theta0, 0.25, SimpleNamespace(ball_norm="l2", radius=eps)).theta
    found = theory.cone(star, star * 0.9, x, y, eps, 1.0)
    penalty = 1.5 * found.noise
    estimate = theory.adversarial_lasso(x, y, eps, penalty, xi=1e-4).theta
    inside = theory.cone(estimate, star, x, y, eps, penalty)
    assert inside.ratio <= inside.bound < np.inf
    assert inside.curvature > linear.quadratic_growth(eps)
    assert inside.error == pytest.approx(np.abs(estimate - star).sum() / penalty)
    assert theory.cone(estimate, star, x, y, eps, inside.noise / 2).bound == np.inf
