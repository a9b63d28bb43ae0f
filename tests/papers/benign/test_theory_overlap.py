"""How far two shifted laws overlap, against sums over grids and Monte Carlo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_parts import LAWS, draws, gaussian, quartic
from scipy.stats import norm

from advlab.papers.benign import theory


@pytest.mark.parametrize("shift", [1e-200, 1e-9, 0.1, 1.0, 5.0, 20.0, 40.0])
def test_the_overlap_keeps_its_relative_accuracy_in_the_tails(shift):
    assert theory.overlap(gaussian, shift) == pytest.approx(2 * norm.sf(shift / 2), rel=1e-10)
    narrow = theory.overlap(lambda t: gaussian(1e6 * t), shift * 1e-6)
    assert narrow == pytest.approx(2 * norm.sf(shift / 2), rel=1e-10)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.5])
def test_the_overlap_of_other_laws_is_a_sum_over_a_grid(name, shift):
    t = np.linspace(-15, 15, 600_001)
    p, moved = (np.exp(LAWS[name](s)) for s in (t, t + shift))
    expected = np.minimum(p, moved).sum() / p.sum()
    assert theory.overlap(LAWS[name], shift) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_monte_carlo_along_the_axis_agrees_with_quadrature(name):
    noise = draws(LAWS[name], (40_000, 3), seed=1)
    mu, alpha = np.array([1.2, 0.0, 0.0]), 0.4
    value, error = theory.overlap_monte_carlo(LAWS[name], noise, mu, alpha)
    assert value == pytest.approx(theory.overlap(LAWS[name], 1.6), abs=4 * error)
    assert 0 < error < 0.01


def test_monte_carlo_in_another_direction():
    mu = np.array([0.8, -0.6, 0.5])
    noise = np.random.default_rng(2).normal(size=(40_000, 3))
    value, error = theory.overlap_monte_carlo(gaussian, noise, mu, 0.3)
    # A Gaussian is round, so only the length of mu counts.
    assert value == pytest.approx(2 * norm.cdf(0.3 - np.linalg.norm(mu)), abs=4 * error)
    # The quartic law is not: a grid in two dimensions is the answer.
    mu, alpha = np.array([0.9, 0.7]), 0.2
    axis = np.linspace(-5, 5, 1_001)
    a, b = np.meshgrid(axis, axis, indexing="ij")
    v = 2 * (1 - alpha / np.linalg.norm(mu)) * mu
    p = np.exp(quartic(a) + quartic(b))
    expected = np.minimum(p, np.exp(quartic(a + v[0]) + quartic(b + v[1]))).sum() / p.sum()
    noise = draws(quartic, (40_000, 2), seed=3)
    value, error = theory.overlap_monte_carlo(quartic, noise, mu, alpha)
    assert value == pytest.approx(expected, abs=4 * error)
    assert theory.overlap_monte_carlo(quartic, noise, mu, 2.0) == (1.0, 0.0)


@given(shift=st.floats(0, 6), more=st.floats(0.01, 2), name=st.sampled_from(list(LAWS)))
@settings(max_examples=60, deadline=None)
def test_overlaps_shrink_with_the_shift_and_do_not_see_a_mirror(shift, more, name):
    law = LAWS[name]
    inside = theory.overlap(law, shift)
    assert 0 <= theory.overlap(law, shift + more) <= inside <= 1
    assert theory.overlap(lambda t: law(-t), shift) == pytest.approx(inside, rel=1e-9)
