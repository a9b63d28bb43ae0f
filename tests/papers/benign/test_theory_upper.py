"""Upper bounds, certificates and iteration counts, against printed formulas and inverses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.papers.benign import theory

FORMS = ("paper", "tight")


def test_upper_bounds_are_the_printed_formulas():
    # n = 100, d = 400, ||mu|| = 4: sqrt(n/d) ||mu||^2 = 8.
    expected = 0.1 + 2 * np.exp(-0.5 * 0.7 * (8 / 2 - 1.5) ** 2)
    assert theory.robust_upper_bound(100, 400, 4, 1.5, 0.1, 0.7, C=2) == pytest.approx(expected)
    clean = 0.1 + 2 * np.exp(-0.5 * 100 * 4**4 / (4 * 400))
    assert theory.clean_upper_bound(100, 400, 4, 0.1, C=2) == pytest.approx(clean)
    assert theory.robust_upper_bound(100, 400, 4, 4.01, 0.1, C=2) == 1
    assert theory.sample_sizes(800, 2, 1) == (50, 200, 200)


@given(
    errors=st.lists(st.floats(0, 1), min_size=1, max_size=6),
    alpha=st.floats(0, 3),
    mu=st.floats(0.5, 8),
    beta=st.floats(0, 0.4),
)
@settings(max_examples=200, deadline=None)
def test_the_fitted_constant_covers_and_no_smaller_one_does(errors, alpha, mu, beta):
    C = theory.fit_C(errors, 50, 300, mu, alpha, beta, 0.8)
    if C == 0:
        assert max(errors) <= beta
        return

    def bound(C):
        return theory.robust_upper_bound(50, 300, mu, alpha, beta, 0.8, C=C)

    assert bound(C * (1 + 1e-9)) >= max(errors) - 1e-12
    if max(errors) > beta + 1e-9:
        assert bound(C * 0.999) < max(errors)


def test_the_certificate_covers_a_linear_network():
    # Two neurons, identity activation, a = (1, -1), rows w/sqrt 2 and -w/sqrt 2: f = <w, x>.
    w = np.array([0.9, 0.3])
    W = np.stack([w, -w]) / np.sqrt(2)
    norm_2 = np.linalg.norm(W, 2)
    assert norm_2 == pytest.approx(np.linalg.norm(w))
    mu, alpha, beta = 4.0, 0.8, 0.1
    margin = 0.9 * mu
    exact = theory.linear_rule_risk(0.9 / norm_2, mu, alpha, beta)
    paper, tight = (
        theory.certificate([margin, margin], norm_2, alpha, beta, 1.0, form) for form in FORMS
    )
    assert exact <= tight <= paper
    gap = margin / norm_2 - alpha
    assert paper == pytest.approx(beta + 2 * np.exp(-(gap**2) / 2))
    assert tight == pytest.approx(beta + np.exp(-(gap**2) / 2))


def test_certificates_with_one_weak_class_and_in_batches():
    assert theory.certificate([3.0, 0.1], 1.0, 0.5, 0.1) == pytest.approx(
        0.6 + np.exp(-(2.5**2) / 2) / 2
    )
    assert theory.certificate([3.0, 0.1], 1.0, 0.5, 0.1, form="paper") == 1
    batch = theory.certificate(np.full((4, 2), 3.0), np.arange(1.0, 5), [[0.0], [0.5]], 0.1)
    assert batch.shape == (2, 4)
    assert batch[1, 1] == pytest.approx(theory.certificate([3.0, 3.0], 2.0, 0.5, 0.1))
    assert (np.diff(batch, axis=1) >= 0).all()


def test_iterations_are_the_printed_formulas_and_invert_the_loss_bounds():
    smooth = {"mu_norm": 5.0, "eta": 0.01, "gamma": 0.5, "width": 40, "d": 100}
    base = (35 + 8 * np.sqrt(40 / 1e6)) / (0.5 * 5 * 0.01 * 0.1)
    assert theory.iterations_needed(0.1, **smooth) == pytest.approx(base**2)
    assert theory.iterations_needed(0.1, **smooth, zeta=0.5) == pytest.approx(base**4)
    tight = theory.iterations_needed(0.1, **smooth, zeta=0.5, form="tight")
    assert tight == pytest.approx(base**3)
    other = theory.iterations_needed(0.1, **smooth, c0=0.2)
    assert other == pytest.approx((30 / (0.5 * 0.2 * 5 * 0.1 * 0.1)) ** 2)
    for extra in ({}, {"zeta": 0.3}, {"zeta": 0.3, "form": "tight"}, {"c0": 0.2}):
        steps = theory.iterations_needed(0.1, **smooth, **extra)
        assert theory.training_loss_bound(steps, **smooth, **extra) == pytest.approx(0.1)
    slrelu = theory.slrelu_loss_bound([100, 400], 5.0, 0.01, 0.5, 16, 4.0)
    assert slrelu == pytest.approx([36 / 2.5, 18 / 2.5])
