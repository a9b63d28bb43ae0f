"""The robust interpolant against cvxpy on dense grids, and against its own constraints."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from advlab.core.errors import AdvlabError
from advlab.papers.convergence import theory
from advlab.papers.convergence.theory import quadratic_program
from advlab.papers.convergence.theory.caps import ascend, project, sample
from advlab.papers.convergence.theory.interpolant import _worst
from advlab.papers.convergence.theory.quadratic_program import least_error

DELTA, EPS = 0.15, 0.3
X = np.array([[1.0, 0.0, 0.2], [0.2, 1.0, 0.3], [-0.8, 0.3, 0.6], [0.1, -0.7, 0.8]])
X /= np.linalg.norm(X, axis=1)[:, None]
Y = np.array([1.0, -1.0, 1.0, -1.0])


def fit(name: str, **settings) -> theory.RobustFit:
    settings = {"rng": np.random.default_rng(0)} | settings
    return theory.robust_interpolant(name, X, Y, DELTA, EPS, **settings)


def grid(rings: int = 12, around: int = 40) -> np.ndarray:
    """Dense points of each cap in polar coordinates, shape (n, points, 3)."""
    caps = []
    for x in X:
        frame = np.linalg.svd(x[None])[2][1:]
        r = 2 * np.arcsin(DELTA / 2) * np.linspace(0, 1, rings)[1:, None]
        phi = np.linspace(0, 2 * np.pi, around, endpoint=False)
        ring = np.cos(phi)[:, None] * frame[0] + np.sin(phi)[:, None] * frame[1]
        inside = np.cos(r)[..., None] * x + np.sin(r)[..., None] * ring
        caps.append(np.concatenate([x[None], inside.reshape(-1, 3)]))
    return np.array(caps)


def dense_norm(name: str, eps: float) -> float:
    """The same program on the grid, written for cvxpy in function values through a Cholesky."""
    points = grid(5, 12).reshape(-1, 3)
    y = np.repeat(Y, len(points) // len(Y))
    gram = theory.gram(name, points)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0))
    b = cp.Variable(len(points))
    problem = cp.Problem(cp.Minimize(cp.norm(b)), [cp.abs(root @ b - y) <= eps])
    problem.solve(solver=cp.SCS, eps_abs=1e-7, eps_rel=1e-7, max_iters=200_000)
    return float(problem.value)


@pytest.mark.parametrize("name", ["sin_cos", "quadratic_relu", "relu"])
def test_the_norm_is_the_least_one_of_a_dense_grid(name):
    found = fit(name)
    assert found.status == "fits"
    tight = 0.01 * EPS
    assert found.norm >= dense_norm(name, EPS) * (1 - 1e-3)
    # The grid misses a little of each cap, and the interpolant does not.
    assert found.norm <= dense_norm(name, EPS - 2 * tight) * (1 + 1e-3)


@pytest.mark.parametrize("name", ["sin_cos", "quadratic_relu"])
def test_it_fits_the_caps_and_reports_its_error_and_margin(name):
    found = fit(name)
    values = np.array([found.expansion(cap) for cap in grid(20, 60)]) * Y[:, None]
    assert np.abs(values - 1).max() <= found.sup_error + 1e-9
    assert np.abs(values - 1).max() == pytest.approx(found.sup_error, abs=2e-3)
    assert values.min() == pytest.approx(found.margin, abs=2e-3)
    assert found.sup_error <= EPS
    assert found.margin >= 1 - EPS
    assert found.norm == pytest.approx(found.expansion.norm)


def test_the_gradient_is_one():
    g = fit("sin_cos").expansion
    x, h = sample(X, DELTA, 3, np.random.default_rng(1))[0], 1e-6
    for direction in np.eye(3):
        along = direction - (x @ direction)[:, None] * x
        ends = [x + sign * h * along for sign in (1, -1)]
        values = [g(end / np.linalg.norm(end, axis=1)[:, None]) for end in ends]
        slope = (g.gradient(x) * along).sum(1)
        assert (values[0] - values[1]) / (2 * h) == pytest.approx(slope, abs=1e-6)


def test_more_demands_never_lower_the_norm():
    norms = [
        theory.robust_interpolant("sin_cos", X, Y, delta, eps, rng=np.random.default_rng(0)).norm
        for delta, eps in ((0.1, 0.5), (0.15, 0.5), (0.15, 0.3), (0.15, 0.1))
    ]
    assert norms == sorted(norms)


def test_too_few_rounds_are_said():
    found = fit("sin_cos", samples=2, rounds=1)
    assert found.status == "rounds used up"
    assert found.sup_error > EPS


def test_what_the_rkhs_cannot_hold_is_infeasible():
    """Erf holds odd functions only: equal labels at antipodes have no fit."""
    x = np.concatenate([X[:2], -X[:2]])
    found = theory.robust_interpolant(
        "erf", x, [1, -1, 1, -1], DELTA, EPS, rng=np.random.default_rng(0)
    )
    assert found.status == "infeasible"
    assert found.norm == np.inf
    with pytest.raises(AdvlabError, match="status of the fit"):
        theory.random_features(found.expansion, np.eye(3))


def test_a_single_point_has_the_known_answer():
    """min ||g|| with |g(x) - 1| <= eps is (1 - eps)/sqrt(K(x, x))."""
    for eps in (0.0, 0.25):
        found = theory.least_norm([[2.0]], [1.0], eps)
        assert found.norm == pytest.approx((1 - eps) / np.sqrt(2), abs=1e-8)
        assert found.coefficients == pytest.approx([(1 - eps) / 2], abs=1e-8)


def test_one_point_with_two_labels_is_infeasible_below_one():
    gram = np.ones((2, 2))
    assert theory.least_norm(gram, [1.0, -1.0], 0.9).status == "infeasible"
    assert theory.least_norm(gram, [1.0, -1.0], 1.1).norm == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("size", [0.3, 4.0])
def test_both_sides_of_the_error_are_searched(size):
    """Functions that fall short of their labels, and functions that overshoot them."""
    g = theory.Expansion(theory.get_activation("sin_cos"), X, size * Y)
    found = _worst(g, X, Y, DELTA, sample(X, DELTA, 10, np.random.default_rng(0)))
    values = np.array([g(cap) for cap in grid()]) * Y[:, None]
    assert found.errors[0] == pytest.approx((1 - values).max(1), abs=2e-3)
    assert found.errors[1] == pytest.approx((values - 1).max(1), abs=2e-3)
    ends = np.array([g(side) for side in found.points]) * Y
    assert ends == pytest.approx(np.array([1 - found.errors[0], 1 + found.errors[1]]))


def test_least_errors_are_those_of_a_linear_program():
    """What decides where the solver breaks down on an infeasible program."""
    rng = np.random.default_rng(0)
    F, y = rng.normal(size=(9, 4)), rng.choice([-1.0, 1.0], 9)
    rows = np.column_stack([np.vstack([F, -F]), -np.ones(18)])
    best = linprog(np.r_[np.zeros(4), 1.0], A_ub=rows, b_ub=np.r_[y, -y], bounds=(None, None))
    assert least_error(F, y) == pytest.approx(best.fun, abs=1e-7)
    assert theory.least_norm(F @ F.T, y, best.fun * 0.99).status == "infeasible"
    assert theory.least_norm(F @ F.T, y, best.fun * 1.01).status == "solved"


def test_a_program_that_the_solver_gives_up_is_still_told_apart(monkeypatch):
    class GaveUp:
        status, x, z = "NumericalError", [0.0], []

    solve = quadratic_program._solve

    def broken(curvature, *rest):
        return GaveUp() if curvature.any() else solve(curvature, *rest)

    monkeypatch.setattr(quadratic_program, "_solve", broken)
    gram = np.ones((2, 2))
    assert theory.least_norm(gram, [1.0, -1.0], 0.9).status == "infeasible"
    assert theory.least_norm(gram, [1.0, -1.0], 1.1).status == "unsolved"


def test_ridge_is_a_ridge():
    found = theory.ridge_interpolant("sin_cos", X, Y, DELTA, 1e-2, rng=np.random.default_rng(0))
    g = found.expansion
    # Stationarity of |G a - y|^2 + lam a'Ga: the residual is lam a.
    y = np.repeat(Y, len(g.centres) // len(Y))
    assert y - g(g.centres) == pytest.approx(1e-2 * g.coefficients, abs=1e-8)
    values = np.array([g(cap) for cap in grid()]) * Y[:, None]
    assert np.abs(values - 1).max() == pytest.approx(found.sup_error, abs=5e-3)
    assert found.status == "ridge"


def test_caps_that_meet_are_refused_with_the_pair():
    near = np.array([[1.0, 0.0, 0.0], [np.cos(0.25), np.sin(0.25), 0.0], [0.0, 0.0, 1.0]])
    radius = 2 * np.sin(0.25 / 4)
    assert theory.overlapping_caps(near, [1, -1, 1], radius).pairs == [(0, 1)]
    assert theory.overlapping_caps(near, [1, -1, 1], 0.99 * radius).pairs == []
    assert theory.overlapping_caps(near, [1, 1, 1], 1.0) == ([], np.inf)
    slack = theory.overlapping_caps(near, [1, -1, 1], 0.1).slack
    assert slack == pytest.approx(0.25 - 4 * np.arcsin(0.05))
    with pytest.raises(AdvlabError, match="points 0 and 1; slack -"):
        theory.robust_interpolant(
            "sin_cos", near, [1, -1, 1], 0.13, EPS, rng=np.random.default_rng(0)
        )
    loose = theory.ridge_interpolant(
        "sin_cos", near, [1, -1, 1], 0.13, 1e-3, rng=np.random.default_rng(0)
    )
    assert loose.sup_error >= 1 - 1e-6


def test_projection_and_samples_stay_in_the_cap():
    rng = np.random.default_rng(2)
    z = sample(X, DELTA, 40, rng)
    assert np.linalg.norm(z - X[:, None], axis=-1).max() <= DELTA + 1e-12
    assert np.linalg.norm(z, axis=-1) == pytest.approx(np.ones(z.shape[:2]))
    far = rng.normal(size=(4, 200, 3))
    near = project(far, X[:, None], DELTA)
    assert np.linalg.norm(near - X[:, None], axis=-1).max() <= DELTA + 1e-12
    # The nearest of a dense sample of the cap is never nearer.
    cloud = sample(X, DELTA, 4000, rng)
    unit = far / np.linalg.norm(far, axis=-1, keepdims=True)
    best = np.linalg.norm(unit[:, :, None] - cloud[:, None], axis=-1).min(-1)
    own = np.linalg.norm(unit - near, axis=-1)
    assert (own <= best + 1e-12).all()
    assert (best - own).max() < 0.02


def test_ascent_finds_the_rim_for_a_linear_function():
    w = np.array([0.3, -0.2, 0.9])

    def linear(z):
        return z @ w, np.broadcast_to(w, z.shape)

    start = sample(X, DELTA, 4, np.random.default_rng(0))
    values = ascend(linear, start, X, DELTA)[1].max(1)
    assert values == pytest.approx(project(w * np.ones((4, 3)), X, DELTA) @ w, abs=1e-7)
