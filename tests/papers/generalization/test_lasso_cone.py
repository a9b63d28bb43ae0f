"""The cone of Theorem 9 for both attacks and Lemma 4, against finite differences and solvers."""

import numpy as np
import pytest

from advlab import linear
from advlab.papers.generalization import theory
from advlab.papers.generalization.theory.lasso_cone import mean_gradient, training_risk
from advlab.threats import Ball


def samples(seed: int, n: int = 120, d: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    theta0 = np.r_[np.ones(4), np.zeros(d - 4)]
    x = rng.normal(size=(n, d))
    return x, x @ theta0 + rng.normal(size=n), theta0


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_gradient_is_that_of_the_training_risk(norm):
    x, y, _ = samples(0, d=5)
    theta = np.array([0.7, -0.3, 0.2, 0.9, -0.5])
    found = mean_gradient(theta, x, y, 0.3, norm)
    step = 1e-6 * np.eye(5)
    slopes = [
        (training_risk(theta + e, x, y, 0.3, norm) - training_risk(theta - e, x, y, 0.3, norm))
        / 2e-6
        for e in step
    ]
    assert found == pytest.approx(slopes, rel=1e-5)


@pytest.mark.parametrize(("norm", "eps"), [("l2", 0.3), ("linf", 0.1)])
@pytest.mark.parametrize("multiple", [0.0, 1.1, 2.0])
def test_exact_minimisers_lie_in_the_cone(norm, eps, multiple):
    x, y, theta0 = samples(1)
    star = linear.optimal(theta0, 1.0, Ball(norm, eps)).theta
    k = theory.cone(0 * star, star, x, y, eps, 0.0, norm).noise
    found = linear.solve_linear(x, y, eps, norm, l1=multiple * k, fit_intercept=False).coef
    cone = theory.cone(found, star, x, y, eps, multiple * k, norm)
    assert cone.ratio <= cone.bound
    if norm == "l2":
        assert (cone.bound < np.inf) == (multiple > 1)


def test_a_linf_attack_is_a_penalty_of_its_own():
    x, y, theta0 = samples(2, n=400)
    star = linear.optimal(theta0, 1.0, Ball("linf", 0.1)).theta
    size = np.abs(x @ star - y) + 0.1 * np.abs(star).sum()
    gradient = mean_gradient(star, x, y, 0.1, "linf")
    found = theory.cone(0 * star, star, x, y, 0.1, 0.5, "linf")
    kink = 0.2 * size.mean()
    on, off = np.abs(gradient[:4]).max(), np.abs(gradient[4:]).max()
    assert found.bound == pytest.approx((0.5 + on) / (0.5 + kink - off))


def test_the_shortfall_is_that_of_lemma_4():
    x, y, theta0 = samples(3)
    star = linear.optimal(theta0, 1.0, Ball("l2", 0.3)).theta
    move = np.random.default_rng(1).normal(size=len(star))
    found = theory.curvature_shortfall([move, 0.1 * move], star, x, y, 0.3)
    for one, scale in zip(found, (1.0, 0.1), strict=True):
        d = scale * move
        rise = training_risk(star + d, x, y, 0.3, "l2") - training_risk(star, x, y, 0.3, "l2")
        tangent = d @ mean_gradient(star, x, y, 0.3, "l2")
        wanted = tangent + ((x @ d) ** 2).mean() - d @ d + linear.quadratic_growth(0.3) * d @ d
        assert one == pytest.approx((wanted - rise) / np.abs(d).sum())


def test_the_curvature_is_that_of_the_cone_and_of_the_hessian():
    """Far from kinks (no residual changes its sign) the loss is smooth: half of the Hessian."""
    x, y, theta0 = samples(4, d=5)
    star = linear.optimal(theta0, 1.0, Ball("l2", 0.3)).theta
    found = linear.solve_linear(x, y, 0.3, "l2", l1=0.1, fit_intercept=False).coef
    (one,) = theory.curvatures([found - star], star, x, y, 0.3)
    assert one == pytest.approx(theory.cone(found, star, x, y, 0.3, 0.1).curvature)
    unit, step = np.array([1.0, -2.0, 0.5, 0.0, 1.0]) / 2.5, 1e-6
    slopes = [mean_gradient(star + s * unit, x, y, 0.3, "l2") @ unit for s in (step, -step)]
    (flat,) = theory.curvatures([step * unit], star, x, y, 0.3)
    assert flat == pytest.approx((slopes[0] - slopes[1]) / (4 * step), rel=1e-2)


def test_mean_squares_in_the_cone_stay_below_the_bound_and_reach_the_corners():
    x, _, theta0 = samples(7)
    found, bound = theory.mean_squares(theta0, x, 3.0)
    rng = np.random.default_rng(0)
    away = x.T @ x / len(x) - np.eye(60)
    values = []
    for _ in range(2000):
        on, off = rng.normal(size=4) ** 3, rng.normal(size=56) ** 9
        move = np.r_[on / np.abs(on).sum(), 3 * rng.uniform() * off / np.abs(off).sum()]
        values.append(abs(((x @ move) ** 2).mean() - move @ move))
    assert max(values) <= bound
    corners = [
        abs((unit := np.eye(60)[i] + s * 3 * np.eye(60)[j]) @ away @ unit)
        for i in range(4) for j in range(4, 60) for s in (-1, 1)
    ]  # fmt: skip
    assert found == pytest.approx(max(corners))
    assert max(values) < found <= bound <= 16 * np.abs(away).max()
