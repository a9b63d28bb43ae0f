"""Exact laws against enumeration and sampling, the finite-size arithmetic against real networks."""

from itertools import product

import numpy as np
import pytest

from advlab.core.errors import AdvlabError
from advlab.papers.purification import theory


def draws(law: theory.HiddenLaw, n: int, seed: int = 0) -> np.ndarray:
    """The sampler of spec 1.1."""
    rng = np.random.default_rng(seed)
    r, sign = rng.random((n, law.d)), rng.choice([-1.0, 1.0], (n, law.d))
    small = rng.uniform(1, 1 + law.hi, (n, law.d)) / np.sqrt(law.k)
    size = np.where(r < (law.p_big + law.fs * law.k) / law.d, small, 0.0)
    top = (law.p_big + law.fs * law.k) / law.d
    for value, rate in law.levels:
        size = np.where((r >= top) & (r < top + rate / law.d), value, size)
        top += rate / law.d
    return sign * np.where(r < law.p_big / law.d, 1.0, size)


@pytest.mark.parametrize("levels", [(), ((9**-0.314, 2.0), (0.9, 0.4))], ids=["plain", "levels"])
def test_moments_are_those_of_samples(levels):
    law = theory.HiddenLaw(40, 9, 1.5, 0.6, 0.4, levels)
    z = draws(law, 40_000)
    squares, count = (z**2).sum(1), (z != 0).sum(1)
    for found, sample in (
        (law.squared_norm, squares),
        (law.support[0], count),
        (40 * law.moment(1), np.abs(z).sum(1)),
        (40 * law.moment(3), (np.abs(z) ** 3).sum(1)),
    ):
        assert abs(found - sample.mean()) < 4.5 * sample.std() / 200
    assert squares.var() == pytest.approx(law.squared_norm_variance, rel=0.04)
    assert count.var() == pytest.approx(law.support[1], rel=0.04)


def test_the_preset_s_norm_by_hand():
    law = theory.HiddenLaw(256, 30)
    assert law.squared_norm == pytest.approx(1 + 0.5 * (1 + 0.3 + 0.03))
    assert law.support[0] == pytest.approx(16)


def enumerated(law: theory.HiddenLaw, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All values of <w, z> for hi = 0, and their probabilities."""
    p, q = law.p_big / law.d, law.fs * law.k / law.d
    one = [(0.0, 1 - p - q)]
    one += [(s * v, c / 2) for v, c in ((1.0, p), (law.k**-0.5, q)) for s in (1, -1)]
    values, chances = [], []
    for row in product(one, repeat=law.d):
        z, chance = zip(*row, strict=True)
        values.append(float(np.dot(w, z)))
        chances.append(float(np.prod(chance)))
    return np.array(values), np.array(chances)


def test_the_score_law_brackets_enumeration():
    law = theory.HiddenLaw(6, 3, 1.0, 0.5, 0.0)
    w = np.random.default_rng(1).uniform(0.7, 1.3, 6) * [1, -1, 1, 1, -1, 1]
    values, chances = enumerated(law, w)
    scores = theory.score_law(law, w, 2e-4)
    for t in (0.0, 0.31, 0.9, 1.7, 3.1):
        truth = chances[values > t].sum()
        low, high = scores.tail(t)
        assert low <= truth <= high
        assert high - low < 0.01
    for threshold, margin in ((0.4, 0.0), (0.9, 0.5), (0.3, 0.5)):
        kept = np.abs(values) > margin
        truth = chances[kept & (np.abs(values) > threshold)].sum() / chances[kept].sum()
        low, high = theory.oracle_accuracy(scores, threshold, margin)
        assert low <= truth <= high


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_oracle_s_accuracy_is_that_of_samples(noise):
    """On the preset's law, where the spec measured 0.023 at tau = 0.22."""
    law = theory.HiddenLaw(256, 30)
    rng = np.random.default_rng(3)
    w = rng.uniform(0.7, 1.3, 256) * rng.choice([-1, 1], 256)
    length, tau = float(np.linalg.norm(w)), 0.1
    scores, sigma = theory.score_law(law, w, 4e-4), noise * length / 16
    low, high = theory.oracle_accuracy(scores, tau * length, 1.0, sigma)
    s = draws(law, 20_000, 5) @ w
    s = s[np.abs(s) > 1]
    y, f = np.sign(s), s + sigma * rng.standard_normal(len(s))
    measured = theory.linear_accuracy(f, y, w, tau, "l2")
    assert 0 < high - low < 0.01
    assert low - 2 / np.sqrt(len(s)) < measured < high + 2 / np.sqrt(len(s))
    if not noise:
        low, high = theory.oracle_accuracy(scores, 0.22 * length, 1.0)
        assert 0.015 < low < high < 0.035


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_linear_accuracy_is_the_accuracy_at_the_worst_point(norm):
    rng = np.random.default_rng(0)
    x, w, tau = rng.standard_normal((300, 5)), rng.standard_normal(5), 0.3
    y = np.sign(x @ rng.standard_normal(5))
    step = w / np.linalg.norm(w) if norm == "l2" else np.sign(w)
    worst = x - tau * y[:, None] * step
    exact = theory.linear_accuracy(x @ w, y, w, tau, norm)
    assert exact == np.mean(np.sign(worst @ w) == y)
    assert 0 < exact < np.mean(np.sign(x @ w) == y)
    ball = rng.standard_normal((200, 5))
    size = np.linalg.norm(ball, 2 if norm == "l2" else np.inf, axis=1, keepdims=True)
    points = x[:, None] + tau * ball / size
    assert np.mean((np.sign(points @ w) == y[:, None]).all(1)) >= exact


@pytest.mark.parametrize(("size", "t"), [(30, 0.05), (30, 0.4), (60, 0.2)])
def test_small_balls_are_at_most_as_likely_as_the_bound(size, t):
    law = theory.HiddenLaw(60, 16, 1.0, 1.0, 0.3)
    w = np.random.default_rng(2).uniform(0.7, 1.3, size)
    sums = draws(law, 40_000, 4)[:, :size] @ w
    bound = theory.small_ball_bound(law, 0.7, size, t)
    worst = max(np.mean(np.abs(sums - r) <= t) for r in np.linspace(-1, 1, 41))
    assert worst <= bound + 0.01
    assert bound < 1
    assert bound < 25 * worst
    order = theory.small_ball_order(60, 16, size, t)
    assert 0.2 < bound / order < 2.5


def test_small_ball_orders_by_hand():
    assert theory.small_ball_order(100, 25, 25, 0.1) == pytest.approx(0.2 + 0.4)
    assert theory.small_ball_floor_order(100, 0.9) == pytest.approx(0.9 - np.log(100) / 10)
    assert theory.small_ball_floor_order(100, 0.1) == 0


def test_finite_size_arithmetic_is_that_of_an_explicit_network():
    """d neurons, own part 1 and mixture p, of which the first p d are active."""
    d, p, tau = 400, 0.1, 0.2
    rng = np.random.default_rng(0)
    w_star = rng.choice([-1.0, 1.0], d)
    M = np.linalg.qr(rng.standard_normal((d, d)))[0]
    rows = (np.diag(w_star) + p * (1 - np.eye(d)) * w_star) @ M.T
    pure = np.diag(w_star) @ M.T
    cosine = (rows * pure).sum(1) / np.linalg.norm(rows, axis=1)
    assert cosine == pytest.approx(theory.pure_cosine(p, d), rel=2e-3)
    active, direction = round(p * d), M @ w_star
    shift = rows[:active].sum(0) @ (tau * direction / np.linalg.norm(direction))
    assert shift == pytest.approx(theory.universal_shift(tau, d, p), rel=5e-3)
    worst = tau * np.linalg.norm(pure[:active].sum(0))
    assert worst == pytest.approx(theory.pure_shift(tau, active))
    ratio = theory.universal_shift(tau, d, p) / theory.pure_shift(tau, p * d)
    assert ratio == pytest.approx(theory.shift_ratio(d, p * d) * (1 + 1 / (p * d)))


def test_refusals():
    with pytest.raises(AdvlabError, match="k between"):
        theory.HiddenLaw(10, 11)
    with pytest.raises(AdvlabError, match="at most 1"):
        theory.HiddenLaw(10, 10, 5.0, 0.9)
    with pytest.raises(AdvlabError, match="one weight"):
        theory.score_law(theory.HiddenLaw(10, 3), np.ones(9))
    with pytest.raises(AdvlabError, match="margin"):
        theory.oracle_accuracy(theory.score_law(theory.HiddenLaw(4, 2), np.ones(4)), 0.1, 9.0)
    with pytest.raises(AdvlabError, match="all 10"):
        theory.small_ball_bound(theory.HiddenLaw(10, 3), 1.0, 11, 0.1)
    with pytest.raises(AdvlabError, match="norm"):
        theory.dual_norm([1.0], "l1")
