"""Robust linear models against a conic solver, brute force and other libraries."""

import warnings

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.linear._solvers.certificate import DualPoint, lower_bound
from advlab.linear._solvers.first_order import first_order
from advlab.linear._solvers.interior_then_face import interior_then_face
from advlab.linear._solvers.squared_start import solve_squared
from advlab.linear.solve import prepare

DUAL = {"linf": 1, "l2": 2, "l1": "inf"}


def samples(seed=0, n=40, d=8, classes=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    y = x[:, 0] - x[:, 1] + 0.7 * rng.normal(size=n) + 0.5
    return (x, np.where(y + rng.normal(size=n) > 0.5, 1.0, -1.0)) if classes else (x, y)


def conic(x, y, radii, norm, loss, l1=0.0, l2=0.0, weights=None, delta=1.0, intercept=True):
    """The problem as one would write it for cvxpy."""
    n, d = x.shape
    theta, b = cvxpy.Variable(d), cvxpy.Variable()
    q = DUAL[norm] if isinstance(norm, str) else norm / (norm - 1)
    attack = cvxpy.norm(cvxpy.multiply(np.broadcast_to(radii, d), theta), q)
    scores = x @ theta + (b if intercept else 0.0)
    u, margin = cvxpy.abs(y - scores) + attack, cvxpy.multiply(y, scores) - attack
    each = {
        "squared": lambda: cvxpy.square(u),
        "absolute": lambda: u,
        "huber": lambda: cvxpy.huber(u, delta),
        "logistic": lambda: cvxpy.logistic(-margin),
        "hinge": lambda: cvxpy.pos(1 - margin),
    }[loss]()
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    penalty = l1 * cvxpy.norm1(theta) + l2 / 2 * cvxpy.sum_squares(theta)
    problem = cvxpy.Problem(cvxpy.Minimize(share @ each + penalty))
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        problem.solve(solver="CLARABEL", **tight)
    return float(problem.value), theta.value


LOSSES = ("squared", "absolute", "huber", "logistic", "hinge")


@pytest.mark.parametrize("shape", [(40, 8), (12, 30)])
@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_is_that_of_a_conic_solver_and_the_gap_holds_it(loss, norm, shape):
    x, y = samples(1, *shape, classes=loss in LOSSES[3:])
    edge = linear.thresholds(x, y, norm, loss=loss).zero
    separable = loss == "logistic" and shape[1] > shape[0]
    for share in (0.95,) if separable else (0.05, 0.6):
        found = linear.solve_linear(x, y, share * edge, norm, loss)
        least, _ = conic(x, y, share * edge, norm, loss)
        assert found.converged
        assert found.relative_gap <= 1e-8
        assert found.objective <= least * (1 + 1e-8) + 1e-9
        assert found.objective - found.gap <= least * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("norm", [1.5, 3])
def test_any_norm_is_solved_as_a_cone_programme(norm, loss):
    x, y = samples(2, 30, 4, classes=loss != "squared")
    found = linear.solve_linear(x, y, 0.2, norm, loss)
    least, _ = conic(x, y, 0.2, norm, loss)
    assert found.relative_gap <= 1e-7
    assert found.objective == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_penalties_weights_and_radii_per_feature(loss, norm):
    x, y = samples(3, classes=loss == "logistic")
    rng = np.random.default_rng(0)
    weights, radii = rng.uniform(0, 2, len(y)), np.r_[0.0, rng.uniform(0.05, 0.3, 7)]
    weights[:3] = 0
    for l1, l2 in ((0.05, 0.0), (0.0, 0.1), (0.05, 0.1)):
        found = linear.solve_linear(
            x, y, radii, norm, loss, l1=l1, l2=l2, sample_weight=weights, delta=0.8
        )
        least, _ = conic(x, y, radii, norm, loss, l1, l2, weights, 0.8)
        assert found.converged
        assert found.objective == pytest.approx(least, rel=1e-7)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    norm=st.sampled_from(["linf", "l2"]),
    shape=st.sampled_from([(40, 8), (60, 40), (200, 10), (12, 30)]),
    share=st.floats(0.01, 0.95),
    l1=st.sampled_from([0.0, 0.05]),
    l2=st.sampled_from([0.0, 0.1]),
    intercept=st.booleans(),
)
def test_the_squared_loss_is_that_of_a_conic_solver(seed, norm, shape, share, l1, l2, intercept):
    x, y = samples(seed, *shape)
    rng = np.random.default_rng(seed)
    weights, radii = rng.uniform(0.5, 2, len(y)), rng.uniform(0.5, 1, shape[1])
    radii *= share * linear.thresholds(x, y, norm, fit_intercept=intercept, scales=radii).zero
    found = linear.solve_linear(
        x, y, radii, norm, l1=l1, l2=l2, sample_weight=weights, fit_intercept=intercept
    )
    least, theta = conic(x, y, radii, norm, "squared", l1, l2, weights, intercept=intercept)
    assert found.relative_gap <= 1e-8
    assert found.objective <= least * (1 + 1e-7) + 1e-9
    if norm == "linf" or l1:
        # What the conic solver leaves near zero is zero here, exactly.
        size = np.abs(theta).max()
        near = np.abs(found.coef) < 1e-9 * size
        assert not found.coef[near].any()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_faces_alone_find_what_the_interior_point_method_finds(norm, intercept):
    settled = 0
    for seed in range(4):
        x, y = samples(seed, 80, 12)
        ready = prepare(x, y, norm=norm, fit_intercept=intercept)
        problem = ready.problem.at_radii(np.full(12, 0.05 * (1 + seed)))
        slow, quick = interior_then_face(problem, 1e-9), solve_squared(problem, 1e-9)
        if quick is None:
            continue
        settled += 1
        assert quick.gap <= 1e-9 * quick.value
        np.testing.assert_allclose(quick.theta, slow.theta, atol=1e-7)
        assert np.array_equal(quick.theta == 0, slow.theta == 0)
    assert settled >= 3


def test_a_path_without_intercept_leaves_the_zero_model():
    # From the zero model on a face has no feature at first.
    x, y = samples(3, 100, 20)
    edge = linear.thresholds(x, y, "linf", fit_intercept=False).zero
    path = linear.adversarial_path(
        x, y, edge * np.array([1.1, 1, 0.999, 0.95, 0.1]), fit_intercept=False
    )
    assert (path.relative_gaps <= 1e-8).all()
    assert [bool(one.any()) for one in path.coefs] == [False, False, True, True, True]


def test_the_threshold_of_a_wide_problem_is_where_a_sample_stops_being_fitted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2000))
    y = x[:, :5].sum(1) + rng.normal(size=20)
    edge = linear.thresholds(x, y, "linf").interpolation
    for share, fits in ((0.999, True), (1.001, False)):
        found = linear.solve_linear(x, y, share * edge)
        miss = np.abs(y - x @ found.coef - found.intercept).max()
        assert (miss < 1e-9) == fits
        assert found.relative_gap <= 1e-8


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(LOSSES),
    norm=st.sampled_from(["linf", "l2", "l1"]),
    share=st.floats(0.01, 0.95),
    l2=st.sampled_from([0.0, 0.3]),
)
def test_no_dual_point_gives_a_bound_above_any_objective(seed, loss, norm, share, l2):
    x, y = samples(seed, 15, 5, classes=loss in LOSSES[3:])
    ready = prepare(x, y, norm=norm, loss=loss, l2=l2)
    problem = ready.problem.at_radii(share * ready.unit)
    rng = np.random.default_rng(seed)
    least = min(problem.objective(size * rng.normal(size=5), rng.normal()) for size in (0, 0.1, 1))
    solved = linear.solve_linear(x, y, share, norm, loss, l2=l2) if loss != "logistic" else None
    least = least if solved is None else min(least, solved.objective)
    alpha = problem.weights * rng.uniform(0, 1, len(problem.y))
    sign = problem.y if problem.loss.classifies else rng.uniform(-1, 1, len(problem.y))
    bound = lower_bound(problem, DualPoint(sign * alpha, alpha), rng.normal(size=5))
    assert bound <= least * (1 + 1e-9)


def test_the_attack_is_the_worst_of_many_and_its_maximiser_reaches_it():
    x, y = samples(4, 10, 3)
    theta, b = np.array([0.5, -1.0, 0.2]), 0.3
    rng = np.random.default_rng(0)
    for norm, order in (("linf", np.inf), ("l2", 2), ("l1", 1), (3, 3)):
        each = linear.robust_losses(theta, b, x, y, 0.2, norm)
        moves = rng.normal(size=(4000, 3))
        moves *= 0.2 / np.linalg.norm(moves, ord=order, axis=1)[:, None]
        corners = 0.2 * np.vstack([np.eye(3), -np.eye(3)])
        signs = 0.2 * np.sign(moves) / np.linalg.norm(np.ones(3), ord=order)
        moves = np.vstack([moves, corners, signs])
        tried = ((y[:, None] - (x[:, None] + moves) @ theta - b) ** 2).max(axis=1)
        assert (tried <= each * (1 + 1e-12)).all()
        np.testing.assert_allclose(tried, each, rtol=0.02)


def test_zeros_are_exact_and_the_threshold_is_sharp():
    x, y = samples(5, 60, 20)
    edge = linear.thresholds(x, y, "linf")
    assert edge.interpolation == 0
    found = linear.solve_linear(x, y, 0.3 * edge.zero)
    assert 0 < (found.coef != 0).sum() < 20
    below = linear.solve_linear(x, y, edge.zero * (1 - 1e-6))
    above = linear.solve_linear(x, y, edge.zero * (1 + 1e-6))
    assert below.coef.any()
    assert not above.coef.any()
    assert "eps_0" in above.status
    assert above.intercept == pytest.approx(y.mean())


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("loss", LOSSES[:3])
def test_the_interpolation_threshold_is_sharp(loss, norm):
    x, y = samples(6, 12, 30)
    edge = linear.thresholds(x, y, norm, loss=loss).interpolation
    for share, fits in ((0.99, True), (1.01, False)):
        found = linear.solve_linear(x, y, share * edge, norm, loss)
        miss = np.abs(y - x @ found.coef - found.intercept).max()
        assert (miss < 1e-9) == fits


def test_min_norm_interpolators_against_linear_programming():
    x, y = samples(7, 10, 25)
    theta = cvxpy.Variable(25)
    least = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(theta)), [x @ theta == y])
    least.solve(solver="CLARABEL")
    found = linear.min_norm_l1(x, y)
    np.testing.assert_allclose(x @ found, y, atol=1e-9)
    assert np.abs(found).sum() == pytest.approx(float(least.value), rel=1e-7)
    assert (found != 0).sum() <= 10
    with pytest.raises(AdvlabError, match="at least as many features"):
        linear.min_norm_l1(x.T, np.ones(25))


def test_working_sets_find_what_the_whole_problem_finds():
    x, y = samples(8, 20, 1500)
    edge = linear.thresholds(x, y, "linf").zero
    found = linear.solve_linear(x, y, 0.4 * edge)
    assert "working sets" in found.method
    assert found.relative_gap <= 1e-8
    kept = found.coef != 0
    g = 2 / len(y) * x.T @ np.sign(y - x @ found.coef)  # a feature outside is not worth its price
    assert kept.sum() < 25
    assert np.isfinite(g).all()


def test_sparse_input_and_repeated_samples_change_nothing():
    x, y = samples(9, 40, 12)
    x[np.abs(x) < 0.8] = 0.0
    for norm in ("linf", "l2"):
        dense = linear.solve_linear(x, y, 0.1, norm)
        thin = linear.solve_linear(sparse.csr_array(x), y, 0.1, norm)
        np.testing.assert_allclose(thin.coef, dense.coef, atol=1e-9)
        twice = linear.solve_linear(np.r_[x, x[:5]], np.r_[y, y[:5]], 0.1, norm)
        weights = np.r_[np.full(5, 2.0), np.ones(35)]
        heavy = linear.solve_linear(x, y, 0.1, norm, sample_weight=weights)
        np.testing.assert_allclose(twice.coef, heavy.coef, atol=1e-10)


def test_no_attack_is_least_squares_and_ridge():
    x, y = samples(10)
    centred = x - x.mean(0)
    found = linear.solve_linear(x, y, 0.0)
    plain = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(found.coef, plain, rtol=1e-9)
    ridge = np.linalg.solve(2 / 40 * centred.T @ centred + 0.3 * np.eye(8), 2 / 40 * centred.T @ y)
    np.testing.assert_allclose(linear.solve_linear(x, y, 0.0, l2=0.3).coef, ridge, rtol=1e-9)


def test_separable_data_have_no_minimiser_and_it_is_said():
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    from sklearn.exceptions import ConvergenceWarning

    for eps in (0.0, 0.5):
        with pytest.warns(ConvergenceWarning, match="no minimiser"):
            found = linear.solve_linear(x, y, eps, loss="logistic")
        assert found.objective <= 1e-7
        assert (y * (x[:, 0] * found.coef + found.intercept) > eps * abs(found.coef[0])).all()
    # The hinge attains its minimum 0, and the shortest model with margin 1 is unique.
    hinge = linear.solve_linear(x, y, 0.5, loss="hinge")
    assert hinge.objective == 0
    assert hinge.coef[0] == pytest.approx(2.0, rel=1e-5)


def test_a_gap_that_is_not_reached_is_warned_about():
    from sklearn.exceptions import ConvergenceWarning

    x, y = samples(11, 200, 30)
    problem = prepare(x, y).problem.at_radii(np.full(30, 0.1))
    rough = first_order(problem, 1e-3)
    exact = linear.solve_linear(x, y, 0.1)
    assert exact.objective <= rough.value
    assert rough.least <= exact.objective
    assert rough.relative <= 1e-3
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        linear.solve_linear(x, y, 0.1, 3, tol=1e-300)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_path_is_its_fits(loss, norm):
    x, y = samples(12, 60, 10, classes=loss == "logistic")
    path = linear.adversarial_path(x, y, norm=norm, loss=loss, points=12)
    assert not path.coefs[0].any()
    assert path.thresholds.zero == path.eps[0]
    assert (path.relative_gaps <= 1e-8).all()
    assert (np.diff(path.objectives) <= 1e-12).all()
    for at in (3, 11):
        alone = linear.solve_linear(x, y, path.eps[at], norm, loss)
        np.testing.assert_allclose(path.coefs[at], alone.coef, atol=1e-6)
    shuffled = linear.adversarial_path(x, y, path.eps[::-1], norm, loss)
    np.testing.assert_allclose(shuffled.coefs[::-1], path.coefs, atol=1e-6)


def test_population_risk_is_the_closed_form_and_the_mean_of_draws():
    from types import SimpleNamespace

    ball = SimpleNamespace(ball_norm="l2", radius=0.3)
    theta, theta0 = np.array([0.5, -0.2]), np.array([1.0, 0.4])
    closed = linear.adversarial_risk(theta, theta0, 0.5, ball)
    assert linear.population_risk(theta, theta0, 0.5, ball) == pytest.approx(closed, rel=1e-10)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400_000, 2))
    y = x @ theta0 + np.sqrt(0.5) * rng.normal(size=400_000)
    for loss in ("absolute", "huber"):
        mean = linear.robust_losses(theta, 0.2, x, y, 0.3, "l2", loss, delta=0.7).mean()
        found = linear.population_risk(
            theta, theta0, 0.5, ball, loss=loss, delta=0.7, intercept=0.2
        )
        assert found == pytest.approx(mean, rel=5e-3)


def test_the_default_radius_does_not_depend_on_the_answers():
    x, y = samples(13, 100, 20)
    eps = linear.default_eps(x, y, "linf")
    assert eps == linear.default_eps(x, 10 * y, "linf")
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(200):
        noise = rng.normal(size=100)
        noise -= noise.mean()
        ratios.append(np.abs((x - x.mean(0)).T @ noise).max() / np.abs(noise).sum())
    assert eps == pytest.approx(np.mean(ratios), rel=0.1)


def test_bad_input_is_refused_in_one_line():
    x, y = samples(14)
    for bad, words in (
        (lambda: linear.solve_linear(x, y, -0.1), "eps must not be negative"),
        (lambda: linear.solve_linear(x, y, [0.1, 0.2]), "one per feature"),
        (lambda: linear.solve_linear(x, y, 0.1, "l7"), "l1, l2 or linf"),
        (lambda: linear.solve_linear(x, y, 0.1, 0.5), "p >= 1"),
        (lambda: linear.solve_linear(x, y, 0.1, loss="cubic"), "loss must be"),
        (lambda: linear.solve_linear(x * np.nan, y, 0.1), "x must be finite"),
        (lambda: linear.solve_linear(x, y[:-1], 0.1), "40 entries"),
        (lambda: linear.solve_linear(x, np.ones(40), 0.1, loss="hinge"), "one class"),
        (lambda: linear.solve_linear(x, y, 0.1, loss="hinge"), "labels must be -1"),
        (lambda: linear.solve_linear(sparse.csr_array((5, 10**13)), y[:5], 0.1), "memory"),
        (lambda: linear.adversarial_path(x, y, []), "eps_grid"),
    ):
        with pytest.raises(AdvlabError, match=words):
            bad()


def test_small_and_flat_data():
    one = linear.solve_linear([[1.0, 2.0]], [3.0], 0.1)
    assert one.objective == 0
    assert one.intercept == pytest.approx(3.0)
    x, y = samples(15)
    x[:, 3] = 7.0
    flat = linear.solve_linear(x, y, 0.1)
    assert flat.converged
    assert flat.coef[3] == 0
    constant = linear.solve_linear(x, np.full(40, 2.0), 0.1)
    assert not constant.coef.any()
    assert constant.objective < 1e-25


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_published_method_comes_down_to_the_same_objective(norm):
    """Iteratively reweighted ridge regression (Ribeiro et al., 2025), from its idea."""
    from benchmarks.linear_models import reweighted

    x, y = samples(16, 60, 10)
    exact = linear.solve_linear(x, y, 0.1, norm, fit_intercept=False)
    value, _ = reweighted(x, y, 0.1, norm, exact.objective * (1 + 1e-6), 3.0)
    assert exact.objective * (1 - 1e-10) <= value <= exact.objective * (1 + 1e-4)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_accelerated_gradients_come_down_to_the_same_objective(norm):
    """The method of Ribeiro et al. (2025) for classification, from its idea."""
    from benchmarks.linear_models import accelerated, onto_epigraph

    x, y = samples(17, 60, 6, classes=True)
    exact = linear.solve_linear(x, y, 0.1, norm, "logistic", fit_intercept=False)
    value, _ = accelerated(x, y, 0.1, norm, exact.objective * (1 + 1e-8), 3.0)
    assert exact.objective * (1 - 1e-10) <= value <= exact.objective * (1 + 1e-6)
    rng = np.random.default_rng(0)
    for t in (-3.0, -0.2, 0.5, 9.0):
        theta, bound = rng.normal(size=3), cvxpy.Variable()
        near = cvxpy.Variable(3)
        distance = cvxpy.sum_squares(near - theta) + cvxpy.square(bound - t)
        cvxpy.Problem(cvxpy.Minimize(distance), [cvxpy.norm(near, DUAL[norm]) <= bound]).solve(
            solver="CLARABEL"
        )
        found, size = onto_epigraph(theta, t, norm)
        np.testing.assert_allclose(
            np.append(found, size), np.append(near.value, bound.value), atol=1e-5
        )
