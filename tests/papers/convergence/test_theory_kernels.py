"""Tangent kernels: closed forms against quadrature, samples, Hermite series and the networks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.special import ndtr

from advlab import models
from advlab.papers.convergence import theory

COSINES = np.array([-1, -0.999, -0.7, -0.2, 0, 1e-4, 0.3, 0.5, 0.9, 0.9999, 1])
CLOSED = theory.closed_forms()
SMOOTH = ["identity", "erf", "gaussian_relu", "gelu", "sin", "sin_cos"]
KINKED = sorted(set(CLOSED) - set(SMOOTH))


def test_the_names_with_closed_forms_are_those_of_the_contract():
    assert set(CLOSED) == {
        "identity", "relu", "leaky_relu", "quadratic_relu", "erf", "gaussian_relu", "gelu", "sin",
        "sin_cos",
    }  # fmt: skip


def sphere(n: int, d: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1)[:, None]


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_match_the_quadrature(name):
    assert theory.kernel(name, COSINES) == pytest.approx(
        theory.kernel_by_quadrature(name, COSINES), abs=1e-12
    )


@pytest.mark.parametrize("gamma", [0.3, 1.0])
def test_another_slope_of_leaky_relu(gamma):
    own = theory.ACTIVATIONS["leaky_relu"](gamma)
    assert theory.kernel(own, COSINES) == pytest.approx(
        theory.kernel_by_quadrature(own, COSINES), abs=1e-12
    )


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("c", [-0.8, 0.35])
def test_closed_forms_match_scipy(name, c):
    """A second quadrature, over the density of (u, v) itself."""
    slope, det = theory.get_activation(name).dphi, 1 - c**2

    def integrand(v, u):
        density = np.exp(-(u**2 - 2 * c * u * v + v**2) / (2 * det)) / (2 * np.pi * np.sqrt(det))
        return float(slope(np.array(u)) * slope(np.array(v)) * density)

    expected, _ = dblquad(integrand, -7, 7, -7, 7, epsabs=1e-7, epsrel=1e-7)
    assert theory.kernel(name, c) == pytest.approx(c * expected, abs=1e-6)


@pytest.mark.parametrize("name", KINKED)
def test_kinked_kernels_match_samples(name):
    z = np.random.default_rng(0).normal(size=(2, 400_000))
    slope = theory.get_activation(name).dphi
    for c in (-0.6, 0.1, 0.8, 1.0):
        sampled = c * slope(z[0]) * slope(c * z[0] + np.sqrt(1 - c**2) * z[1])
        error = 4 * sampled.std() / np.sqrt(z.shape[1])
        assert theory.kernel(name, c) == pytest.approx(sampled.mean(), abs=error)


@pytest.mark.parametrize("name", CLOSED)
def test_hermite_series_match(name):
    h = theory.hermite_coefficients(name, 80)
    series = theory.kernel_by_hermite(h, COSINES)
    # Jumps and bends leave algebraic tails, which are largest at c = +-1.
    tolerance = {"relu": 2e-2, "leaky_relu": 2e-2, "quadratic_relu": 3e-4}.get(name, 1e-12)
    assert series == pytest.approx(theory.kernel(name, COSINES), abs=tolerance)
    # h_0 = E sigma' and, at c = 1, Parseval: sum h_k^2 <= E sigma'^2.
    curve = theory.get_activation(name).dphi
    mean = quad(
        lambda z: curve(np.array(z)) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), -12, 12, points=[0]
    )
    assert h[0] == pytest.approx(mean[0], abs=1e-9)
    assert (h**2).sum() <= theory.kernel(name, 1.0) + 1e-12


def test_a_function_with_breaks_is_as_good_as_a_name():
    def step(z):
        return (z > 0.7) * 1.0

    # E[1(u > b) 1(v > b)] by one integral over u.
    for c in (-0.9, 0.2, 0.99):
        spread = np.sqrt(1 - c**2)
        expected, _ = quad(
            lambda u, c=c, s=spread: (
                ndtr((c * u - 0.7) / s) * np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
            ),
            0.7,
            12,
            epsabs=1e-13,
        )
        found = theory.kernel_by_quadrature(step, c, breaks=[0.7])
        assert found == pytest.approx(c * expected, abs=1e-12)
    assert theory.kernel_by_quadrature(np.cos, 0.4) == pytest.approx(
        theory.kernel("sin", 0.4), abs=1e-14
    )


@pytest.mark.parametrize("name", CLOSED)
def test_kernel_slopes_are_derivatives(name):
    c, h = np.linspace(-0.95, 0.95, 9), 1e-6
    central = (theory.kernel(name, c + h) - theory.kernel(name, c - h)) / (2 * h)
    assert theory.kernel_slope(name, c) == pytest.approx(central, abs=1e-8)
    assert np.isfinite(theory.kernel_slope(name, [-1.0, 1.0])).all()


@given(
    st.sampled_from(CLOSED), st.integers(2, 6), st.integers(1, 25), st.integers(0, 2**32 - 1)
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_gram_matrices_are_semi_definite(name, d, n, seed):
    x = sphere(n, d, seed)
    both = np.concatenate([x, -x[: n // 2], x[:1]])
    values = np.linalg.eigvalsh(theory.gram(name, both))
    assert values[0] >= -1e-10 * values[-1]


@pytest.mark.parametrize("name", sorted(set(theory.ACTIVATIONS) & set(models.SHAPES)))
def test_shapes_are_those_of_the_networks(name):
    z = torch.linspace(-4, 4, 401, dtype=torch.float64)
    own, other = theory.get_activation(name), models.SHAPES[name]()
    assert own.dphi(z.numpy()) == pytest.approx(other.dphi(z).numpy(), abs=1e-14)
    assert own.phi(z.numpy()) == pytest.approx(other.phi(z).numpy(), abs=1e-14)
    assert own.lipschitz == pytest.approx(other.lipschitz)
    if getattr(other, "bound", None) is not None:
        assert own.bound == pytest.approx(other.bound)


@pytest.mark.parametrize("name", theory.ACTIVATIONS)
def test_constants_are_those_of_the_curves(name):
    own, z = theory.get_activation(name), np.linspace(-9, 9, 90_001)
    step = z[1] - z[0]
    slopes = np.diff(own.phi(z)) / step
    assert np.abs(own.dphi((z[1:] + z[:-1]) / 2) - slopes).max() < 1e-3
    if own.bound is not None:
        assert np.abs(own.dphi(z)).max() == pytest.approx(own.bound, rel=1e-6)
    if own.lipschitz is not None:
        steepest = np.abs(np.diff(own.dphi(z))).max() / step
        assert steepest == pytest.approx(own.lipschitz, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", ["identity", "relu", "leaky_relu", "quadratic_relu"])
def test_off_the_sphere_the_lengths_come_back(name):
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(4, 3)) * 1.7, rng.normal(size=(400_000, 3))
    s = theory.get_activation(name).dphi(w @ x.T)
    for i, j in ((0, 1), (2, 2), (1, 3)):
        product = x[i] @ x[j] * s[:, i] * s[:, j]
        error = 4 * product.std() / np.sqrt(len(w)) + 1e-12
        assert theory.gram(name, x)[i, j] == pytest.approx(product.mean(), abs=error)


def test_other_initialisation_of_quadratic_relu():
    """Weights uniform on the sphere of radius sqrt(d) have the same kernel."""
    w = np.sqrt(3) * sphere(400_000, 3, 5)
    x = sphere(2, 3, 6)
    s = theory.get_activation("quadratic_relu").dphi(w @ x.T)
    product = x[0] @ x[1] * s[:, 0] * s[:, 1]
    error = 4 * product.std() / np.sqrt(len(w))
    assert theory.gram("quadratic_relu", x)[0, 1] == pytest.approx(product.mean(), abs=error)


@pytest.mark.parametrize("name", ["sigmoid", "smoothed_leaky_relu"])
def test_kernels_from_series(name):
    series = theory.with_series(name)
    exact = theory.kernel_by_quadrature(name, COSINES)
    assert theory.kernel(series, COSINES) == pytest.approx(exact, abs=1e-4)
    x = sphere(12, 3, 0)
    assert np.linalg.eigvalsh(theory.gram(series, x))[0] >= -1e-12
