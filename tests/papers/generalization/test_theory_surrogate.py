"""The surrogate risk, its potential and their gradients against quadrature and samples."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm as gauss

from advlab import linear
from advlab.core.errors import AdvlabError
from advlab.papers.generalization import theory
from advlab.papers.generalization.theory import gaussian_integrals as moments


def expectation(function, scale: float) -> float:
    """E function(|Z|) by adaptive quadrature, with break points where the kink at 0 is felt."""
    breaks = sorted({0.0, 12.0, *np.clip(np.array([0.1, 1.0, 10.0, 100.0]) * scale, 0.0, 12.0)})
    pieces = [
        quad(
            lambda z: 2 * gauss.pdf(z) * function(z),
            low,
            high,
            epsabs=1e-14,
            epsrel=1e-13,
            limit=200,
        )
        for low, high in pairwise(breaks)
    ]
    return sum(value for value, _ in pieces)


@pytest.mark.parametrize("c", [1e-12, 1e-6, 1e-3, 0.1, 1.0, 7.0, 49.9, 50.1, 300.0, 1e6])
def test_moments(c):
    root = expectation(lambda z: np.sqrt(z * z + c * c), c)
    scaled = expectation(lambda z: c * z * z / np.sqrt(z * z + c * c), c)
    squared = expectation(lambda z: z * z / (z * z + c * c), c)
    assert moments.root(np.array(c)) == pytest.approx(root, rel=1e-10)
    assert moments.scaled_shrunk(np.array(c)) == pytest.approx(scaled, rel=1e-9)
    assert moments.squared_shrunk(np.array(c)) == pytest.approx(squared, rel=1e-9)


def test_moments_at_the_ends():
    ends = np.array([0.0, np.inf])
    np.testing.assert_array_equal(moments.scaled_shrunk(ends), [0, 1])
    np.testing.assert_array_equal(moments.squared_shrunk(ends), [1, 0])
    assert moments.root(np.array(0.0)) == linear.C0


def setting(seed: int, d: int = 3):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d + 3, d))
    cov = root.T @ root / (d + 3)
    return {
        "theta": rng.normal(size=d),
        "theta0": rng.normal(size=d),
        "sigma2": rng.uniform(0.01, 2),
        "radius": rng.uniform(0.05, 3),
        "xi": 10 ** rng.uniform(-3, 1),
        "cov": cov,
    }


@pytest.mark.parametrize("convention", ["definition", "proof"])
@pytest.mark.parametrize("seed", range(8))
def test_risk_potential_and_integrals_against_quadrature(seed, convention):
    case = setting(seed)
    eps, xi = case["radius"], case["xi"] / (2 if convention == "definition" else 1)
    difference = case["theta"] - case["theta0"]
    s = np.sqrt(difference @ case["cov"] @ difference + case["sigma2"])
    a = np.linalg.norm(case["theta"])
    w = lambda z: np.sqrt((a * s * z) ** 2 + xi**2)  # noqa: E731
    scale = xi / (a * s)
    risk = expectation(lambda z: (s * z * (1 + eps * a * a / w(z))) ** 2, scale)
    potential = expectation(lambda z: (s * z) ** 2 + 2 * eps * w(z) + (eps * a) ** 2, scale)
    assert theory.surrogate_risk(**case, convention=convention) == pytest.approx(risk, rel=1e-9)
    assert theory.potential(**case, convention=convention) == pytest.approx(potential, rel=1e-9)
    del case["radius"]
    first = expectation(lambda z: (s * z) ** 2 / w(z), scale)
    second = expectation(lambda z: (a * s * z / w(z)) ** 2, scale)
    assert theory.j1(**case, convention=convention) == pytest.approx(first, rel=1e-9)
    assert theory.j2(**case, convention=convention) == pytest.approx(second, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_frozen_gradient_is_the_mean_step_of_the_algorithm(seed):
    """Samples: attack as the paper defines it, gradient by the chain rule with the attack fixed."""
    case = setting(seed)
    rng = np.random.default_rng(50 + seed)
    x = rng.multivariate_normal(np.zeros(3), case["cov"], size=400_000)
    y = x @ case["theta0"] + rng.normal(size=len(x)) * np.sqrt(case["sigma2"])
    slope = 2 * (x @ case["theta"] - y)[:, None] * case["theta"]
    size = np.sqrt((slope**2).sum(axis=1, keepdims=True) + case["xi"] ** 2)
    attacked = x + case["radius"] * slope / size
    steps = 2 * (attacked @ case["theta"] - y)[:, None] * attacked
    error = steps.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(steps.mean(axis=0) - theory.frozen_gradient(**case)) < 4 * error).all()
    losses = (attacked @ case["theta"] - y) ** 2
    assert abs(losses.mean() - theory.surrogate_risk(**case)) < 4 * losses.std() / np.sqrt(len(x))


def differences(function, theta, step=1e-5):
    moves = step * np.eye(len(theta))
    return (function(theta + moves) - function(theta - moves)) / (2 * step)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_has_the_square_of_the_radius(seed):
    """grad R~ by differences = frozen gradient + 2 radius^2 theta E[xi^2/w^2], not 2 radius."""
    case = setting(seed)
    theta = case.pop("theta")
    gradient = differences(lambda rows: theory.potential(rows, **case), theta)
    np.testing.assert_allclose(
        theory.potential_gradient(theta, **case), gradient, rtol=1e-7, atol=1e-7
    )
    gap = gradient - theory.frozen_gradient(theta, **case)
    expected = theory.gradient_gap(theta, **case)
    np.testing.assert_allclose(gap, expected, rtol=1e-4, atol=1e-7)
    assert not np.allclose(gap, expected / case["radius"], rtol=1e-2)


def test_at_xi_zero_everything_is_the_adversarial_risk():
    case = setting(2) | {"xi": 0.0}
    theta = case.pop("theta")
    exact = {key: case[key] for key in ("theta0", "sigma2", "cov")} | {"radii": case["radius"]}
    risk = linear.adversarial_risks(theta, **exact)
    assert theory.surrogate_risk(theta, **case) == pytest.approx(risk, rel=1e-14)
    assert theory.potential(theta, **case) == pytest.approx(risk, rel=1e-14)
    gradient = differences(lambda rows: linear.adversarial_risks(rows, **exact), theta)
    np.testing.assert_allclose(theory.frozen_gradient(theta, **case), gradient, rtol=1e-7)


def test_the_zero_model():
    case = {"theta": np.zeros(2), "theta0": np.array([3.0, 4.0]), "sigma2": 1.0, "radius": 2.0}
    assert theory.surrogate_risk(**case, xi=0.6) == pytest.approx(26)
    assert theory.potential(**case, xi=0.6) == pytest.approx(26 + 2 * 2 * 0.3)
    for xi in (0.0, 0.6):
        np.testing.assert_allclose(theory.frozen_gradient(**case, xi=xi), [-6, -8])


@given(seed=st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_the_attack_shrinks_and_the_root_grows(seed):
    case = setting(seed)
    exact = linear.adversarial_risks(
        case["theta"], case["theta0"], case["sigma2"], case["radius"], cov=case["cov"]
    )
    xis = case["xi"] * np.array([1e-9, 0.5, 1.0, 2.0])
    below = theory.surrogate_risk(**(case | {"xi": xis}))
    above = theory.potential(**(case | {"xi": xis}))
    assert (np.diff(below) <= 1e-12 * exact).all()
    assert (np.diff(above) >= -1e-12 * exact).all()
    assert below[0] == pytest.approx(exact, rel=1e-6)
    assert above[0] == pytest.approx(exact, rel=1e-6)
    assert below[0] <= exact * (1 + 1e-12)
    assert above[0] >= exact * (1 - 1e-12)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_the_potential_is_convex(seed):
    case = setting(seed)
    rng = np.random.default_rng(seed)
    ends = rng.normal(size=(2, 50, 3)) * 10 ** rng.uniform(-2, 1, size=(2, 50, 1))
    del case["theta"]
    left, right = (theory.potential(end, **case) for end in ends)
    middle = theory.potential(ends.mean(axis=0), **case)
    assert (middle <= (left + right) / 2 * (1 + 1e-12)).all()


def test_the_surrogate_risk_is_not_convex():
    """eps 1, xi_eff 0.5, sigma2 0.01, ||theta0|| 1: curvature -1.05 along theta0."""
    along = np.linspace(0.01, 1.5, 3000)
    step = along[1] - along[0]
    args = (np.array([1.0]), 0.01, 1.0, 0.5, "proof")
    curvature = np.diff(theory.surrogate_risk(along[:, None], *args), 2) / step**2
    assert curvature.min() == pytest.approx(-1.05, abs=0.02)
    assert (np.diff(theory.potential(along[:, None], *args), 2) > 0).all()


def test_the_two_conventions_differ_by_a_factor_two():
    assert theory.xi_eff(0.3) == 0.15
    assert theory.xi_eff(0.3, "proof") == 0.3
    case = setting(0)
    doubled = case | {"xi": 2 * case["xi"]}
    assert theory.surrogate_risk(**doubled) == theory.surrogate_risk(**case, convention="proof")


@pytest.mark.parametrize("change", [{"xi": -1.0}, {"xi": float("nan")}, {"convention": "paper"}])
def test_bad_smoothing_is_refused(change):
    with pytest.raises(AdvlabError):
        theory.potential(**(setting(0) | change))
