"""The minimiser of the training risk against a conic solver."""

from types import SimpleNamespace

import cvxpy
import numpy as np
import pytest

from advlab import linear


def samples(seed: int, n: int = 60, d: int = 4):
    rng = np.random.default_rng(seed)
    theta0 = np.r_[1.0, -1.0, np.zeros(d - 2)]
    x = rng.normal(size=(n, d))
    return x, x @ theta0 + 0.5 * rng.normal(size=n), theta0


def conic_minimiser(x, y, radius):
    theta = cvxpy.Variable(x.shape[1])
    size = cvxpy.abs(x @ theta - y) + radius * cvxpy.norm(theta, 2)
    loss = cvxpy.sum_squares(size) / len(y)
    cvxpy.Problem(cvxpy.Minimize(loss)).solve(solver="CLARABEL")
    return theta.value


@pytest.mark.parametrize("radius", [0.0, 0.3, 0.8])
def test_the_minimiser_of_the_training_risk(radius):
    x, y, _ = samples(0)
    ball = SimpleNamespace(ball_norm="l2", radius=radius)
    found, other = linear.empirical_minimiser(x, y, radius), conic_minimiser(x, y, radius)
    np.testing.assert_allclose(found, other, atol=2e-3)
    assert (
        linear.empirical_risk(found, x, y, ball) <= linear.empirical_risk(other, x, y, ball) + 1e-4
    )


def test_gradient_of_the_smoothed_risk_by_differences():
    x, y, _ = samples(1)
    theta, step = np.array([0.5, -0.2, 0.1, 0.3]), 1e-6
    _, gradient = linear.smoothed_risk(theta, x, y, 0.7, 0.1)
    value = lambda point: linear.smoothed_risk(point, x, y, 0.7, 0.1)[0]  # noqa: E731
    numeric = [(value(theta + m) - value(theta - m)) / (2 * step) for m in step * np.eye(4)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7)
