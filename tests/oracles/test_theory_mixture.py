"""The mixture's theory against quadrature, Monte Carlo, random classifiers and its own inverses."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, norm

from advlab.errors import AdvlabError
from advlab.theory import mixture

FORMS = ("paper", "tight")
lengths, radii, rates = st.floats(0, 8), st.floats(0, 8), st.floats(0, 0.499)


def gaussian(t):
    return -(t**2) / 2


def quartic(t):
    return -0.35 * t**2 - 0.4 * t**4


def lopsided(t):
    """Log-concave with its peak at 0 and unequal tails."""
    return np.where(np.asarray(t) > 0, -2.0, -0.3) * np.asarray(t) ** 2


LAWS = {"gaussian": gaussian, "quartic": quartic, "lopsided": lopsided}


def draws(log_density, shape, seed):
    """By rejection from a wide normal: no code in common with the package."""
    rng = np.random.default_rng(seed)
    scale, kept = 1.5, np.empty(0)
    while kept.size < np.prod(shape):
        t = scale * rng.normal(size=2 * int(np.prod(shape)))
        # log p + t^2/(2 scale^2) is at most 0 for the three laws, as their curvature is >= 0.44.
        kept = np.append(
            kept, t[np.log(rng.uniform(size=t.size)) < log_density(t) + (t / scale) ** 2 / 2]
        )
    return kept[: np.prod(shape)].reshape(shape)


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
        closed = mixture.robust_error_lower_bound(mu, alpha, beta, form)
        by_law = mixture.robust_error_lower_bound_of_law(gaussian, mu, alpha, beta, form)
        assert closed == pytest.approx(expected, abs=1e-12)
        assert by_law == pytest.approx(closed, rel=1e-11)


@pytest.mark.parametrize("shift", [1e-200, 1e-9, 0.1, 1.0, 5.0, 20.0, 40.0])
def test_the_overlap_keeps_its_relative_accuracy_in_the_tails(shift):
    assert mixture.overlap(gaussian, shift) == pytest.approx(2 * norm.sf(shift / 2), rel=1e-10)
    narrow = mixture.overlap(lambda t: gaussian(1e6 * t), shift * 1e-6)
    assert narrow == pytest.approx(2 * norm.sf(shift / 2), rel=1e-10)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("shift", [0.3, 1.0, 2.5])
def test_the_overlap_of_other_laws_is_a_sum_over_a_grid(name, shift):
    t = np.linspace(-15, 15, 600_001)
    p, moved = (np.exp(LAWS[name](s)) for s in (t, t + shift))
    expected = np.minimum(p, moved).sum() / p.sum()
    assert mixture.overlap(LAWS[name], shift) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_monte_carlo_along_the_axis_agrees_with_quadrature(name):
    noise = draws(LAWS[name], (40_000, 3), seed=1)
    mu, alpha = np.array([1.2, 0.0, 0.0]), 0.4
    value, error = mixture.overlap_monte_carlo(LAWS[name], noise, mu, alpha)
    assert value == pytest.approx(mixture.overlap(LAWS[name], 1.6), abs=4 * error)
    assert 0 < error < 0.01


def test_monte_carlo_in_another_direction():
    mu = np.array([0.8, -0.6, 0.5])
    noise = np.random.default_rng(2).normal(size=(40_000, 3))
    value, error = mixture.overlap_monte_carlo(gaussian, noise, mu, 0.3)
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
    value, error = mixture.overlap_monte_carlo(quartic, noise, mu, alpha)
    assert value == pytest.approx(expected, abs=4 * error)
    assert mixture.overlap_monte_carlo(quartic, noise, mu, 2.0) == (1.0, 0.0)


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
    bound = mixture.robust_error_lower_bound(mu, alpha, beta, "tight")
    risks = [
        interval_risk(np.sort(rng.normal(scale=3, size=rng.integers(0, 6))), mu, alpha, beta)
        for _ in range(1_000)
    ]
    assert min(risks) >= bound - 1e-12
    threshold = interval_risk(np.zeros(1), mu, alpha, beta)
    assert threshold == pytest.approx(mixture.linear_rule_risk(1.0, mu, alpha, beta), rel=1e-12)
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
    risk = mixture.linear_rule_risk(cos, mu, alpha, beta)
    assert error == pytest.approx(risk, abs=4 * np.sqrt(risk * (1 - risk) / k))


@given(mu=lengths, alpha=radii, beta=rates, more=st.floats(0, 2), cos=st.floats(-1, 1))
@settings(max_examples=200, deadline=None)
def test_lower_bounds_are_ordered_and_monotone(mu, alpha, beta, more, cos):
    bound = mixture.robust_error_lower_bound
    paper, tight = (bound(mu, alpha, beta, form) for form in FORMS)
    assert beta - 1e-15 <= paper <= tight <= 0.5 + 1e-15
    for form, value in zip(FORMS, (paper, tight), strict=True):
        assert bound(mu, alpha + more, beta, form) >= value - 1e-15
        assert bound(mu + more, alpha, beta, form) <= value + 1e-15
        assert (bound(mu, max(alpha, mu), beta, form)) == 0.5
    assert tight <= mixture.linear_rule_risk(cos, mu, alpha, beta) + 1e-12


@given(mu=lengths, alpha=radii, beta=rates, cos=st.floats(-1, 1), more=st.floats(0, 2))
@settings(max_examples=200, deadline=None)
def test_linear_rules(mu, alpha, beta, cos, more):
    risk = mixture.linear_rule_risk
    assert 0 <= risk(cos, mu, alpha, beta) <= 1
    assert risk(cos, mu, alpha + more, beta) >= risk(cos, mu, alpha, beta)
    assert risk(1.0, mu, alpha, beta) <= risk(cos, mu, alpha, beta) + 1e-15
    # Without an attack the opposite rule errs exactly where the rule does not.
    assert risk(cos, mu, 0, beta) + risk(-cos, mu, 0, beta) == pytest.approx(1)


@given(shift=st.floats(0, 6), more=st.floats(0.01, 2), name=st.sampled_from(list(LAWS)))
@settings(max_examples=60, deadline=None)
def test_overlaps_shrink_with_the_shift_and_do_not_see_a_mirror(shift, more, name):
    law = LAWS[name]
    inside = mixture.overlap(law, shift)
    assert 0 <= mixture.overlap(law, shift + more) <= inside <= 1
    assert mixture.overlap(lambda t: law(-t), shift) == pytest.approx(inside, rel=1e-9)


def test_bounds_broadcast_like_numpy():
    mu, alpha = np.linspace(1, 5, 4)[:, None], np.linspace(0, 2, 3)
    grid = mixture.robust_error_lower_bound(mu, alpha, 0.1)
    assert grid.shape == (4, 3)
    assert grid[2, 1] == mixture.robust_error_lower_bound(mu[2, 0], alpha[1], 0.1)
    assert mixture.linear_rule_risk([0.5, 1.0], mu, 0.0, 0.0).shape == (4, 2)
    assert mixture.averaging_proxy(100, [500, 1000], mu, 0.1, 0.1).q.shape == (4, 2)
    assert isinstance(mixture.robust_error_lower_bound(2.0, 0.5, 0.1), float)


def test_upper_bounds_are_the_printed_formulas():
    # n = 100, d = 400, ||mu|| = 4: sqrt(n/d) ||mu||^2 = 8.
    expected = 0.1 + 2 * np.exp(-0.5 * 0.7 * (8 / 2 - 1.5) ** 2)
    assert mixture.robust_upper_bound(100, 400, 4, 1.5, 0.1, 0.7, C=2) == pytest.approx(expected)
    clean = 0.1 + 2 * np.exp(-0.5 * 100 * 4**4 / (4 * 400))
    assert mixture.clean_upper_bound(100, 400, 4, 0.1, C=2) == pytest.approx(clean)
    assert mixture.robust_upper_bound(100, 400, 4, 4.01, 0.1, C=2) == 1
    assert mixture.sample_sizes(800, 2, 1) == (50, 200, 200)
    assert mixture.minimax_exponent(100, [100, 6400], 4) == pytest.approx([16, 4])


@given(
    errors=st.lists(st.floats(0, 1), min_size=1, max_size=6),
    alpha=st.floats(0, 3),
    mu=st.floats(0.5, 8),
    beta=st.floats(0, 0.4),
)
@settings(max_examples=200, deadline=None)
def test_the_fitted_constant_covers_and_no_smaller_one_does(errors, alpha, mu, beta):
    C = mixture.fit_C(errors, 50, 300, mu, alpha, beta, 0.8)
    if C == 0:
        assert max(errors) <= beta
        return

    def bound(C):
        return mixture.robust_upper_bound(50, 300, mu, alpha, beta, 0.8, C=C)

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
    exact = mixture.linear_rule_risk(0.9 / norm_2, mu, alpha, beta)
    paper, tight = (
        mixture.certificate([margin, margin], norm_2, alpha, beta, 1.0, form) for form in FORMS
    )
    assert exact <= tight <= paper
    gap = margin / norm_2 - alpha
    assert paper == pytest.approx(beta + 2 * np.exp(-(gap**2) / 2))
    assert tight == pytest.approx(beta + np.exp(-(gap**2) / 2))


def test_certificates_with_one_weak_class_and_in_batches():
    assert mixture.certificate([3.0, 0.1], 1.0, 0.5, 0.1) == pytest.approx(
        0.6 + np.exp(-(2.5**2) / 2) / 2
    )
    assert mixture.certificate([3.0, 0.1], 1.0, 0.5, 0.1, form="paper") == 1
    batch = mixture.certificate(np.full((4, 2), 3.0), np.arange(1.0, 5), [[0.0], [0.5]], 0.1)
    assert batch.shape == (2, 4)
    assert batch[1, 1] == pytest.approx(mixture.certificate([3.0, 3.0], 2.0, 0.5, 0.1))
    assert (np.diff(batch, axis=1) >= 0).all()


def test_iterations_are_the_printed_formulas_and_invert_the_loss_bounds():
    smooth = {"mu_norm": 5.0, "eta": 0.01, "gamma": 0.5, "width": 40, "d": 100}
    base = (35 + 8 * np.sqrt(40 / 1e6)) / (0.5 * 5 * 0.01 * 0.1)
    assert mixture.iterations_needed(0.1, **smooth) == pytest.approx(base**2)
    assert mixture.iterations_needed(0.1, **smooth, zeta=0.5) == pytest.approx(base**4)
    tight = mixture.iterations_needed(0.1, **smooth, zeta=0.5, form="tight")
    assert tight == pytest.approx(base**3)
    other = mixture.iterations_needed(0.1, **smooth, c0=0.2)
    assert other == pytest.approx((30 / (0.5 * 0.2 * 5 * 0.1 * 0.1)) ** 2)
    for extra in ({}, {"zeta": 0.3}, {"zeta": 0.3, "form": "tight"}, {"c0": 0.2}):
        steps = mixture.iterations_needed(0.1, **smooth, **extra)
        assert mixture.training_loss_bound(steps, **smooth, **extra) == pytest.approx(0.1)
    slrelu = mixture.slrelu_loss_bound([100, 400], 5.0, 0.01, 0.5, 16, 4.0)
    assert slrelu == pytest.approx([36 / 2.5, 18 / 2.5])


def test_the_proxy_is_the_risk_of_the_mean_rule_and_near_what_averages_do():
    n, d, mu, alpha, beta = 100, 1000, 4.0, 0.4, 0.1
    q, clean, robust = mixture.averaging_proxy(n, d, mu, alpha, beta)
    assert 1 - clean == pytest.approx(mixture.linear_rule_risk(q / mu, mu, 0.0, beta))
    assert 1 - robust == pytest.approx(mixture.linear_rule_risk(q / mu, mu, alpha, beta))
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
def test_on_the_contour_the_proxy_has_the_level(mu, level, beta, ratio):
    d = mixture.averaging_contour(mu, level, 100, beta, ratio)
    if d > 1e-3:
        robust = mixture.averaging_proxy(100, d, mu, ratio * mu, beta).robust_accuracy
        assert robust == pytest.approx(level, abs=1e-8)
    else:
        assert mixture.averaging_proxy(100, 0.01, mu, ratio * mu, beta).robust_accuracy < level


def test_slopes_of_the_contours():
    mu = np.array([1e3, 2e3])
    for ratio, slope in ((0.0, 4), (0.1, 2)):
        d = mixture.averaging_contour(mu, 0.8, 100, 0.1, ratio)
        assert np.log2(d[1] / d[0]) == pytest.approx(slope, abs=0.05)
    # At the scale of the experiments the robust contour is still steep.
    d = mixture.averaging_contour([4.0, 6.0], 0.8, 100, 0.1, 0.1)
    assert 3.3 < np.log(d[1] / d[0]) / np.log(1.5) < 4
    assert mixture.averaging_contour(1.0, 0.4, 100, 0.1) == np.inf
    assert mixture.averaging_contour(0.1, 0.85, 100, 0.1) == 0


PRESET = {
    "n": 20,
    "d": 3000,
    "mu_norm": 10.0,
    "alpha": 1.0,
    "beta": 0.1,
    "omega": 0.005 / np.sqrt(40 * 3000),
    "eta": 0.005,
    "width": 40,
    "delta": 0.05,
}


def test_assumptions_report_the_constants_they_leave_room_for():
    report = mixture.check_assumptions(**PRESET)
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
    beyond = mixture.check_assumptions(**PRESET | {"alpha": 10.1, "omega": 1.0, "beta": 0.0})
    assert beyond.holds == {"3": False, "6": False}
    assert beyond.smooth == 0
    assert beyond.implied["2"] == np.inf


def test_constants_are_the_printed_numbers():
    assert mixture.C1(1.0) == 10
    assert mixture.C_r(1.0, 0.1) == pytest.approx(705_600)
    assert mixture.C_r(1.0, 0.1, c0=0.2) == pytest.approx(192 * 10 * 10.025 / 0.002)
    assert mixture.C2(1.0, 0.1) == pytest.approx(np.sqrt(50 * 705_600))
    assert mixture.gradient_alignment(0.4) == 0.1
    assert mixture.gradient_alignment(0.4, c0=0.5) == 0.05
    assert mixture.normalised_margin_floor(1.0, 0.1) == pytest.approx(
        0.01 / (32 * np.sqrt(50 * 705_600))
    )
    assert mixture.first_step_floor(10.0, 0.5) == 0.5
    assert mixture.first_step_floor(10.0, 0.5, c0=0.2) == pytest.approx(0.1)
    assert mixture.span_distance_bound(1e-4, 25, 400, 0.1, 5.0) == pytest.approx(0.1)
    assert mixture.span_distance_bound(1.0, 25, 400, 0.1, 5.0) == 5
    low, high = mixture.margin_growth(0.1, 20, 4000, 2.0, 1.0, 0.5, 0.2)
    assert low == pytest.approx(0.1 * 0.2 * 0.25 * 18**2 / 40)
    assert high == pytest.approx(0.3 * 40_004 / 20)


@given(d=st.integers(10, 10_000), share=st.floats(0, 0.5), kappa=st.floats(0.05, 1))
def test_the_loss_ratio_is_at_most_the_constant_it_is_relaxed_to(d, share, kappa):
    alpha = share * np.sqrt(d * kappa / 10)
    assert mixture.loss_ratio_bound(d, alpha, kappa, 0.3) <= mixture.C_r(kappa, 0.3) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("c", "law"),
    [
        (np.sqrt(8 / 3), "normal"),
        (1 / np.sqrt(np.log(2)), "coin"),
    ],
)
def test_anti_concentration(c, law):
    rng = np.random.default_rng(7)
    x = rng.normal(size=200_000) if law == "normal" else rng.choice([-1.0, 1.0], size=200_000)
    threshold, probability = mixture.anti_concentration(c)
    assert (threshold, probability) == pytest.approx((0.1 / c**2, 0.04 / 220 ** (2 / 3) / c**4))
    assert (x >= threshold).mean() > probability


@pytest.mark.parametrize("delta", [0.4, 0.1, 0.01])
def test_projections_and_norms_stay_in_their_bounds(delta):
    for name, lam in (("gaussian", 1.0), ("quartic", 0.7)):
        noise, v = draws(LAWS[name], (20_000, 4), seed=8), np.array([1.0, -2.0, 0.5, 0.0])
        bound = mixture.projection_bound(np.linalg.norm(v), delta, lam)
        assert (np.abs(noise @ v) > bound).mean() <= delta
    # psi_2 norm 1 means variance 3/8.
    noise = np.sqrt(3 / 8) * np.random.default_rng(9).normal(size=(20_000, 4))
    assert ((noise**2).sum(1) > mixture.noise_norm_bound(4, delta)).mean() <= delta


@given(n=st.integers(1, 500), beta=rates, excess=st.floats(0.001, 0.4))
@settings(deadline=None)
def test_hoeffding_covers_the_binomial_tail(n, beta, excess):
    exact = binom(n, beta).sf(np.floor(n * (beta + excess) + 1e-9))
    assert exact <= mixture.flip_tail(n, excess) * (1 + 1e-9)
    share = mixture.flip_share_bound(n, beta, 0.05)
    assert mixture.flip_tail(n, share - beta) == pytest.approx(0.05)


NAN = float("nan")
BAD = {
    "negative mu": lambda: mixture.robust_error_lower_bound(-1.0, 0.1, 0.1),
    "negative alpha": lambda: mixture.robust_error_lower_bound(1.0, -0.1, 0.1),
    "beta of a half": lambda: mixture.robust_error_lower_bound(1.0, 0.1, 0.5),
    "beta NaN": lambda: mixture.robust_error_lower_bound(1.0, 0.1, NAN),
    "unknown form": lambda: mixture.robust_error_lower_bound(1.0, 0.1, 0.1, "sharp"),
    "shapes": lambda: mixture.robust_error_lower_bound([1.0, 2.0], [0.1, 0.2, 0.3], 0.1),
    "cos": lambda: mixture.linear_rule_risk(1.1, 1.0, 0.1, 0.1),
    "words": lambda: mixture.linear_rule_risk(["a"], 1.0, 0.1, 0.1),
    "overlap": lambda: mixture.lower_bound_from_overlap(1.1, 0.1),
    "negative shift": lambda: mixture.overlap(gaussian, -1.0),
    "peak elsewhere": lambda: mixture.overlap(lambda t: gaussian(t - 5), 1.0),
    "no tails": lambda: mixture.overlap(lambda t: 0.0 * t, 1.0),
    "one draw": lambda: mixture.overlap_monte_carlo(gaussian, [[1.0, 2.0]], [1.0, 0.0], 0.1),
    "draws of another size": lambda: mixture.overlap_monte_carlo(
        gaussian, np.ones((5, 3)), [1.0, 0.0], 0.1
    ),
    "C of zero": lambda: mixture.robust_upper_bound(10, 10, 1.0, 0.1, 0.1, C=0.0),
    "n of zero": lambda: mixture.clean_upper_bound(0, 10, 1.0, 0.1),
    "errors above one": lambda: mixture.fit_C([1.2], 10, 10, 1.0, 0.1, 0.1),
    "no errors": lambda: mixture.fit_C([], 10, 10, 1.0, 0.1, 0.1),
    "three classes": lambda: mixture.certificate([1.0, 1.0, 1.0], 1.0, 0.1, 0.1),
    "zero network": lambda: mixture.certificate([1.0, 1.0], 0.0, 0.1, 0.1),
    "zeta": lambda: mixture.iterations_needed(0.1, 1.0, 0.1, 0.5, 4, 10, zeta=1.0),
    "gamma": lambda: mixture.iterations_needed(0.1, 1.0, 0.1, 0.0, 4, 10),
    "c0 above one": lambda: mixture.iterations_needed(0.1, 1.0, 0.1, 0.5, 4, 10, c0=1.5),
    "eps": lambda: mixture.iterations_needed(0.0, 1.0, 0.1, 0.5, 4, 10),
    "level": lambda: mixture.averaging_contour(1.0, 0.95, 100, 0.1),
    "delta": lambda: mixture.check_assumptions(**PRESET | {"delta": 0.5}),
    "kappa": lambda: mixture.C1(0.0),
    "ball over the origin": lambda: mixture.loss_ratio_bound(10, 1.0, 1.0, 0.5),
    "c below one": lambda: mixture.anti_concentration(0.9),
    "delta of one": lambda: mixture.projection_bound(1.0, 1.0),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()
