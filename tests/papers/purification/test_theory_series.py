"""Taylor series against scipy."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from advlab.core.errors import AdvlabError
from advlab.papers.purification import theory

X = np.linspace(-2.5, 2.5, 41)
S = 0.8


def test_series_converge_to_scipy_s_functions():
    np.testing.assert_allclose(theory.density_series(X, S, 40), S * norm.pdf(X / S), atol=1e-12)
    np.testing.assert_allclose(theory.step_series(X, S, 40), ndtr(X / S), atol=1e-12)
    smoothed = X * ndtr(X / S) + S * norm.pdf(X / S)
    np.testing.assert_allclose(theory.relu_series(X, S, 40), smoothed, atol=1e-12)


def test_series_are_the_expectations_of_claim_g6():
    """By quadrature over rho, with the sign and the 2^-i that the paper lost."""
    for x in (-0.7, 0.0, 0.4, 1.1):
        density = lambda rho: norm.pdf(rho, scale=S)  # noqa: E731
        mass = quad(lambda rho, f=density: rho * f(rho), -x, 9 * S)[0]
        assert theory.density_series(x, S, 30) == pytest.approx(mass, abs=1e-10)
        assert theory.step_series(x, S, 30) == pytest.approx(quad(density, -x, 9 * S)[0], abs=1e-10)


@pytest.mark.parametrize("terms", [1, 2, 3, 6])
def test_the_first_term_left_out_bounds_the_error(terms):
    v = np.abs(X / S)
    left = np.abs(theory.density_coefficients(terms + 1)[-1]) * v ** (2 * terms)
    error = np.abs(theory.density_series(X, S, terms) / S - norm.pdf(v))
    assert (error <= left + 1e-15).all()
    assert error.max() > 0.1 * left.max()
    left = np.abs(theory.step_coefficients(terms + 1)[-1]) * v ** (2 * terms + 1)
    assert (np.abs(theory.step_series(X, S, terms) - ndtr(X / S)) <= left + 1e-15).all()


def test_coefficients_by_hand():
    root = np.sqrt(2 * np.pi)
    np.testing.assert_allclose(theory.density_coefficients(3) * root, [1, -1 / 2, 1 / 8])
    np.testing.assert_allclose(theory.step_coefficients(3) * root, [1, -1 / 6, 1 / 40])


def test_refusals():
    with pytest.raises(AdvlabError, match="terms"):
        theory.step_series(0.0, 1.0, 0)
    with pytest.raises(AdvlabError, match="s must be positive"):
        theory.step_series(0.0, 0.0, 3)
