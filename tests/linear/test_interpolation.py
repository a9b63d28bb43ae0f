"""The min-norm interpolator and gradient descent against simulation."""

from types import SimpleNamespace

import numpy as np
import pytest

from advlab import linear
from advlab.core.errors import AdvlabError


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


BAD = {
    "as many samples as inputs": lambda: linear.minnorm_expectations(9, np.ones(10), 1.0),
    "no sample": lambda: linear.minnorm_expectations(0, np.ones(10), 1.0),
    "rows": lambda: linear.min_norm(np.ones((3, 2)), np.ones(2)),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()
