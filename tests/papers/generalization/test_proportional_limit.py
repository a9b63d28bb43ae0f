"""The limit at d/n = c: against quadrature, its edges, and an exact minimiser on a sample."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.papers.generalization import theory
from advlab.papers.generalization.theory.proportional_limit import _moments
from advlab.threats import Ball


@pytest.mark.parametrize("kappa", [0.3, 2.0])
def test_the_moments_are_those_of_the_inner_problem(kappa):
    b, s2 = 0.4, 1.7

    def inner(w: float) -> tuple[float, float]:
        def cost(v):
            return (abs(v) + b) ** 2 + kappa * (w - v) ** 2 / 2

        v = optimize.minimize_scalar(cost, bounds=(0, abs(w)), method="bounded",
                                     options={"xatol": 1e-10}).x  # fmt: skip
        v = np.sign(w) * (v if cost(v) < cost(0.0) else 0.0)
        return cost(v), (w - v) ** 2

    for part, found in enumerate(_moments(kappa, b, s2)):
        wanted = 2 * integrate.quad(
            lambda w: inner(w)[part] * stats.norm.pdf(w, scale=s2**0.5),  # noqa: B023
            0, 12, points=[2 * b / kappa], limit=100,
        )[0]  # fmt: skip
        assert found == pytest.approx(wanted, rel=1e-5)


def test_with_few_inputs_it_is_the_population_optimum():
    found = theory.proportional_limit(1e-6, 1.0, 1.0, 0.3)
    best = linear.optimal([1.0], 1.0, Ball("l2", 0.3))
    assert found.risk == pytest.approx(best.risk, rel=1e-3)
    assert found.training_risk == pytest.approx(best.risk, rel=1e-3)


def test_under_a_weak_attack_it_is_the_interpolator():
    found, plain = (
        one(4.0, 1.5, 0.5, 0.01) for one in (theory.proportional_limit, theory.min_norm_limit)
    )
    assert found.risk == pytest.approx(plain.risk, rel=1e-5)
    assert found.training_risk == pytest.approx((0.01 * plain.norm) ** 2, rel=1e-5)
    assert found.fitted == pytest.approx(1.0)


def test_the_limit_of_least_squares_is_that_of_lemma_1():
    n, d = 100_000, 300_000
    exact = linear.minnorm_expectations(n, np.r_[1.5, np.zeros(d - 1)], 0.5)
    limit = theory.min_norm_limit(d / n, 1.5, 0.5, 0.1)
    assert limit.norm**2 == pytest.approx(exact.norm2, rel=1e-4)
    assert limit.standard_risk == pytest.approx(exact.standard_risk, rel=1e-4)
    assert theory.min_norm_limit(0.25, 1.0, 3.0, 0.1).standard_risk == pytest.approx(4.0)
    with pytest.raises(AdvlabError, match="other than 1"):
        theory.min_norm_limit(1.0, 1.0, 1.0, 0.1)
    with pytest.raises(AdvlabError, match="sigma2 must be positive"):
        theory.proportional_limit(1.0, 1.0, 0.0, 0.1)


def test_a_large_sample_is_near_the_limit():
    rng, d, n = np.random.default_rng(4), 250, 500
    theta0 = np.full(d, d**-0.5)
    x = rng.normal(size=(n, d))
    y = x @ theta0 + rng.normal(size=n)
    found = linear.solve_linear(x, y, 0.3, "l2", fit_intercept=False)
    limit = theory.proportional_limit(0.5, 1.0, 1.0, 0.3)
    risk = linear.adversarial_risk(found.coef, theta0, 1.0, Ball("l2", 0.3))
    assert risk == pytest.approx(limit.risk, rel=0.1)
    assert found.objective == pytest.approx(limit.training_risk, rel=0.15)
    assert (np.abs(x @ found.coef - y) < 1e-7).mean() == pytest.approx(limit.fitted, abs=0.05)


def test_correlated_inputs_have_a_limit_of_their_own():
    rng, d, n = np.random.default_rng(5), 300, 600
    cov = 0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    theta0 = np.full(d, d**-0.5)
    x = rng.normal(size=(n, d)) @ np.linalg.cholesky(cov).T
    y = x @ theta0 + rng.normal(size=n)
    found = linear.solve_linear(x, y, 0.3, "l2", fit_intercept=False)
    limit = theory.correlated_limit(d / n, theta0, 1.0, 0.3, cov)
    risk = linear.adversarial_risk(found.coef, theta0, 1.0, Ball("l2", 0.3), cov)
    assert risk == pytest.approx(limit.risk, rel=0.1)
    assert np.linalg.norm(found.coef) == pytest.approx(limit.norm, rel=0.05)
    assert found.objective == pytest.approx(limit.training_risk, rel=0.15)
    # Neither theta0's length nor its length in Sigma gives it with the identity.
    for signal in (1.0, float(np.sqrt(theta0 @ cov @ theta0))):
        assert abs(theory.proportional_limit(0.5, signal, 1.0, 0.3).norm / limit.norm - 1) > 0.1


def test_few_correlated_inputs_give_the_population_optimum():
    theta0, cov = np.array([1.0, -0.5, 0.2]), np.diag([2.0, 1.0, 0.5])
    found = theory.correlated_limit(1e-6, theta0, 1.0, 0.3, cov)
    best = linear.optimal(theta0, 1.0, Ball("l2", 0.3), cov)
    assert found.risk == pytest.approx(best.risk, rel=1e-3)
    assert found.norm == pytest.approx(np.linalg.norm(best.theta), rel=1e-3)
    assert found.parallel == pytest.approx((best.theta - theta0) @ theta0 / np.linalg.norm(theta0),
                                           rel=1e-2)  # fmt: skip


def test_the_identity_as_covariance_is_the_limit_without_one():
    one = theory.proportional_limit(2.0, 1.0, 1.0, 0.6)
    other = theory.correlated_limit(2.0, np.full(50, 50**-0.5), 1.0, 0.6, np.eye(50))
    assert other.risk == pytest.approx(one.risk, rel=1e-6)
    assert other.perpendicular == pytest.approx(one.perpendicular, rel=1e-6)
