"""Closed-form risks against sampled attacks; bad input is refused with a sentence."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.threats import Ball

NORMS = ("l1", "l2", "linf")


def ball(norm: str, radius: float):
    return SimpleNamespace(ball_norm=norm, radius=radius)


def model(seed: int, d: int = 4):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d + 3, d))
    return rng.normal(size=d), rng.normal(size=d), rng.uniform(0.1, 2), root.T @ root / (d + 3)


def vertices(norm: str, theta: np.ndarray, radius: float) -> np.ndarray:
    """Perturbations among which the worst one of a linear function is to be found."""
    d = len(theta)
    if norm == "l1":
        return radius * np.r_[np.eye(d), -np.eye(d)]
    if norm == "linf":
        return radius * (2.0 * (np.arange(2**d)[:, None] >> np.arange(d) & 1) - 1)
    direction = radius * theta / np.linalg.norm(theta)
    return np.stack([direction, -direction])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_risk_is_the_mean_over_attacked_samples(norm, radius, seed):
    theta, theta0, sigma2, cov = model(seed)
    rng = np.random.default_rng(100 + seed)
    x = rng.multivariate_normal(np.zeros(4), cov, size=100_000)
    y = x @ theta0 + rng.normal(size=len(x)) * np.sqrt(sigma2)
    moves = vertices(norm, theta, radius) @ theta
    losses = (((x @ theta - y)[:, None] + moves) ** 2).max(axis=1)
    error = losses.std() / np.sqrt(len(x))
    assert (
        abs(losses.mean() - linear.adversarial_risk(theta, theta0, sigma2, ball(norm, radius), cov))
        < 4 * error
    )


@pytest.mark.parametrize("norm", NORMS)
def test_no_point_of_the_ball_is_worse_than_the_vertices(norm):
    theta = model(7)[0]
    rng = np.random.default_rng(0)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    z = rng.normal(size=(20_000, 4))
    z /= np.linalg.norm(z, ord=order, axis=1, keepdims=True)
    assert (z @ theta).max() <= (vertices(norm, theta, 1.0) @ theta).max() + 1e-12


def test_special_values():
    theta0 = np.ones(10)
    assert linear.total_variance(theta0, 1.0) == 11
    zero = linear.adversarial_risks(np.zeros(10), theta0, 1.0, [0.0, 0.5, 9.0])
    np.testing.assert_allclose(zero, 11)
    assert linear.adversarial_risk(theta0, theta0, 1.0, Ball(norm="l2", radius=0.0)) == 1
    # (|Z| + eps ||theta||)^2 with ||theta||_1 = 10 and s = 1.
    expected = 1 + 0.01 * 100 + 2 * 0.1 * np.sqrt(2 / np.pi) * 10
    risk = linear.adversarial_risk(theta0, theta0, 1.0, Ball(norm="linf", radius=0.1))
    assert risk == pytest.approx(expected, rel=1e-14)


def test_a_stack_of_models_gives_the_values_of_its_members():
    _, theta0, sigma2, cov = model(1)
    stack = np.random.default_rng(3).normal(size=(5, 6, 4))
    radii = np.linspace(0, 1, 6)
    for norm in NORMS:
        together = linear.adversarial_risks(stack, theta0, sigma2, radii, norm, cov)
        one = linear.adversarial_risk(stack[2, 3], theta0, sigma2, ball(norm, radii[3]), cov)
        assert together.shape == (5, 6)
        assert together[2, 3] == pytest.approx(one, rel=1e-14)


@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 100), norm=st.sampled_from(NORMS))
@settings(max_examples=50, deadline=None)
def test_risks_scale_with_the_square_of_the_outputs(seed, scale, norm):
    theta, theta0, sigma2, cov = model(seed)
    args = (ball(norm, 0.7), cov)
    scaled = linear.adversarial_risk(scale * theta, scale * theta0, scale**2 * sigma2, *args)
    plain = linear.adversarial_risk(theta, theta0, sigma2, *args)
    assert scaled == pytest.approx(scale**2 * plain, rel=1e-10)


@given(seed=st.integers(0, 10_000), norm=st.sampled_from(NORMS), share=st.floats(0, 1))
@settings(max_examples=100, deadline=None)
def test_the_risk_is_convex_and_grows_with_the_radius(seed, norm, share):
    one, theta0, sigma2, cov = model(seed)
    two = np.random.default_rng(seed + 1).normal(size=4)
    points = np.stack([one, two, share * one + (1 - share) * two])
    low, high = linear.adversarial_risks(points, theta0, sigma2, [[0.3], [0.8]], norm, cov)
    assert (low <= high).all()
    assert high[2] <= share * high[0] + (1 - share) * high[1] + 1e-12


BAD = {
    "negative radius": {"ball": ball("l2", -1.0)},
    "radius NaN": {"ball": ball("l2", float("nan"))},
    "many radii": {"ball": ball("l2", [0.1, 0.2])},
    "unknown norm": {"ball": ball("l3", 1.0)},
    "box": {"ball": Ball("l2", 1.0, box=(0.0, 1.0))},
    "negative sigma2": {"sigma2": -0.1},
    "sigma2 NaN": {"sigma2": float("nan")},
    "theta NaN": {"theta": [1.0, float("nan")]},
    "theta length": {"theta": np.ones(3)},
    "theta0 matrix": {"theta0": np.ones((2, 2))},
    "cov shape": {"cov": np.eye(3)},
    "cov not symmetric": {"cov": [[1.0, 0.5], [0.0, 1.0]]},
    "cov indefinite": {"cov": [[1.0, 2.0], [2.0, 1.0]]},
    "cov NaN": {"cov": [[1.0, float("nan")], [float("nan"), 1.0]]},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(change):
    good = {"theta": np.ones(2), "theta0": np.ones(2), "sigma2": 1.0, "ball": ball("l2", 1.0)}
    linear.adversarial_risk(**good)
    with pytest.raises(AdvlabError):
        linear.adversarial_risk(**{**good, **change})
    if "theta" not in change:
        del good["theta"]
        with pytest.raises(AdvlabError):
            linear.optimal(**{**good, **change})


def test_radii_that_do_not_fit_the_stack_are_refused():
    with pytest.raises(AdvlabError, match="broadcast"):
        linear.adversarial_risks(np.ones((3, 2)), np.ones(2), 1.0, [0.1, 0.2])


def test_a_singular_covariance_is_allowed():
    risk = linear.adversarial_risk(
        [1.0, 5.0], [1.0, 1.0], 0.5, ball("l2", 0.0), np.diag([1.0, 0.0])
    )
    assert risk == pytest.approx(0.5)
