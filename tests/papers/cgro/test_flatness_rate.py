"""The exact terms of Theorem E.1 against sampling, adaptive quadrature and a brute-force search."""

import numpy as np
import polars as pl
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm
from torch import nn

from advlab.core.randomness import generators
from advlab.papers.cgro.experiments import flatness_rate as experiment
from advlab.papers.cgro.experiments._parts import rate_networks
from advlab.papers.cgro.theory import flatness
from advlab.papers.cgro.theory.flatness_terms import (
    linear_rate_terms,
    printed_radius,
    robust_logistic,
)
from advlab.threats import Ball


def clusters(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    mean = np.full(d, d**-0.5)
    y = rng.choice([-1.0, 1.0], n)
    return y[:, None] * mean + rng.normal(size=(n, d)), y, mean


def in_ball(shape: tuple[int, int], radius: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    way = rng.normal(size=shape)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    return radius * way * rng.random((shape[0], 1)) ** (1 / shape[1])


def loss(margin: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(-margin))


@pytest.mark.parametrize("d", [2, 5, 20])
def test_terms_are_those_of_large_samples(d):
    x, y, mean = clusters(50, d, 0)
    theta, delta, many = np.linspace(-0.5, 1.5, d), 0.6, 400_000
    found = linear_rate_terms(theta, mean, y * (x @ theta), delta)
    fresh, sign, _ = clusters(many, d, 1)
    margin, size = sign * (fresh @ theta), np.linalg.norm(theta)
    noisy = loss(margin + sign * (in_ball((many, d), delta, 2) @ theta))
    again = in_ball((50 * 4000, d), delta, 3) @ theta
    trained = loss(np.repeat(y * (x @ theta), 4000) + again).mean()
    worst = loss(margin - delta * size)
    error = 4 * worst.std() / many**0.5
    assert found.gap == pytest.approx(
        worst.mean() - loss(y * (x @ theta) - delta * size).mean(), abs=error
    )
    assert found.smoothing == pytest.approx(abs((loss(margin) - noisy).mean()), abs=error)
    assert found.sampling == pytest.approx(noisy.mean() - trained, abs=2 * error)
    steep = delta * size / (1 + np.exp(margin - delta * size))
    assert found.sharpness == pytest.approx(steep.mean(), abs=error)


def test_sharpness_and_gap_by_adaptive_quadrature():
    x, y, mean = clusters(30, 3, 4)
    theta, delta = np.array([1.0, -0.5, 0.7]), 0.3
    m, s = float(theta @ mean), float(np.linalg.norm(theta))
    worst = quad(lambda t: loss(m + s * t - delta * s) * norm.pdf(t), -12, 12, epsabs=1e-13)[0]
    steep = quad(lambda t: norm.pdf(t) / (1 + np.exp(m + s * t - delta * s)), -12, 12)[0]
    found = linear_rate_terms(theta, mean, y * (x @ theta), delta)
    given = flatness.linear_logistic(theta, x, y, "l2", delta)
    trained = (loss(y * (x @ theta)) + given.rise).mean()
    assert found.gap == pytest.approx(worst - trained, abs=1e-10)
    assert found.sharpness == pytest.approx(delta * s * steep, abs=1e-8)


def test_smoothing_is_half_the_curvature_over_the_dimension_for_small_radii():
    # E xi_1^2 = delta^2/(D + 2), so (I) = s^2 E L''(m) delta^2/(2 (D + 2)) + O(delta^4).
    mean, theta, delta = np.array([0.6, 0.8, 0, 0]), np.array([1.0, 0.5, -0.3, 0.2]), 1e-2
    m, s = float(theta @ mean), float(np.linalg.norm(theta))

    def curved(t: float) -> float:
        p = 1 / (1 + np.exp(m + s * t))
        return p * (1 - p) * norm.pdf(t)

    expected = s**2 * quad(curved, -12, 12)[0] * delta**2 / (2 * 6)
    found = linear_rate_terms(theta, mean, np.zeros(3), delta)
    assert found.smoothing == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("delta", [0.0, 0.2, 0.5])
def test_no_other_weights_have_a_smaller_robust_loss(delta):
    x, y, _ = clusters(60, 2, 5)
    theta = robust_logistic(x, y, delta)

    def value(w: np.ndarray) -> np.ndarray:
        return loss((w @ x.T) * y - delta * np.linalg.norm(w, axis=-1, keepdims=True)).mean(-1)

    grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 121)] * 2), -1).reshape(-1, 2)
    assert value(theta[None])[0] <= value(grid).min() + 1e-12
    near = theta + 1e-3 * np.random.default_rng(0).normal(size=(200, 2))
    assert (value(near) >= value(theta[None])[0] - 1e-12).all()


def test_the_radius_balances_the_printed_terms():
    for n, d in ((100, 2), (5000, 7)):
        delta = printed_radius(n, d)
        assert n**-0.5 * delta ** (-d / 2) == pytest.approx(delta)


class Linear(nn.Module):
    """theta'x, the same for each data set of a stack."""

    def __init__(self, theta: np.ndarray):
        super().__init__()
        self.theta = nn.Parameter(torch.from_numpy(theta))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.theta


def test_losses_and_gradients_of_networks_are_exact_where_the_answer_is_known():
    theta, delta, rngs = np.array([1.0, -0.5, 0.7]), 0.4, generators("test", seeds=range(2))
    points, ball = rate_networks.clusters(3, 40, rngs), Ball(norm="l2", radius=delta)
    found = rate_networks.losses(Linear(theta), points, ball, rngs)
    steepest = rate_networks._steepest(Linear(theta), points, ball, rngs)
    for r in range(2):
        x, y = points.x[r].numpy(), points.y[r].numpy()
        exact = flatness.linear_logistic(theta, x, y, "l2", delta)
        assert found.clean[r].numpy() == pytest.approx(loss(y * (x @ theta)))
        assert (found.worst - found.clean)[r].numpy() == pytest.approx(exact.rise, rel=1e-3)
        assert delta * steepest[r].numpy() == pytest.approx(exact.upper, rel=1e-3)
        assert (found.noisy[r] < found.worst[r]).all()


def test_inputs_of_networks_are_those_of_linear_classifiers():
    points = rate_networks.clusters(4, 20_000, generators("law", seeds=[0]))
    x, y = points.x[0].numpy(), points.y[0].numpy()
    assert (y[:, None] * x).mean(0) == pytest.approx(np.full(4, 0.5), abs=0.03)
    assert np.cov((y[:, None] * x).T) == pytest.approx(np.eye(4), abs=0.05)
    assert abs(y.mean()) < 0.03


def test_a_smoke_run_has_every_verdict():
    cases = experiment.recipe("smoke", 3)
    table = pl.concat(
        experiment.compute(case).with_columns(part=pl.lit(case.part), D=case.D, N=case.N)
        for case in cases
    )
    found = {verdict.id: verdict.outcome for verdict in experiment.verdicts(table)}
    assert list(found) == list(experiment.ABOUT.claims)
    assert found["holds"] == "supported"
