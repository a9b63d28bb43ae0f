"""Where the surrogate algorithm rests: tables, and gradient descent on the population."""

import numpy as np
import pytest
from scipy.optimize import brentq

from advlab import linear
from advlab.papers.generalization import theory

TEN = np.ones(10)


def descend(theta, steps, eta, *args, **options):
    for _ in range(steps):
        theta = theta - eta * theory.frozen_gradient(theta, *args, **options)
    return theta


@pytest.mark.parametrize(
    ("eps", "xi", "risk"), [(0.5, 0.1, 5.38532), (0.5, 1.0, 5.39452), (3.0, 0.05, 11.0268)]
)
def test_risks_of_the_table(eps, xi, risk):
    limit = theory.algorithm_limit(TEN, 1.0, eps, xi)
    assert limit.risk == pytest.approx(risk, abs=6e-5 if risk > 11 else 6e-6)
    best = linear.optimal_path(TEN, 1.0, eps).risk
    assert limit.excess == pytest.approx(limit.risk - best, abs=1e-12)


def test_kappas_of_the_table():
    kappa = theory.kappa_alg(TEN, 1.0, [0.5, 1.0], [1.0, 0.5])
    np.testing.assert_allclose(kappa, [0.1918, 1.632], rtol=5e-4)
    assert theory.algorithm_limit(np.ones(3) / np.sqrt(3), 1.0, 0.5, 0.01).risk == pytest.approx(
        1.75822, abs=6e-6
    )


@pytest.mark.parametrize("convention", ["definition", "proof"])
def test_descent_comes_to_rest_there(convention):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 3))
    theta0, cov = rng.normal(size=3), root.T @ root / 6
    args = (theta0, 0.5, 0.7, 0.2)
    limit = theory.algorithm_limit(*args, convention, cov)
    rest = descend(np.zeros(3), 800, 0.05, *args, convention=convention, cov=cov)
    np.testing.assert_allclose(rest, limit.theta, atol=1e-7)
    ridge = np.linalg.solve(cov + limit.kappa * np.eye(3), cov @ theta0)
    np.testing.assert_allclose(limit.theta, ridge, rtol=1e-10)
    assert limit.excess > 0


def test_at_xi_zero_it_is_the_optimum():
    radii = np.array([0.0, 0.2, 1.0, 1.19, 1.3])
    limit = theory.algorithm_limit(TEN, 1.0, radii, 0.0)
    best = linear.optimal_path(TEN, 1.0, radii)
    np.testing.assert_allclose(limit.kappa, best.kappa, rtol=1e-9)
    np.testing.assert_allclose(limit.excess, 0, atol=1e-12)


def test_beyond_the_threshold_it_is_small_but_not_zero():
    """kappa xi_eff -> c v ||theta0|| with E[Z^2/sqrt(Z^2 + c^2)] = c0 eps_0/eps as xi falls."""
    xi = np.array([1e-3, 1e-5, 1e-7])
    kappa = theory.kappa_alg(TEN, 1.0, 3.0, xi)
    z = np.linspace(-12, 12, 200_001)
    weights = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    wanted = linear.C0 * linear.eps_zero(TEN, 1.0) / 3.0
    c = brentq(lambda c: (weights * z**2 / np.sqrt(z**2 + c**2)).sum() - wanted, 1e-3, 100)
    error = np.abs(kappa * xi / 2 / (c * np.sqrt(11 * 10)) - 1)
    assert (error < [1e-3, 1e-5, 1e-7]).all()


def test_excess_grows_with_xi_and_arguments_broadcast():
    limit = theory.algorithm_limit(TEN, 1.0, [[0.3], [0.5], [1.0]], [0.0, 0.1, 0.5, 1.0, 2.0])
    assert limit.theta.shape == (3, 5, 10)
    assert (np.diff(limit.excess, axis=1) > 0).all()


def test_without_noise_descent_from_zero_stops_at_the_zero_nearest_to_it():
    """theta0 is always a rest point without noise; a strong attack holds descent far from it."""
    theta0 = np.array([1.0, 2.0])
    limit = theory.algorithm_limit(theta0, 0.0, 1.1, 0.1)
    assert 0 < limit.kappa < np.inf
    np.testing.assert_allclose(theory.frozen_gradient(theta0, theta0, 0.0, 1.1, 0.1), 0, atol=1e-12)
    rest = descend(np.zeros(2), 1500, 0.01, theta0, 0.0, 1.1, 0.1)
    np.testing.assert_allclose(rest, limit.theta, atol=1e-5)


@pytest.mark.parametrize("convention", ["definition", "proof"])
def test_stable_eta_is_where_small_models_stop_shrinking(convention):
    """The step's Jacobian at zero, by differences, has its lowest eigenvalue at -1."""
    cov = np.array([[2.0, 0.3], [0.3, 0.5]])
    args = ([1.0, 2.0], 0.3, 1.5, 0.2, convention, cov)
    eta = theory.stable_eta(*args)
    moves = 1e-6 * np.eye(2)
    jacobian = (theory.frozen_gradient(moves, *args) - theory.frozen_gradient(-moves, *args)) / 2e-6
    assert np.linalg.eigvalsh(np.eye(2) - eta * jacobian)[0] == pytest.approx(-1, abs=1e-5)


def test_stable_eta_of_the_first_figure():
    assert 5e-4 < theory.stable_eta(TEN, 1.0, 3.0, 0.05) < 1e-3
    np.testing.assert_allclose(theory.stable_eta(TEN, 1.0, [0.0, 1.0], 0.0), [1, 0])
