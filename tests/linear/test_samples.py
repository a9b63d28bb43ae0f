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
    np.testing.assert_allclose(found.theta, other, atol=1e-3)
    assert found.converged
    assert found.value == pytest.approx(float(linear.empirical_risk(found.theta, x, y, ball)))
    assert found.value <= float(linear.empirical_risk(other, x, y, ball)) * (1 + 1e-6)


@pytest.mark.parametrize("radius", [0.02, 0.1, 0.5, 3.0])
def test_the_duality_gap_holds_against_the_conic_solver(radius):
    """More inputs than samples: interpolation, then kinks, then theta = 0."""
    x, y, _ = samples(2, n=40, d=70)
    ball = SimpleNamespace(ball_norm="l2", radius=radius)
    found, other = linear.empirical_minimiser(x, y, radius), conic_minimiser(x, y, radius)
    least = float(linear.empirical_risk(other, x, y, ball))
    assert found.converged
    assert found.gap <= 1e-6 * found.value
    assert found.value - found.gap <= least * (1 + 1e-9)
    assert found.value <= least * (1 + 1e-6)


def test_a_gap_that_is_not_reached_is_said_in_one_line():
    x, y, _ = samples(3, n=40, d=70)
    with pytest.warns(UserWarning, match="empirical_minimiser not converged"):
        found = linear.empirical_minimiser(x, y, 0.1, tolerance=1e-30)
    assert not found.converged


def test_a_bracket_holds_at_any_model():
    x, y, _ = samples(4)
    least = linear.empirical_minimiser(x, y, 0.4).value
    rng = np.random.default_rng(0)
    for smoothing in (1e-6, 1e-2, 1.0):
        for _ in range(20):
            value, bound = linear.samples._bracket(rng.normal(size=4), x, y, 0.4, smoothing)
            assert bound <= least * (1 + 1e-6) <= value * (1 + 2e-6)


def test_hessian_of_the_smoothed_risk_by_differences():
    x, y, _ = samples(1)
    theta, step = np.array([0.5, -0.2, 0.1, 0.3]), 1e-6
    slope = lambda point: linear.smoothed_risk(point, x, y, 0.7, 0.1)[1]  # noqa: E731
    numeric = [(slope(theta + m) - slope(theta - m)) / (2 * step) for m in step * np.eye(4)]
    found = linear.samples.smoothed_hessian(theta, x, y, 0.7, 0.1)
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-8)


def test_gradient_of_the_smoothed_risk_by_differences():
    x, y, _ = samples(1)
    theta, step = np.array([0.5, -0.2, 0.1, 0.3]), 1e-6
    _, gradient = linear.smoothed_risk(theta, x, y, 0.7, 0.1)
    value = lambda point: linear.smoothed_risk(point, x, y, 0.7, 0.1)[0]  # noqa: E731
    numeric = [(value(theta + m) - value(theta - m)) / (2 * step) for m in step * np.eye(4)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7)
