"""Theorem 6.1 by brute force: every labelling, the constant by a general solver, bad input."""

from dataclasses import replace
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize, root_scalar

from advlab.core.errors import AdvlabError
from advlab.papers.convergence.theory import capacity

DELTA = 0.7
SMALL = [(2, 1), (2, 2), (2, 3), (4, 2), (4, 3), (3, 4), (6, 2), (2, 8), (4, 5), (7, 3)]


def safe(d: int, share: float = 0.95) -> float:
    """An eps at which every labelling works."""
    return share * DELTA * min(1, 2 / np.sqrt(d))


def by_hand(balls: capacity.Balls, labels: np.ndarray, n: int) -> bool:
    """The three conditions again, point by point."""
    centres, kinds = balls.centres, balls.signs
    apart = all(
        np.linalg.norm(centres[i] - centres[j]) > 2 * DELTA for i in range(n) for j in range(i)
    )
    inside = np.linalg.norm(balls.points[:, None] - centres, axis=2) <= DELTA
    own = (inside & (kinds == labels[:, None])).any(axis=1)
    other = (inside & (kinds != labels[:, None])).any(axis=1)
    return apart and len(centres) == n and bool(own.all()) and not other.any()


@pytest.mark.parametrize(("n", "d"), SMALL)
def test_every_labelling_is_realised(n, d):
    points = n // 2 * d
    assert points <= 12
    for labels in product((-1.0, 1.0), repeat=points):
        balls = capacity.shatter(n, d, DELTA, safe(d), labels)
        assert balls.holds
        assert np.array_equal(balls.classify(balls.points), labels)


@pytest.mark.parametrize(("n", "d"), [(2, 3), (4, 2), (5, 2), (3, 4), (4, 3)])
def test_the_checks_agree_with_checks_by_hand(n, d):
    for labels in product((-1.0, 1.0), repeat=n // 2 * d):
        balls = capacity.shatter(n, d, DELTA, safe(d), labels)
        assert by_hand(balls, np.array(labels), n)
        assert np.array_equal(balls.points.reshape(-1, d), capacity.cluster_points(
            n, d, DELTA, safe(d)).reshape(-1, d))  # fmt: skip


@pytest.mark.parametrize(("n", "d"), [(20, 50), (10, 200)])
def test_random_labellings_in_many_dimensions(n, d):
    rng = np.random.default_rng(0)
    for _ in range(50):
        labels = rng.choice([-1.0, 1.0], size=n // 2 * d)
        balls = capacity.shatter(n, d, DELTA, safe(d), labels)
        assert balls.holds
        assert by_hand(balls, labels, n)
        assert np.array_equal(balls.classify(balls.points), labels)


def test_the_checks_can_fail():
    balls = capacity.shatter(4, 3, DELTA, safe(3), [1, -1, 1, -1, -1, 1])
    moved = balls.centres + np.r_[0.0, 0.6, 0.0] * (np.arange(4) == 0)[:, None]
    for wrong in (
        replace(balls, delta=balls.farthest_own * 0.99),
        replace(balls, delta=balls.least_distance / 2),
        replace(balls, signs=-balls.signs),
        replace(balls, centres=moved),
    ):
        assert not wrong.holds


def test_the_nearest_centre_is_constant_on_every_ball():
    rng = np.random.default_rng(1)
    balls = capacity.shatter(5, 3, DELTA, safe(3, 0.999), [1, -1, 1, -1, -1, 1])
    way = rng.standard_normal((5, 2000, 3))
    way *= DELTA / np.linalg.norm(way, axis=-1, keepdims=True)
    assert (balls.classify(balls.centres[:, None] + way) == balls.signs[:, None]).all()


def least_radius_on_a_side(d: int, k: int) -> float:
    """min delta with k of the points e_j within delta of a centre that lies delta from the
    hyperplane yhat.z = 0, as a cone program; the worse of the two sides."""
    y = np.where(np.arange(d) < k, 1.0, -1.0) / np.sqrt(d)
    least = []
    for sign in (1, -1):
        z, delta = cp.Variable(d), cp.Variable()
        rules = [cp.norm(z - one) <= delta for one in np.eye(d)[sign * y > 0]]
        program = cp.Problem(cp.Minimize(delta), [*rules, sign * y @ z >= delta])
        least.append(program.solve(solver=cp.CLARABEL))
    return max(least)


@pytest.mark.parametrize(
    ("d", "k"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (5, 4), (6, 3), (8, 3), (30, 11)]
)
def test_gamma_is_the_least_radius_that_a_general_solver_finds(d, k):
    assert capacity.gamma(d, k) == pytest.approx(least_radius_on_a_side(d, k), abs=1e-6)


def least_radius(d: int, k: int) -> float:
    """min delta, over two free centres, with k points e_j within delta of one, the rest of the
    other, and the centres 2 delta apart."""
    rng = np.random.default_rng(d * 10 + k)

    def within(v):
        centres = np.where(np.arange(d)[:, None] < k, v[:d], v[d:-1])
        return v[-1] ** 2 - ((np.eye(d) - centres) ** 2).sum(axis=1)

    def apart(v):
        return ((v[:d] - v[d:-1]) ** 2).sum() - 4 * v[-1] ** 2

    rules = [{"type": "ineq", "fun": within}, {"type": "ineq", "fun": apart}]
    best, box = np.inf, [(None, None)] * (2 * d) + [(0.0, 10.0)]
    for _ in range(6):
        start = np.r_[rng.standard_normal(2 * d), 3.0]
        solved = minimize(lambda v: v[-1], start, method="SLSQP", constraints=rules, bounds=box,
                          options={"maxiter": 1000, "ftol": 1e-13})  # fmt: skip
        if within(solved.x).min() > -1e-9 and apart(solved.x) > -1e-9:
            best = min(best, solved.x[-1])
    return best


def along_the_centroids(d: int, k: int) -> float:
    """The same by hand: the best centres lie on the line of the two centroids, whose distance is
    sqrt(1/k + 1/(d-k)), each as far out as its points allow."""

    def gap(delta):
        out = [np.sqrt(max(delta**2 - 1 + 1 / one, 0)) for one in (k, d - k)]
        return sum(out) + np.sqrt(1 / k + 1 / (d - k)) - 2 * delta

    least = np.sqrt(1 - 1 / max(k, d - k))
    return least if gap(least) >= 0 else root_scalar(gap, bracket=(least, 10.0), xtol=1e-12).root


@pytest.mark.parametrize(("d", "k"), [(3, 2), (4, 2), (5, 2), (5, 4), (6, 3), (8, 3)])
def test_two_free_balls_need_gamma_for_equal_parts_and_less_for_unequal_ones(d, k):
    least = along_the_centroids(d, k)
    assert least_radius(d, k) == pytest.approx(least, abs=1e-6)
    if 2 * k == d:
        assert capacity.gamma(d, k) == pytest.approx(least)
    else:
        assert 1.01 * least < capacity.gamma(d, k) < 1.25 * least


@pytest.mark.parametrize(("d", "k"), [(3, 1), (3, 2), (4, 2), (5, 4), (8, 3), (50, 20), (200, 199)])
def test_the_construction_ends_at_delta_over_gamma(d, k):
    labels = np.where(np.arange(d) < k, 1.0, -1.0)
    edge = DELTA / capacity.gamma(d, k)
    most = max(k, d - k)
    assert capacity.shatter(2, d, DELTA, 0.999 * edge, labels).holds
    low, high = capacity.tau_interval(d, most, DELTA, 0.999 * edge)
    assert low < high
    with pytest.raises(AdvlabError, match=r"gamma_k = "):
        capacity.shatter(2, d, DELTA, 1.001 * edge, labels)
    low, high = capacity.tau_interval(d, most, DELTA, 1.001 * edge)
    assert not low < high


def test_gamma_in_all_cases():
    assert capacity.gamma(4, 0) == capacity.gamma(4, 4) == capacity.gamma(1, 1) == 1
    for d in range(3, 40):
        values = [capacity.gamma(d, k) for k in range(1, d)]
        assert max(values) == pytest.approx(np.sqrt(d) / 2 * (1 - 1 / (d - 1) + 1 / d))
        assert max(values) < np.sqrt(d) / 2
        assert values == values[::-1]


@pytest.mark.parametrize("eps", [0.01, 0.5, 1.0, 2.0, 3.0, 10.0, 100.0])
def test_two_points_in_the_plane_split_at_every_distance(eps):
    """Where the formula would say delta > 0.354 eps: the exception d = 2, k = 1."""
    assert capacity.gamma(2, 1) == 0
    assert capacity.shatter(2, 2, 1.0, eps, [1, -1]).holds


def test_at_the_ends_of_the_interval_balls_touch_or_points_reach_the_rim():
    d, k, eps = 5, 3, safe(5)
    y = np.where(np.arange(d) < k, 1.0, -1.0) / np.sqrt(d)
    low, high = capacity.tau_interval(d, k, DELTA, eps)
    base = eps * (np.arange(d) < k) / k
    assert (base + low * y) @ y == pytest.approx(DELTA)
    assert np.linalg.norm(eps * np.eye(d)[0] - base - high * y) == pytest.approx(DELTA)


BAD = {
    "one ball": (lambda: capacity.shatter(1, 2, 1.0, 0.5, []), "n must be"),
    "no dimension": (lambda: capacity.cluster_points(2, 0, 1.0, 0.5), "d must be"),
    "no radius": (lambda: capacity.cluster_points(2, 2, 0.0, 0.5), "delta must be positive"),
    "no eps": (lambda: capacity.cluster_points(2, 2, 1.0, 0.0), "eps must be positive"),
    "NaN": (lambda: capacity.cluster_points(2, 2, 1.0, float("nan")), "eps must be finite"),
    "too few labels": (lambda: capacity.shatter(4, 2, 1.0, 0.5, [1, -1]), "each of 4 points"),
    "labels of 0, 1": (lambda: capacity.shatter(2, 2, 1.0, 0.5, [0, 1]), "-1 and \\+1"),
    "too large a k": (lambda: capacity.gamma(3, 4), "some of d = 3"),
    "split too wide": (lambda: capacity.shatter(2, 3, 1.0, 1.5, [1, 1, -1]), "2 to 1"),
    "one label too wide": (lambda: capacity.shatter(2, 3, 1.0, 1.3, [1, 1, 1]), "one label"),
    "clusters too wide": (lambda: capacity.shatter(4, 2, 1.0, 1.3, [1, -1, 1, -1]), "6 delta"),
    "x of another size": (
        lambda: capacity.shatter(2, 2, 1.0, 0.5, [1, -1]).classify([1.0, 2.0, 3.0]),
        "length 2",
    ),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, says):
    with pytest.raises(AdvlabError, match=says):
        call()
