"""The settings that the theorems prescribe, and the regime of Theorem 5."""

import numpy as np
import pytest

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.papers.generalization import theory


def test_spectrum_and_regime():
    low, high = theory.spectrum_edges(20, 1000)
    assert (low, high) == pytest.approx((0.737, 1.303), abs=1e-3)
    x = np.random.default_rng(0).normal(size=(20, 1000))
    regime = theory.interpolation_regime(x, 0.001)
    assert low < regime.edges[0] < regime.edges[1] < high
    top = np.linalg.eigvalsh(x @ x.T)[-1]
    assert regime.literal_step == pytest.approx(0.001 * top)
    assert regime.step == pytest.approx(2 * 0.001 * top / 20)
    assert regime.growth == pytest.approx(np.log(20) * np.sqrt(0.02))
    assert theory.stopping_level(20) == pytest.approx(1 / np.sqrt(np.log(20)))


def test_schedules_follow_their_formulas():
    two = theory.theorem2_schedule(1000, 10, 11.0, 2.0)
    assert two.xi == pytest.approx(11 * 10 / np.sqrt(1000) * np.log(1000))
    assert two.eta == pytest.approx(two.xi / (11 * 2))
    assert two.steps == np.ceil(11 * np.log(np.log(1000)) / two.xi)
    a = np.array([1.0, -1.0] * 500_000)
    three = theory.theorem3_schedule(10**7, 2, 2.0, a, 0.5, 3.0)
    small = max(np.sqrt(4 * np.log(1e7) / 1e7), 2 * np.log(1e7) / np.sqrt(1e6))
    assert three.xi == pytest.approx(-2 * np.log(np.log(1e7)) / np.log(small))
    assert three.eta == pytest.approx(three.xi / (2 * 3))
    assert three.report["d log n ||a||_inf v/sqrt h"] == pytest.approx(small * np.sqrt(2))
    four = theory.theorem4_schedule(10**7, 2, 2.0, [3.0, -4.0])
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
    "two samples": lambda: theory.theorem2_schedule(2, 1, 1.0),
    "no stop": lambda: theory.stopping_level(2),
    "not small yet": lambda: theory.theorem3_schedule(1000, 10, 1.0, np.ones(50), 0.5),
    "zero top": lambda: theory.theorem4_schedule(10**7, 2, 1.0, np.zeros(3)),
    "no signal": lambda: theory.theorem2_schedule(100, 2, 0.0),
    "too sparse": lambda: theory.lasso_lambda(100, 10, 0, 1.0),
    "more rows than columns": lambda: theory.spectrum_edges(10, 5),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()


def test_how_lazy_and_how_wide():
    assert theory.lazy_width(1000, 3, 2.0, 50) == pytest.approx(3 * np.log(1000) * (2 / 50) ** 0.5)
    assert theory.lazy_width(1000, 3, 2.0, 200, 0.5) == pytest.approx(
        theory.lazy_width(1000, 3, 2.0, 50) / 4
    )
    assert theory.wide_growth(20, 1000) == pytest.approx(np.log(20) * 0.02**0.5)
    with pytest.raises(AdvlabError):
        theory.wide_growth(0, 10)
