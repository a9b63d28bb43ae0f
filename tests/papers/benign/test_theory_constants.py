"""Assumptions and constants of the lemmas, against the printed numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixture_parts import PRESET

from advlab.papers.benign import theory


def test_assumptions_report_the_constants_they_leave_room_for():
    report = theory.check_assumptions(**PRESET)
    log_n = np.log(400)
    expected = {
        "1": 3000 / max(2000, 400 * (log_n + 1)),
        "1 relaxed": 3000 / max(2000, 400 * log_n),
        "2": 10,
        "4": 1 / (0.005 * 9e6),
        "5": 20 / np.log(800),
        "A1": 1e4 / 3000,
        "A2": 100 / log_n,
        "B1": 40 / log_n,
        "B2": 100 / max(np.sqrt(150 * np.log(40 * 150 / 0.05)), log_n),
    }
    assert report.implied == pytest.approx(expected)
    assert report.holds == {"3": True, "6": True}
    assert report.smooth == report.non_smooth == pytest.approx(1 / 45000)
    beyond = theory.check_assumptions(**PRESET | {"alpha": 10.1, "omega": 1.0, "beta": 0.0})
    assert beyond.holds == {"3": False, "6": False}
    assert beyond.smooth == 0
    assert beyond.implied["2"] == np.inf


def test_constants_are_the_printed_numbers():
    assert theory.C1(1.0) == 10
    assert theory.C_r(1.0, 0.1) == pytest.approx(705_600)
    assert theory.C_r(1.0, 0.1, c0=0.2) == pytest.approx(192 * 10 * 10.025 / 0.002)
    assert theory.C2(1.0, 0.1) == pytest.approx(np.sqrt(50 * 705_600))
    assert theory.gradient_alignment(0.4) == 0.1
    assert theory.gradient_alignment(0.4, c0=0.5) == 0.05
    assert theory.normalised_margin_floor(1.0, 0.1) == pytest.approx(
        0.01 / (32 * np.sqrt(50 * 705_600))
    )
    c0, C_r = 0.2, 192 * 10 * 10.025 / 0.002
    assert theory.c7(1.0, 0.1, c0=c0) == pytest.approx(c0 * 0.1 / (6 * C_r))
    assert theory.c7(1.0, 0.1) == pytest.approx(0.1 / (6 * 705_600))
    c9 = 3 * 0.1 * theory.c7(1.0, 0.1, c0=c0) / 8
    assert theory.normalised_margin_floor(1.0, 0.1, c0=c0) == pytest.approx(
        c9 / (16 * np.sqrt(50 * C_r))
    )
    assert theory.first_step_floor(10.0, 0.5) == 0.5
    assert theory.first_step_floor(10.0, 0.5, c0=0.2) == pytest.approx(0.1)
    assert theory.span_distance_bound(1e-4, 25, 400, 0.1, 5.0) == pytest.approx(0.1)
    assert theory.span_distance_bound(1.0, 25, 400, 0.1, 5.0) == 5
    low, high = theory.margin_growth(0.1, 20, 4000, 2.0, 1.0, 0.5, 0.2)
    assert low == pytest.approx(0.1 * 0.2 * 0.25 * 18**2 / 40)
    assert high == pytest.approx(0.3 * 40_004 / 20)


@given(d=st.integers(10, 10_000), share=st.floats(0, 0.5), kappa=st.floats(0.05, 1))
def test_the_loss_ratio_is_at_most_the_constant_it_is_relaxed_to(d, share, kappa):
    alpha = share * np.sqrt(d * kappa / 10)
    assert theory.loss_ratio_bound(d, alpha, kappa, 0.3) <= theory.C_r(kappa, 0.3) * (1 + 1e-12)


def gradient_descent(activation, slope, steps, eta, *, n=12, d=600, m=8, mu=5.0):
    """||W^t||_F^2 of Algorithm 1 without an attack, from hand-written gradients."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], size=n)
    x = rng.normal(size=(n, d))
    x[:, 0] += mu * y
    half = eta / np.sqrt(m * d) * rng.normal(size=(m // 2, d))
    W, a = np.concatenate([half, half]), np.repeat([1.0, -1.0], m // 2)
    squares = [(W**2).sum()]
    for _ in range(steps):
        z = x @ W.T
        g = 1 / (1 + np.exp(y * (activation(z) @ a) / np.sqrt(m)))
        W = W + eta / (n * np.sqrt(m)) * ((g * y)[:, None] * slope(z) * a).T @ x
        squares.append((W**2).sum())
    return np.array(squares)


def test_norm_growth_is_the_printed_formula_and_covers_training():
    # C2^2 = 5 * 10 * C_r, with C_r = 192 * 10 * 10.025/(0.2 * 0.25).
    rate = 0.01**2 * 50 * (192 * 10 * 10.025 / 0.05) * 30 + 0.02 / 3
    bound = theory.norm_growth_bound([0, 7], 2.0, 0.01, 20, 600, 1.0, 0.5, 0.2)
    assert bound == pytest.approx([4, 4 + 7 * rate])
    squares = gradient_descent(lambda z: z * (z > 0), lambda z: z > 0, steps=300, eta=0.02)
    t, start = np.arange(301), np.sqrt(squares[0])
    assert (squares <= theory.norm_growth_bound(t, start, 0.02, 12, 600, 1.0, 1.0, 0.5)).all()


def test_norm_growth_of_slrelu():
    bound = theory.slrelu_norm_growth_bound([0, 3], 2.0, 0.01, 0.5, 16, 4.0)
    assert bound == pytest.approx([4, 4 + 0.03 * (5 / 3 + 0.5 * 4 / 8)])
    assert isinstance(theory.slrelu_norm_growth_bound(3, 2.0, 0.01, 0.5, 16, 4.0), float)

    def activation(z, gamma=0.5, H=4.0):
        middle = (1 - gamma) * H * z**2 / 4 + (1 + gamma) * z / 2
        outside = np.where(z > 0, z, gamma * z) - (1 - gamma) / (4 * H)
        return np.where(np.abs(z) <= 1 / H, middle, outside)

    def slope(z, gamma=0.5, H=4.0):
        return np.clip((1 - gamma) * H * z / 2 + (1 + gamma) / 2, gamma, 1)

    squares = gradient_descent(activation, slope, steps=300, eta=0.01)
    t, start = np.arange(301), np.sqrt(squares[0])
    assert (squares <= theory.slrelu_norm_growth_bound(t, start, 0.01, 0.5, 8, 4.0)).all()
    # Far larger steps leave Assumption (4), and the first of them is above the bound.
    squares = gradient_descent(activation, slope, steps=1, eta=10.0)
    assert squares[1] > theory.slrelu_norm_growth_bound(1, squares[0] ** 0.5, 10.0, 0.5, 8, 4.0)
