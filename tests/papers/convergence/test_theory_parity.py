"""Which parities an RKHS holds: from Hermite coefficients, from ranks, and from what can be fit."""

import math

import numpy as np
import pytest

from advlab.papers.convergence import theory

INF = np.inf
EXPECTED = {
    "identity": (None, 1),
    "relu": (INF, 1),
    "leaky_relu": (INF, 1),
    "smoothed_leaky_relu": (INF, 1),
    "sigmoid": (None, INF),
    "quadratic_relu": (2, INF),
    "erf": (None, INF),
    "gaussian_relu": (INF, 1),
    "gelu": (INF, 1),
    "sin": (None, INF),
    "sin_cos": (INF, INF),
}


@pytest.mark.parametrize("name", theory.ACTIVATIONS)
def test_parity_of_each_activation(name):
    found = theory.parity(name)
    assert (found.even, found.odd) == EXPECTED[name]
    assert found.universal is (name == "sin_cos")


def test_parity_of_a_function():
    """A shifted activation has no parity: ReLU with a bias is universal."""
    assert theory.parity(lambda z: (z > 0.5) * 1.0, breaks=[0.5]).universal
    cubic = theory.parity(lambda z: z**2)
    assert (cubic.even, cubic.odd) == (None, 3)


@pytest.mark.parametrize(
    "slope",
    [
        lambda z: 0.3 * (np.cos(0.3 * z) - np.sin(0.3 * z)),
        lambda z: 0.5 * np.cos(0.5 * z + 0.8),
        lambda z: 0.5 * np.exp(z / 2),
        lambda z: np.cos(1e-3 * z) - np.sin(1e-3 * z),
    ],
    ids=["sin(.3z)+cos(.3z)", "sin(.5z+.8)", "exp(z/2)", "sin(.001z)+cos(.001z)"],
)
def test_coefficients_that_fade_leave_universality_unknown(slope):
    """All four are universal; 20 coefficients in double precision cannot tell, and say so."""
    found = theory.parity(slope)
    assert found.universal is None
    assert any(end is not None and math.isnan(end) for end in (found.even, found.odd))


def test_one_parity_that_ends_is_enough_to_deny_universality():
    """cos(.3 z) has odd degrees only: the even ones are none, whatever the odd ones do."""
    found = theory.parity(lambda z: np.cos(0.3 * z))
    assert found.even is None
    assert found.odd is not None
    assert math.isnan(found.odd)
    assert found.universal is False


@pytest.mark.parametrize("degree", [20, 21, 31])
def test_the_last_degree_computed_does_not_matter(degree):
    found = theory.parity("relu", degree)
    assert (found.even, found.odd) == (INF, 1)
    found = theory.parity("quadratic_relu", degree)
    assert (found.even, found.odd) == (2, INF)


@pytest.mark.parametrize("d", [3, 4, 5])
def test_ranks(d):
    x = np.random.default_rng(d).normal(size=(60, d))
    x /= np.linalg.norm(x, axis=1)[:, None]
    assert theory.parity_ranks("quadratic_relu", x) == (d * (d + 1) // 2, 60, 60)
    assert theory.parity_ranks("relu", x) == (60, d, 60)
    assert theory.parity_ranks("identity", x) == (0, d, 60)
    assert theory.parity_ranks("erf", x).even == 0


@pytest.mark.parametrize(
    ("name", "label", "raw"),
    [
        ("quadratic_relu", 1, False),
        ("quadratic_relu", -1, True),
        ("erf", 1, False),
        ("erf", -1, True),
        ("relu", 1, True),
        ("relu", -1, False),
        ("sin_cos", 1, True),
        ("sin_cos", -1, True),
    ],
)
def test_antipodes_can_be_fit_where_the_parity_allows_and_always_when_lifted(name, label, raw):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(10, 3))
    half /= np.linalg.norm(half, axis=1)[:, None]
    # Random labels, so that no linear or quadratic form has them.
    sign = np.array([1, 1, -1, 1, -1, -1, 1, -1, 1, -1])
    x, y = np.concatenate([half, -half]), np.r_[sign, label * sign].astype(float)

    def fits(points: np.ndarray) -> bool:
        gram = theory.gram(name, points)
        return np.allclose(gram @ np.linalg.lstsq(gram, y, rcond=1e-12)[0], y, atol=1e-4)

    assert fits(x) == raw
    assert fits(theory.lifted(x))


def test_lifted_points_lie_on_the_sphere_and_have_no_antipodes():
    x = np.eye(3)
    up = theory.lifted(np.concatenate([x, -x]))
    assert np.linalg.norm(up, axis=1) == pytest.approx(np.ones(6))
    assert (up @ up.T).min() == pytest.approx(0.0)
