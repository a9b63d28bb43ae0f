"""Lower bounds of the robust error, against quadrature, random classifiers and samples."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_parts import gaussian
from scipy.integrate import quad
from scipy.stats import norm

from advlab.papers.benign import theory

FORMS = ("paper", "tight")
lengths, radii, rates = st.floats(0, 8), st.floats(0, 8), st.floats(0, 0.499)


@pytest.mark.parametrize(("mu", "alpha"), [(1.0, 0.0), (2.0, 0.5), (5.0, 0.5), (3.0, 2.999)])
@pytest.mark.parametrize("beta", [0.0, 0.1, 0.3])
def test_the_gaussian_closed_form_is_the_integral(mu, alpha, beta):
    v = 2 * (mu - alpha)
    inside = sum(
        quad(lambda t: min(norm.pdf(t), norm.pdf(t + v)), low, high, epsabs=1e-15, epsrel=1e-12)[0]
        for low, high in ((-30, -v / 2), (-v / 2, 30 - v))
    )
    for form, weight in (("paper", 0.25), ("tight", 0.5)):
        expected = beta + (1 - 2 * beta) * weight * inside
        closed = theory.robust_error_lower_bound(mu, alpha, beta, form)
        by_law = theory.robust_error_lower_bound_of_law(gaussian, mu, alpha, beta, form)
        assert closed == pytest.approx(expected, abs=1e-12)
        assert by_law == pytest.approx(closed, rel=1e-11)


def interval_risk(edges, mu, alpha, beta):
    """The exact robust error of the classifier on the line that changes sign at the edges.

    A point is safe for a label if the ball around it lies where that label is given.
    """
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    risk = 0.0
    for centre, label in product((1, -1), (1, -1)):
        safe = 0.0
        for k, (low, high) in enumerate(pairwise(ends)):
            if label == (1 if k % 2 else -1) and high - low > 2 * alpha:
                safe += norm.cdf(high - alpha - centre * mu) - norm.cdf(low + alpha - centre * mu)
        risk += 0.5 * (1 - beta if label == centre else beta) * (1 - safe)
    return risk


@pytest.mark.parametrize(("mu", "alpha", "beta"), [(1.5, 0.4, 0.0), (2.0, 0.5, 0.1), (1, 0.9, 0.2)])
def test_no_random_interval_classifier_beats_the_tight_bound(mu, alpha, beta):
    rng = np.random.default_rng(4)
    bound = theory.robust_error_lower_bound(mu, alpha, beta, "tight")
    risks = [
        interval_risk(np.sort(rng.normal(scale=3, size=rng.integers(0, 6))), mu, alpha, beta)
        for _ in range(1_000)
    ]
    assert min(risks) >= bound - 1e-12
    threshold = interval_risk(np.zeros(1), mu, alpha, beta)
    assert threshold == pytest.approx(theory.linear_rule_risk(1.0, mu, alpha, beta), rel=1e-12)
    if beta == 0:
        # The bound is the optimum here, so it cannot be raised.
        assert threshold == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize(
    ("cos", "mu", "alpha", "beta"),
    [(1.0, 2.0, 0.5, 0.1), (0.6, 3.0, 1.0, 0.3), (-0.4, 1.0, 0.2, 0)],
)
def test_the_risk_of_a_linear_rule_is_what_samples_show(cos, mu, alpha, beta):
    rng, k = np.random.default_rng(5), 200_000
    w = np.array([cos, np.sqrt(1 - cos**2)])
    y_clean = rng.choice([-1.0, 1.0], size=k)
    x = rng.normal(size=(k, 2)) + y_clean[:, None] * np.array([mu, 0])
    y = np.where(rng.uniform(size=k) < beta, -y_clean, y_clean)
    # The exact attack on a linear rule goes straight against the label.
    error = (y * ((x - alpha * y[:, None] * w) @ w) <= 0).mean()
    risk = theory.linear_rule_risk(cos, mu, alpha, beta)
    assert error == pytest.approx(risk, abs=4 * np.sqrt(risk * (1 - risk) / k))


@given(mu=lengths, alpha=radii, beta=rates, more=st.floats(0, 2), cos=st.floats(-1, 1))
@settings(max_examples=200, deadline=None)
def test_lower_bounds_are_ordered_and_monotone(mu, alpha, beta, more, cos):
    bound = theory.robust_error_lower_bound
    paper, tight = (bound(mu, alpha, beta, form) for form in FORMS)
    assert beta - 1e-15 <= paper <= tight <= 0.5 + 1e-15
    for form, value in zip(FORMS, (paper, tight), strict=True):
        assert bound(mu, alpha + more, beta, form) >= value - 1e-15
        assert bound(mu + more, alpha, beta, form) <= value + 1e-15
        assert (bound(mu, max(alpha, mu), beta, form)) == 0.5
    assert tight <= theory.linear_rule_risk(cos, mu, alpha, beta) + 1e-12


@given(mu=lengths, alpha=radii, beta=rates, cos=st.floats(-1, 1), more=st.floats(0, 2))
@settings(max_examples=200, deadline=None)
def test_linear_rules(mu, alpha, beta, cos, more):
    risk = theory.linear_rule_risk
    assert 0 <= risk(cos, mu, alpha, beta) <= 1
    assert risk(cos, mu, alpha + more, beta) >= risk(cos, mu, alpha, beta)
    assert risk(1.0, mu, alpha, beta) <= risk(cos, mu, alpha, beta) + 1e-15
    # Without an attack the opposite rule errs exactly where the rule does not.
    assert risk(cos, mu, 0, beta) + risk(-cos, mu, 0, beta) == pytest.approx(1)


def test_bounds_broadcast_like_numpy():
    mu, alpha = np.linspace(1, 5, 4)[:, None], np.linspace(0, 2, 3)
    grid = theory.robust_error_lower_bound(mu, alpha, 0.1)
    assert grid.shape == (4, 3)
    assert grid[2, 1] == theory.robust_error_lower_bound(mu[2, 0], alpha[1], 0.1)
    assert theory.linear_rule_risk([0.5, 1.0], mu, 0.0, 0.0).shape == (4, 2)
    assert theory.averaging_accuracy(100, [500, 1000], mu, 0.1, 0.1).q.shape == (4, 2)
    assert isinstance(theory.robust_error_lower_bound(2.0, 0.5, 0.1), float)
