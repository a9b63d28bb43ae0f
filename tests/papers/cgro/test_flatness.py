"""The flatness bounds against brute force, quadrature and independent computation."""

import numpy as np
import pytest
from scipy import integrate, stats

from advlab.core.errors import AdvlabError
from advlab.papers.cgro.theory import flatness


def data(seed: int, n: int = 40, d: int = 2):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], n)
    return rng.normal(size=(n, d)) + 0.7 * y[:, None], y, rng.normal(size=d)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_is_what_a_dense_grid_of_the_ball_finds(norm, seed):
    x, y, theta = data(seed)
    radius, order = 0.3, {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    axis = np.linspace(-radius, radius, 601)
    moves = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    moves = moves[np.linalg.norm(moves, order, axis=1) <= radius * (1 + 1e-12)]
    margins = y[:, None] * ((x @ theta)[:, None] + (moves @ theta)[None])
    losses = np.log1p(np.exp(-margins))
    clean = np.log1p(np.exp(-y * (x @ theta)))
    dual = {"l1": np.abs(theta).max(), "l2": np.sqrt(theta @ theta), "linf": np.abs(theta).sum()}
    slopes = dual[norm] / (1 + np.exp(margins))
    found = flatness.linear_logistic(theta, x, y, norm, radius)
    np.testing.assert_allclose(found.rise, losses.max(1) - clean, rtol=2e-3)
    np.testing.assert_allclose(found.upper, radius * slopes.max(1), rtol=2e-3)
    np.testing.assert_allclose(found.lower, radius * dual[norm] / (1 + np.exp(y * (x @ theta))))
    assert (found.lower <= found.rise).all()
    assert (found.rise <= found.upper).all()
    assert min(found.slack) > 0


def test_the_terms_have_their_order():
    """.722 <= .846 <= .961 there: the middle is near the mean of the ends."""
    x, y, theta = data(7, n=4000, d=10)
    found = flatness.linear_logistic(3 * theta, x, y, "linf", 0.2)
    low, middle, high = (part.mean() for part in (found.lower, found.rise, found.upper))
    assert low < middle < high
    assert middle == pytest.approx((low + high) / 2, rel=0.02)


def test_the_bounds_of_measured_numbers_and_its_violations():
    slope, rise, steepest = np.array([1.0, 2]), np.array([0.15, 0.25]), np.array([1.5, 3])
    found = flatness.rise_bounds(slope, rise, steepest, 0.1)
    assert found.slack == pytest.approx((0.2 - 0.15, 0.225 - 0.2))
    assert flatness.rise_bounds(slope, 2 * rise, steepest, 0.1).slack[1] < 0
    assert flatness.rise_bounds(slope, rise / 2, steepest, 0.1).slack[0] < 0
    curved = flatness.rise_bounds(slope, rise / 2, steepest, 0.1, curvature=10.0)
    assert curved.slack[0] == pytest.approx(0.1 - 0.15 + 0.05)


def test_a_concave_loss_breaks_the_lower_half_unless_its_curvature_is_paid():
    """L = 1 - x^2/2 around x = -1: slope 1, the best point of the ball costs less than it says."""
    radius = 0.4
    rise = np.array([(1 - (1 - radius) ** 2 / 2) - 1 / 2])
    one = np.ones(1)
    assert flatness.rise_bounds(one, rise, one, radius).slack[0] < 0
    assert flatness.rise_bounds(one, rise, one, radius, curvature=1.0).slack[0] == pytest.approx(0)


def terms(seed: int, n: int = 4000, K: int = 30, radius: float = 0.3, N: int = 25):
    """One dimension, L(x) = log(1 + e^{-2x}), x normal, xi uniform: quadrature can do it too."""
    rng = np.random.default_rng(seed)

    def loss(x):
        return np.logaddexp(0, -2 * x)

    train = np.random.default_rng(0).normal(size=N) + 0.8
    x = rng.normal(size=n)
    found = flatness.three_terms(
        worst=loss(x - radius),
        worst_train=loss(train - radius),
        clean=loss(x),
        noisy=loss(x[:, None] + rng.uniform(-radius, radius, (n, K))),
        noisy_train=loss(train[:, None] + rng.uniform(-radius, radius, (N, K))),
        steepest=2 / (1 + np.exp(2 * (x - radius))),
        radius=radius,
    )
    return found, loss, train


def test_three_terms_against_quadrature_and_their_standard_errors_against_repetition():
    runs = [terms(seed)[0] for seed in range(60)]
    _, loss, train = terms(0)
    radius = 0.3

    def mean(f):
        return integrate.quad(lambda x: f(x) * stats.norm.pdf(x), -9, 9)[0]

    def smooth(x):
        return integrate.quad(lambda xi: loss(x + xi), -radius, radius)[0] / (2 * radius)

    gap = mean(lambda x: loss(x - radius)) - loss(train - radius).mean()
    first = abs(mean(loss) - mean(smooth))
    second = abs(mean(smooth) - np.mean([smooth(x) for x in train]))
    third = radius * mean(lambda x: 2 / (1 + np.exp(2 * (x - radius))))
    for name, exact in {
        "gap": gap, "smoothing": first, "sampling": second, "sharpness": third,
    }.items():  # fmt: skip
        values = np.array([getattr(run, name) for run in runs])
        spread = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - exact) < 4 * spread + 1e-6, name
    assert gap < first + second + third
    slacks = np.array([run.slack for run in runs])
    assert np.mean([run.error for run in runs]) == pytest.approx(slacks.std(ddof=1), rel=0.35)
    assert all(run.deviations > 3 for run in runs)


def test_a_gradient_that_is_understated_breaks_the_bound():
    rng = np.random.default_rng(1)
    x = rng.normal(size=3000)
    quiet = flatness.three_terms(
        worst=x + 1.0,
        worst_train=x[:50],
        clean=x,
        noisy=np.tile(x[:, None], 2),
        noisy_train=np.tile(x[:50, None], 2),
        steepest=np.full(3000, 0.1),
        radius=1.0,
    )
    assert quiet.deviations < -3


def test_a_negative_radius_is_refused():
    x, y, theta = data(0)
    with pytest.raises(AdvlabError, match="at least zero"):
        flatness.linear_logistic(theta, x, y, "l2", -1.0)
