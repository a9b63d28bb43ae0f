"""The averaging classifier, against averages of samples and its own contours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.papers.benign import theory


def test_the_averaging_classifier_has_the_risk_of_the_mean_rule_and_near_what_averages_do():
    n, d, mu, alpha, beta = 100, 1000, 4.0, 0.4, 0.1
    q, clean, robust = theory.averaging_accuracy(n, d, mu, alpha, beta)
    assert 1 - clean == pytest.approx(theory.linear_rule_risk(q / mu, mu, 0.0, beta))
    assert 1 - robust == pytest.approx(theory.linear_rule_risk(q / mu, mu, alpha, beta))
    rng, cosines = np.random.default_rng(6), []
    for _ in range(200):
        y_clean = rng.choice([-1.0, 1.0], size=n)
        x = rng.normal(size=(n, d))
        x[:, 0] += mu * y_clean
        w = np.where(rng.uniform(size=n) < beta, -y_clean, y_clean) @ x
        cosines.append(w[0] / np.linalg.norm(w))
    assert q / mu == pytest.approx(np.mean(cosines), abs=0.01)


@given(
    mu=st.floats(0.5, 12),
    level=st.floats(0.55, 0.89),
    beta=st.floats(0, 0.1),
    ratio=st.floats(0, 0.5),
)
@settings(max_examples=150, deadline=None)
def test_on_the_contour_the_averaging_classifier_has_the_level(mu, level, beta, ratio):
    d = theory.averaging_contour(mu, level, 100, beta, ratio)
    if d > 1e-3:
        robust = theory.averaging_accuracy(100, d, mu, ratio * mu, beta).robust_accuracy
        assert robust == pytest.approx(level, abs=1e-8)
    else:
        assert theory.averaging_accuracy(100, 0.01, mu, ratio * mu, beta).robust_accuracy < level


def test_slopes_of_the_contours():
    mu = np.array([1e3, 2e3])
    for ratio, slope in ((0.0, 4), (0.1, 2)):
        d = theory.averaging_contour(mu, 0.8, 100, 0.1, ratio)
        assert np.log2(d[1] / d[0]) == pytest.approx(slope, abs=0.05)
    # At the scale of the experiments the robust contour is still steep.
    d = theory.averaging_contour([4.0, 6.0], 0.8, 100, 0.1, 0.1)
    assert 3.3 < np.log(d[1] / d[0]) / np.log(1.5) < 4
    assert theory.averaging_contour(1.0, 0.4, 100, 0.1) == np.inf
    assert theory.averaging_contour(0.1, 0.85, 100, 0.1) == 0
