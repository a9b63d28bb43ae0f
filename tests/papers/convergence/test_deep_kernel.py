"""The deep tangent kernel against wide networks, the kernel of ReLU, and quadrature."""

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generators
from advlab.papers.convergence.models import DeepReLU
from advlab.papers.convergence.reductions import LowRankDeep
from advlab.papers.convergence.theory import kernel
from advlab.papers.convergence.theory.deep_kernel import deep_kernel

COSINES = np.array([1.0, 0.9, 0.4, 0.0, -0.5, -1.0])


def test_it_is_that_of_wide_networks():
    """The mean of 40 networks, layer by layer, within four standard errors."""
    m, many = 400, 40
    x = torch.tensor([[c, np.sqrt(1 - c**2)] for c in COSINES])
    nets = [DeepReLU.draw(2, m, 3, g) for g in generators("deep kernel", seeds=range(many))]
    runs = LowRankDeep(nets, (1.0,))
    with torch.no_grad():
        _, tangents = runs.tangents(x.repeat(many, 1))
        found = runs.tangent_grams(tangents)[:, :, 0] / m
    error = found.std(1).numpy() / np.sqrt(many)
    away = np.abs(found.mean(1).numpy() - deep_kernel(COSINES, 3))
    assert (away <= 4 * error + 0.005).all()
    assert error.max() < 0.05


def test_one_hidden_layer_is_twice_the_kernel_of_relu():
    np.testing.assert_allclose(deep_kernel(COSINES, 1)[0], 2 * kernel("relu", COSINES), atol=1e-15)


@pytest.mark.parametrize("c", [0.7, -0.3])
def test_two_layers_by_quadrature(c):
    """rho_1 = 2 E[relu(u) relu(v)] and the shares 2 P(u > 0, v > 0), by a sum over angles."""
    turn = 2 * np.pi * (np.arange(100_000) + 0.5) / 100_000
    first, second = np.cos(turn), np.cos(turn - np.arccos(c))  # u and v over their length r
    rho = 2 * 2 * (np.maximum(first, 0) * np.maximum(second, 0)).mean()  # E r^2 = 2
    share = 2 * ((first > 0) & (second > 0)).mean()
    later = 1 - np.arccos(rho) / np.pi
    np.testing.assert_allclose(deep_kernel(c, 2), [c * share * later, rho * later], atol=1e-4)


@pytest.mark.parametrize("c", [0.7, -0.3])
@pytest.mark.parametrize("depth", [3, 4])
def test_deeper_ones_by_the_recursion_of_the_whole_kernel_and_quadrature(c, depth):
    """T_h = 2 P(u > 0, v > 0) (T_{h-1} + rho_{h-1}): no shares of layers, no closed forms."""
    turn, whole, rho = 2 * np.pi * (np.arange(100_000) + 0.5) / 100_000, 0.0, c
    for _ in range(depth):
        first, second = np.cos(turn), np.cos(turn - np.arccos(rho))
        whole = 2 * ((first > 0) & (second > 0)).mean() * (whole + rho)
        rho = 2 * 2 * (np.maximum(first, 0) * np.maximum(second, 0)).mean()
    shares = deep_kernel(c, depth)
    assert shares.sum() == pytest.approx(whole, abs=1e-4)
    # Without the products over later layers it is far off.
    assert abs(shares[-1] * depth - whole) > 0.01


def test_it_is_one_for_equal_inputs_and_positive_semidefinite():
    np.testing.assert_allclose(deep_kernel(1.0, 4), np.ones(4), atol=1e-7)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((12, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for one in deep_kernel(np.clip(x @ x.T, -1, 1), 3):
        assert np.linalg.eigvalsh((one + one.T) / 2).min() > -1e-7


def test_cosines_above_one_are_refused():
    with pytest.raises(AdvlabError):
        deep_kernel(1.5, 2)
