"""Interpolation against simulation, and the settings the theorems prescribe."""

from types import SimpleNamespace

import numpy as np
import pytest

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.papers.generalization import theory


def samples(seed: int, n: int = 20, d: int = 300, sigma2: float = 1.0):
    rng = np.random.default_rng(seed)
    theta0 = np.r_[np.ones(10), np.zeros(d - 10)]
    x = rng.normal(size=(n, d))
    return x, x @ theta0 + rng.normal(size=n) * np.sqrt(sigma2), theta0


def test_expectations_of_the_table():
    for d, norm2, standard, adversarial in [
        (1000, 0.2204, 10.8204, 11.06),
        (5000, 0.0440, 10.964, 11.07),
    ]:
        expected = linear.minnorm_expectations(20, np.r_[np.ones(10), np.zeros(d - 10)], 1.0)
        assert expected.norm2 == pytest.approx(norm2, abs=6e-5)
        assert expected.standard_risk == pytest.approx(standard, abs=6e-4)
        assert expected.adversarial_risk(0.1) == pytest.approx(adversarial, abs=0.012)


def test_expectations_against_200_draws():
    rows = []
    for seed in range(200):
        x, y, theta0 = samples(seed)
        theta = linear.min_norm(x, y)
        rows.append([theta @ theta, linear.standard_risk(theta, theta0, 1.0)])
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(200)
    expected = linear.minnorm_expectations(20, theta0, 1.0)
    assert (np.abs(mean - [expected.norm2, expected.standard_risk]) < 3 * error).all()


def test_the_interpolator_is_the_smallest_one_and_pays_only_its_norm():
    x, y, _ = samples(0)
    theta = linear.min_norm(x, y)
    np.testing.assert_allclose(theta, x.T @ np.linalg.solve(x @ x.T, y), atol=1e-12)
    for norm in ("l2", "linf", "l1"):
        ball = SimpleNamespace(ball_norm=norm, radius=0.1)
        paid = linear.interpolator_training_risk(theta, ball)
        assert paid == pytest.approx(linear.empirical_risk(theta, x, y, ball), rel=1e-9)
        assert linear.interpolator_training_risk(theta, ball, xi=0.1) == 0


@pytest.mark.parametrize(("n", "d"), [(8, 30), (30, 8)])
def test_closed_form_of_gradient_descent_against_the_loop(n, d):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(n, d)), rng.normal(size=n)
    theta, path = np.zeros(d), [np.zeros(d)]
    for _ in range(50):
        theta = theta - 0.05 * 2 * x.T @ (x @ theta - y) / n
        path.append(theta)
    found = linear.gd_closed_form(x, y, 0.05, np.arange(51))
    np.testing.assert_allclose(found, path, atol=1e-10)
    far = linear.gd_closed_form(x, y, 0.05, 10**6)
    np.testing.assert_allclose(far, np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-8)


def test_spectrum_and_regime():
    low, high = linear.spectrum_edges(20, 1000)
    assert (low, high) == pytest.approx((0.737, 1.303), abs=1e-3)
    x = samples(0, d=1000)[0]
    regime = linear.interpolation_regime(x, 0.001)
    assert low < regime.edges[0] < regime.edges[1] < high
    top = np.linalg.eigvalsh(x @ x.T)[-1]
    assert regime.literal_step == pytest.approx(0.001 * top)
    assert regime.step == pytest.approx(2 * 0.001 * top / 20)
    assert regime.growth == pytest.approx(np.log(20) * np.sqrt(0.02))
    assert linear.stopping_level(20) == pytest.approx(1 / np.sqrt(np.log(20)))


def test_schedules_follow_their_formulas():
    two = theory.thm2_schedule(1000, 10, 11.0, 2.0)
    assert two.xi == pytest.approx(11 * 10 / np.sqrt(1000) * np.log(1000))
    assert two.eta == pytest.approx(two.xi / (11 * 2))
    assert two.steps == np.ceil(11 * np.log(np.log(1000)) / two.xi)
    a = np.array([1.0, -1.0] * 500_000)
    three = theory.thm3_schedule(10**7, 2, 2.0, a, 0.5, 3.0)
    small = max(np.sqrt(4 * np.log(1e7) / 1e7), 2 * np.log(1e7) / np.sqrt(1e6))
    assert three.xi == pytest.approx(-2 * np.log(np.log(1e7)) / np.log(small))
    assert three.eta == pytest.approx(three.xi / (2 * 3))
    assert three.report["d log n ||a||_inf v/sqrt h"] == pytest.approx(small * np.sqrt(2))
    four = theory.thm4_schedule(10**7, 2, 2.0, [3.0, -4.0])
    small = np.sqrt(4 * np.log(1e7) / 1e7)
    assert four.xi == pytest.approx(-2 * np.log(np.log(1e7)) / np.log(small))
    assert four.eta == pytest.approx(four.xi * 2 / (2 * 25))
    assert four.report["||a_+||/||a_-||"] == pytest.approx(0.75)


def test_lasso_lambda_takes_the_larger_term():
    assert theory.lasso_lambda(400, 1000, 10, 11.0) == pytest.approx(
        np.sqrt(11 * 10 * np.log(1000) / 400)
    )
    assert theory.lasso_lambda(400, 1000, 10, 4.0, xi=50.0, growth=2.0) == pytest.approx(
        2 * 50 * 2 / 4
    )


def test_a_linear_network_from_zero_follows_the_linear_model():
    """f = sum a_j slope x'theta_j / sqrt h, by gradient descent on the mean squared loss."""
    rng = np.random.default_rng(0)
    x, y, a, slope = rng.normal(size=(30, 3)), rng.normal(size=30), rng.uniform(-1, 1, 7), 0.25
    hidden, eta = np.zeros((7, 3)), 0.3
    for _ in range(20):
        residual = slope * (x @ hidden.T) @ a / np.sqrt(7) - y
        hidden -= eta * 2 * slope / np.sqrt(7) * np.outer(a, residual @ x / 30)
    beta = slope * a @ hidden / np.sqrt(7)
    same = linear.gd_closed_form(x, y, theory.linear_eta(eta, a, slope), 20)
    np.testing.assert_allclose(beta, same, atol=1e-13)


BAD = {
    "as many samples as inputs": lambda: linear.minnorm_expectations(9, np.ones(10), 1.0),
    "no sample": lambda: linear.minnorm_expectations(0, np.ones(10), 1.0),
    "rows": lambda: linear.min_norm(np.ones((3, 2)), np.ones(2)),
    "two samples": lambda: theory.thm2_schedule(2, 1, 1.0),
    "no stop": lambda: linear.stopping_level(2),
    "not small yet": lambda: theory.thm3_schedule(1000, 10, 1.0, np.ones(50), 0.5),
    "zero top": lambda: theory.thm4_schedule(10**7, 2, 1.0, np.zeros(3)),
    "no signal": lambda: theory.thm2_schedule(100, 2, 0.0),
    "too sparse": lambda: theory.lasso_lambda(100, 10, 0, 1.0),
    "more rows than columns": lambda: linear.spectrum_edges(10, 5),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()
