"""Random features and the robust network near initialisation, against torch and their bounds."""

import numpy as np
import pytest
import torch

from advlab.models import TwoLayer
from advlab.papers.convergence import theory

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(5, 3))
CENTRES /= np.linalg.norm(CENTRES, axis=1)[:, None]
COEFFICIENTS = np.array([1.0, -2.0, 0.5, 3.0, -1.5])
POINTS = RNG.normal(size=(300, 3))
POINTS /= np.linalg.norm(POINTS, axis=1)[:, None]


def expansion(name: str) -> theory.Expansion:
    return theory.Expansion(theory.get_activation(name), CENTRES, COEFFICIENTS)


def first(M: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(M, 3))


@pytest.mark.parametrize("name", ["sin_cos", "gelu", "relu", "quadratic_relu"])
def test_random_features_have_the_expansion_as_their_mean(name):
    g, draws = expansion(name), 400
    values = [theory.random_features(g, first(50, seed))(POINTS[:20]) for seed in range(draws)]
    error = 4.5 * np.std(values, axis=0) / np.sqrt(draws)
    assert (np.abs(np.mean(values, axis=0) - g(POINTS[:20])) <= error).all()


def test_the_error_of_random_features_falls_like_one_over_the_root():
    g, sizes = expansion("sin_cos"), (64, 256, 1024, 4096)
    errors = [
        np.mean(
            [
                np.abs(theory.random_features(g, first(M, seed))(POINTS) - g(POINTS)).max()
                for seed in range(20)
            ]
        )
        for M in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


@pytest.mark.parametrize("name", ["sin_cos", "gelu", "quadratic_relu"])
def test_the_network_is_the_one_that_torch_evaluates(name):
    signs = np.random.default_rng(1).choice([-1.0, 1.0], 64)
    net = theory.robust_network(expansion(name), first(64), signs)
    other = TwoLayer(torch.from_numpy(net.weight), torch.from_numpy(net.top), name)
    assert net(POINTS) == pytest.approx(other(torch.from_numpy(POINTS)).detach().numpy(), abs=1e-12)
    start = TwoLayer(torch.from_numpy(net.start), torch.from_numpy(net.top), name)
    assert start(torch.from_numpy(POINTS)).abs().max() == 0
    # The linear part is autograd's gradient at the start, times the move.
    for x in torch.from_numpy(POINTS[:5]):
        (grad,) = torch.autograd.grad(start(x[None]).sum(), start.weight)
        part = (grad.numpy() * (net.weight - net.start)).sum()
        assert net.linear_part(x.numpy()[None])[0] == pytest.approx(part, abs=1e-12)


@pytest.mark.parametrize("name", ["sin_cos", "gelu", "erf"])
def test_linear_part_and_bounds(name):
    g, m = expansion(name), 512
    signs = np.random.default_rng(2).choice([-1.0, 1.0], m // 2)
    net = theory.robust_network(g, first(m // 2), signs)
    features = theory.random_features(g, first(m // 2))
    assert net.linear_part(POINTS) == pytest.approx(features(POINTS), abs=1e-10)
    lower = theory.rf_norm_lower(g, first(m // 2))
    upper = theory.rf_norm_upper(g)
    assert lower <= upper
    # On the drawn weights the RF norm is `lower`, and these hold with it.
    assert np.linalg.norm(features.directions, axis=1).max() <= 2 * lower / m + 1e-15
    assert net.farthest <= lower / np.sqrt(m) + 1e-15
    assert net.distance <= lower
    residual = np.abs(net(POINTS) - net.linear_part(POINTS)).max()
    C2 = net.activation.lipschitz
    assert residual <= net.residual_bound <= theory.residual_bound(lower, m, C2)
    total = np.abs(net(POINTS) - g(POINTS)).max()
    assert total <= theory.total_bound(g.activation, upper, m, 3)


def test_the_distance_tends_to_the_rkhs_norm_and_the_residual_to_zero():
    g = expansion("sin_cos")
    nets = [theory.robust_network(g, first(m // 2)) for m in (1000, 16_000)]
    assert nets[-1].distance == pytest.approx(g.norm, rel=0.02)
    residuals = [np.abs(net(POINTS) - net.linear_part(POINTS)).max() for net in nets]
    # The pairing cancels the second order: sixteen times the width, a sixteenth of the residual.
    assert residuals[0] / residuals[1] == pytest.approx(16, rel=0.6)


def test_forms_of_proposition_c1():
    bound = theory.feature_error_bound
    # The pilot: sin+cos in d = 3 with an RF norm of 186 and C = sqrt(2) at m = 2M = 256.
    rf, d, C, delta, M = 186.0, 3, np.sqrt(2), 0.01, 128
    tail = np.sqrt(2 * np.log(100))
    assert bound(rf, M, d, C) == pytest.approx(C * rf / np.sqrt(M) * (2 * np.sqrt(3) + tail))
    assert bound(rf, M, d, C) == pytest.approx(151, rel=0.02)
    # McDiarmid with xi = 2 C RF/M: exp(-2 e^2/(M xi^2)) = delta is the corrected tail.
    xi, mean = 2 * C * rf / M, C * rf / np.sqrt(M) * 2 * np.sqrt(d)
    excess = bound(rf, M, d, C, delta) - mean
    assert np.exp(-2 * excess**2 / (M * xi**2)) == pytest.approx(delta)
    printed = bound(rf, M, d, C, delta, "printed") - mean
    assert np.exp(-2 * printed**2 / (M * xi)) == pytest.approx(delta)
    assert bound(rf, M, d, C, form="safe") > bound(rf, M, d, C)
    # Only the printed tail does not vanish.
    far = 10**12
    assert bound(rf, far, d, C, form="printed") > 10
    assert bound(rf, far, d, C, form="safe") < 0.01


def test_widths():
    shape = "sin_cos"
    m = theory.sufficient_width(shape, 5.0, 3, eps=0.3, L=1.0)
    assert m % 2 == 0
    assert theory.total_bound(shape, 5.0, m, 3) <= 0.1
    assert theory.total_bound(shape, 5.0, m - 2, 3) > 0.1 * (1 - 1e-9)
    assert theory.error_split(0.3, 2.0) == pytest.approx((0.05, 0.05, 0.05))
    # Order RF^4 and eps^-2 for large RF.
    assert theory.sufficient_width(shape, 1e4, 3, 0.3) / theory.sufficient_width(
        shape, 1e3, 3, 0.3
    ) == pytest.approx(1e4, rel=0.05)
    found = theory.corollary_5_1(4.0, 0.1)
    assert found.scaling_only
    assert (found.width, found.step, found.steps) == pytest.approx((25_600, 0.1, 1600))
    # At the threshold width its steps are those of Theorem 5.1, sqrt(m)/step.
    assert found.steps == pytest.approx(np.sqrt(found.width) / found.step)
    small = theory.corollary_c_1(0.1, 3)
    assert small.scaling_only
    assert small.width == pytest.approx(1e4 * np.log(10))


def test_quadratic_relu_has_an_rf_norm_on_the_sphere_of_its_initialisation():
    g = expansion("quadratic_relu")
    w = first(5000)
    w *= np.sqrt(3) / np.linalg.norm(w, axis=1)[:, None]
    upper = theory.rf_norm_upper(g, np.sqrt(3))
    assert upper == pytest.approx(2 * np.sqrt(3) * np.abs(COEFFICIENTS).sum())
    assert theory.rf_norm_lower(g, w) <= upper
    net = theory.robust_network(g, w)
    assert net.distance == pytest.approx(g.norm, rel=0.05)
