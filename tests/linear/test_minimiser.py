"""Robust optima against tables, a conic solver and a derivative-free search."""

from types import SimpleNamespace

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.linear.roots import find_roots

NORMS = ("l1", "l2", "linf")
TEN = np.ones(10)


def ball(norm: str, radius: float):
    return SimpleNamespace(ball_norm=norm, radius=radius)


def problem(seed: int, d: int = 4, kind: str = "correlated"):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d + 3, d))
    covs = {
        "identity": None,
        "diagonal": np.diag(rng.uniform(0.3, 2, d)),
        "correlated": root.T @ root / (d + 3),
    }
    return rng.normal(size=d), rng.uniform(0.1, 1), covs[kind]


def conic_optimum(theta0, sigma2, radius, norm, cov):
    """The risk is (s + c0 radius q)^2 + (1 - 2/pi) radius^2 q^2; a conic solver takes its root."""
    root = np.linalg.cholesky(np.eye(len(theta0)) if cov is None else cov).T
    theta = cvxpy.Variable(len(theta0))
    residual = cvxpy.hstack([root @ (theta - theta0), np.array([np.sqrt(sigma2)])])
    dual = {"l1": "inf", "l2": 2, "linf": 1}[norm]
    s, q = cvxpy.norm(residual, 2), cvxpy.norm(theta, dual)
    parts = cvxpy.hstack([s + linear.C0 * radius * q, np.sqrt(1 - 2 / np.pi) * radius * q])
    cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(parts, 2))).solve(solver="CLARABEL")
    return theta.value


@pytest.mark.parametrize(
    ("eps", "kappa", "risk", "standard"),
    [
        (0.0, 0.0, 1.0, 1.0),
        (0.05, 0.01361, 1.27529, 1.00180),
        (0.1, 0.02899, 1.59473, 1.00794),
        (0.2, 0.06462, 2.35506, 1.03685),
        (0.3, 0.10747, 3.25786, 1.09416),
        (0.5, 0.22772, 5.38521, 1.34404),
        (0.7, 0.45974, 7.70677, 1.99192),
        (1.0, 2.2387, 10.47674, 5.77810),
        (1.1, 5.9948, 10.88489, 8.34512),
        (1.195, np.inf, 11.0, 11.0),
    ],
)
def test_ten_ones(eps, kappa, risk, standard):
    best = linear.optimal(TEN, 1.0, ball("l2", eps))
    assert best.kappa == pytest.approx(kappa, rel=3e-4)
    assert best.risk == pytest.approx(risk, abs=6e-6)
    assert linear.standard_risk(best.theta, TEN, 1.0) == pytest.approx(standard, abs=6e-6)


def test_other_tables():
    three = linear.optimal_path(np.ones(3) / np.sqrt(3), 1.0, [0.1, 0.2, 0.3, 0.5, 0.7]).risk
    np.testing.assert_allclose(three, [1.16213, 1.32515, 1.48285, 1.75821, 1.94201], atol=6e-6)
    wide = np.r_[np.ones(10), np.zeros(990)]
    np.testing.assert_allclose(
        linear.optimal_path(wide, 1.0, [0.01, 0.1]).risk, [1.05140, 1.59473], atol=6e-6
    )
    np.testing.assert_allclose(
        linear.optimal_path(wide, 0.1, [0.01, 0.1]).risk, [0.11695, 0.35778], atol=6e-6
    )
    assert linear.eps_zero(TEN, 1.0) == pytest.approx(1.1950, abs=5e-5)
    assert linear.eps_zero(np.ones(3) / np.sqrt(3), 1.0) == pytest.approx(0.8862, abs=5e-5)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["identity", "diagonal", "correlated"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_optimum_is_that_of_a_conic_solver(norm, kind, share):
    theta0, sigma2, cov = problem(5, kind=kind)
    radius = share * linear.eps_zero(theta0, sigma2, norm, cov)
    best = linear.optimal(theta0, sigma2, ball(norm, radius), cov)
    other = conic_optimum(theta0, sigma2, radius, norm, cov)
    np.testing.assert_allclose(best.theta, other, atol=1e-3)
    theirs = linear.adversarial_risk(other, theta0, sigma2, ball(norm, radius), cov)
    assert theirs * (1 - 1e-7) <= best.risk <= theirs + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_no_search_without_derivatives_does_better(seed):
    theta0, sigma2, cov = problem(seed, d=3)
    threat = ball("l2", 0.6 * linear.eps_zero(theta0, sigma2, "l2", cov))
    best = linear.optimal(theta0, sigma2, threat, cov)
    found = minimize(
        lambda theta: linear.adversarial_risk(theta, theta0, sigma2, threat, cov),
        theta0,
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-15, "maxiter": 5000, "maxfev": 5000},
    )
    assert best.risk == pytest.approx(found.fun, abs=1e-12)
    np.testing.assert_allclose(best.theta, found.x, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_kappa_is_the_best_point_of_the_ridge_path(seed):
    """Golden section finds kappa to sqrt(rounding); the fixed-point residual to rounding."""
    theta0, sigma2, cov = problem(seed)
    eps = 0.5 * linear.eps_zero(theta0, sigma2, "l2", cov)
    best = linear.optimal(theta0, sigma2, ball("l2", eps), cov)
    ridge = lambda k: np.linalg.solve(cov + k * np.eye(4), cov @ theta0)  # noqa: E731
    risk = lambda k: linear.adversarial_risk(ridge(np.exp(k)), theta0, sigma2, ball("l2", eps), cov)  # noqa: E731
    found = minimize_scalar(risk, bounds=(-10, 10), method="bounded", options={"xatol": 1e-10})
    assert np.log(best.kappa) == pytest.approx(found.x, abs=1e-6)
    np.testing.assert_allclose(best.theta, ridge(best.kappa), rtol=1e-10)
    a, s = np.linalg.norm(best.theta), linear.residual_std(best.theta, theta0, sigma2, cov)
    fixed = (eps**2 + eps * linear.C0 * s / a) / (1 + eps * linear.C0 * a / s)
    assert best.kappa == pytest.approx(fixed, rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", ["identity", "correlated"])
def test_zero_exactly_from_the_threshold_on(norm, kind):
    theta0, sigma2, cov = problem(3, kind=kind)
    edge = linear.eps_zero(theta0, sigma2, norm, cov)
    best = linear.optimal_path(theta0, sigma2, edge * np.array([1 - 1e-3, 1, 1 + 1e-3]), norm, cov)
    assert best.theta[0].any()
    assert not best.theta[1:].any()
    assert np.isinf(best.kappa[1:]).all()
    assert best.risk[0] < best.risk[1] == best.risk[2]


def test_linf_with_the_identity_is_soft_thresholding():
    theta0 = np.array([2.0, -1.0, 0.3, 0.0])
    eps = 0.4
    best = linear.optimal(theta0, 0.5, ball("linf", eps))
    q = np.abs(best.theta).sum()
    s = linear.residual_std(best.theta, theta0, 0.5)
    tau = (eps**2 * q + eps * linear.C0 * s) / (1 + eps * linear.C0 * q / s)
    np.testing.assert_allclose(best.theta, linear.soft_threshold(theta0, tau), atol=1e-12)
    assert best.kappa * q == pytest.approx(tau, rel=1e-12)
    assert linear.eps_zero(theta0, 0.5, "linf") == pytest.approx(
        np.sqrt(np.pi / 2) * 2 / np.sqrt(5.59)
    )


def test_without_noise_the_truth_stays_optimal_up_to_a_radius():
    rng = np.random.default_rng(0)
    theta0, _, cov = problem(2)
    assert linear.eps_unmoved(TEN) == pytest.approx(linear.C0)
    edge = linear.eps_unmoved(theta0, cov)
    best = linear.optimal_path(theta0, 0.0, edge * np.array([0.5, 1 - 1e-6, 1 + 1e-3]), cov=cov)
    np.testing.assert_allclose(best.theta[:2], [theta0, theta0], rtol=1e-13)
    np.testing.assert_array_equal(best.kappa[:2], 0)
    assert best.kappa[2] > 0
    # Nearby models are no better below the edge, and one of them is above it.
    near = theta0 + 1e-4 * rng.normal(size=(2000, 4))
    inside = linear.adversarial_risks(near, theta0, 0.0, edge * (1 - 1e-3), cov=cov)
    assert (
        inside > linear.adversarial_risks(theta0, theta0, 0.0, edge * (1 - 1e-3), cov=cov)
    ).all()
    assert best.risk[2] < linear.adversarial_risks(theta0, theta0, 0.0, edge * (1 + 1e-3), cov=cov)
    path = linear.optimal_path(TEN, 0.0, [0.79, 0.8, 1.0, 1.25, 1.26])
    assert path.kappa[0] == 0
    assert path.kappa[2] == pytest.approx(1)
    assert 0 < path.kappa[1] < path.kappa[2] < path.kappa[3]
    assert np.isinf(path.kappa[4])


def test_special_cases():
    theta0, sigma2, cov = problem(4)
    np.testing.assert_allclose(linear.optimal(theta0, sigma2, ball("l2", 0.0), cov).theta, theta0)
    parallel = linear.optimal(theta0, sigma2, ball("l2", 0.3)).theta
    np.testing.assert_allclose(np.cross(parallel[:3], theta0[:3]), 0, atol=1e-15)
    none = linear.optimal_path(np.zeros(3), 0.0, [0.0, 1.0])
    assert not none.theta.any()
    shaped = linear.optimal_path(theta0, sigma2, np.full((2, 3), 0.2), cov=cov)
    assert shaped.theta.shape == (2, 3, 4)
    assert shaped.risk.shape == shaped.kappa.shape == (2, 3)
    assert linear.optimal_path(theta0, sigma2, [], cov=cov).theta.shape == (0, 4)


def test_directions_without_variance_are_dropped():
    best = linear.optimal([1.0, 5.0], 0.5, ball("l2", 0.3), np.diag([1.0, 0.0]))
    alone = linear.optimal([1.0], 0.5, ball("l2", 0.3))
    np.testing.assert_allclose(best.theta, [alone.theta[0], 0], atol=1e-15)
    with pytest.raises(AdvlabError, match="positive definite"):
        linear.optimal([1.0, 5.0], 0.5, ball("linf", 0.3), np.diag([1.0, 0.0]))


def test_sparsity_survives_only_without_cross_correlation():
    theta0 = np.array([1.0, -2.0, 0.0, 0.0])
    block = np.array([[1.0, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0.3], [0, 0, 0.3, 1]])
    mixed = block.copy()
    mixed[1, 2] = mixed[2, 1] = 0.4
    assert np.abs(linear.optimal(theta0, 1.0, ball("l2", 0.5), block).theta[2:]).max() < 1e-15
    assert np.abs(linear.optimal(theta0, 1.0, ball("l2", 0.5), mixed).theta[2:]).min() > 1e-3


@given(
    seed=st.integers(0, 10_000), scale=st.floats(0.01, 100), norm=st.sampled_from(["l2", "linf"])
)
@settings(max_examples=30, deadline=None)
def test_the_optimum_scales_with_the_outputs(seed, scale, norm):
    theta0, sigma2, cov = problem(seed, kind="correlated" if norm == "l2" else "diagonal")
    radii = [0.1, 0.4]
    plain = linear.optimal_path(theta0, sigma2, radii, norm, cov)
    scaled = linear.optimal_path(scale * theta0, scale**2 * sigma2, radii, norm, cov)
    np.testing.assert_allclose(scaled.theta, scale * plain.theta, rtol=1e-7, atol=1e-9 * scale)
    np.testing.assert_allclose(scaled.kappa, plain.kappa, rtol=1e-7)


@given(seed=st.integers(0, 10_000), norm=st.sampled_from(NORMS))
@settings(max_examples=30, deadline=None)
def test_risk_kappa_and_cost_grow_with_the_radius(seed, norm):
    theta0, sigma2, cov = problem(seed, kind="correlated" if norm == "l2" else "diagonal")
    edge = linear.eps_zero(theta0, sigma2, norm, cov)
    radii = edge * np.linspace(0, 1, 30)
    best = linear.optimal_path(theta0, sigma2, radii, norm, cov)
    cost = linear.cost_of_robustness(theta0, sigma2, radii, norm, cov)
    assert (np.diff(best.risk) > 0).all()
    assert (np.diff(best.kappa[:-1]) > 0).all()
    assert (np.diff(cost) > 0).all()
    v2 = linear.total_variance(theta0, sigma2, cov)
    assert cost[0] < 1e-28
    assert cost[-1] == pytest.approx(1 - sigma2 / v2)
    # Nothing beats the zero model's v^2 or the truth at its own game.
    assert (best.risk <= v2 * (1 + 1e-12)).all()
    truth = linear.adversarial_risks(theta0, theta0, sigma2, radii, norm, cov)
    assert (best.risk <= truth * (1 + 1e-12)).all()


@pytest.mark.parametrize("form", ["paper", "tight"])
@pytest.mark.parametrize("seed", range(5))
def test_the_risk_grows_quadratically_about_the_optimum(seed, form):
    theta0, sigma2, cov = problem(seed)
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(4000, 4)) * 10 ** rng.uniform(-2, 1, size=(4000, 1))
    for eps in (0.3, 0.9, 1.1, 4.0):
        best = linear.optimal(theta0, sigma2, ball("l2", eps), cov)
        rise = (
            linear.adversarial_risks(best.theta + steps, theta0, sigma2, eps, cov=cov) - best.risk
        )
        growth = linear.quadratic_growth(eps, cov, form) * (steps**2).sum(axis=1)
        assert (rise >= growth * (1 - 1e-9) - 1e-12).all()
        assert linear.quadratic_growth(eps, cov, "tight") >= linear.quadratic_growth(eps)


def test_the_tight_growth_is_attained_far_out():
    """With s = ||theta - theta0|| and q = ||theta|| equal far out, eps = 1: 2 - 2 c0 is the rate
    that the split gives, and the true one there is 2 + 2 c0 at most."""
    assert linear.quadratic_growth(1.0, form="tight") == pytest.approx(2 - 2 * linear.C0)
    assert linear.quadratic_growth(3.0) == pytest.approx(9 * (1 - 2 / np.pi))


def test_zeros_of_many_functions():
    shifts = np.linspace(-3, 3, 41)
    found = find_roots(
        lambda x: np.tanh(x - shifts) + 1e-3 * (x - shifts) ** 3, shifts - 40, shifts + 9
    )
    np.testing.assert_allclose(found, shifts, atol=1e-14)
    roots = find_roots(lambda x: np.exp(x) - np.arange(1, 9), np.full(8, -30.0), np.full(8, 50.0))
    np.testing.assert_allclose(roots, np.log(np.arange(1, 9)), atol=1e-14)
    with pytest.raises(AdvlabError, match="sign"):
        find_roots(lambda x: x**2 + 1, np.array([-1.0]), np.array([1.0]))
