"""Norms at the start against products of matrices that are written out, and by hand."""

import math

import numpy as np
import pytest
import torch

from advlab.core.randomness import generator
from advlab.papers.convergence.experiments import start_norms
from advlab.papers.convergence.models import DeepReLU


def test_norms_are_those_of_the_products_of_matrices():
    net = DeepReLU.draw(3, 7, 3, generator("norms"))
    x = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64)
    weights = [weight.detach() for weight in net.hidden]
    pre, state = start_norms.forward_norms(weights, net.bottom @ x)
    at, masks = net.bottom @ x, []
    assert state[0] == pytest.approx(float(at.norm()))
    for h, weight in enumerate(weights):
        z = weight @ at
        masks.append(torch.diag((z >= 0).double()))
        at = masks[-1] @ z
        assert pre[h] == pytest.approx(float(z.norm()))
        assert state[h + 1] == pytest.approx(float(at.norm()))
    back = start_norms.backward_norms(weights, net.bottom @ x, net.top)
    for h in range(3):
        product = torch.eye(7, dtype=torch.float64)
        for later in range(h, 3):
            product = masks[later] @ weights[later] @ product
        assert back[h] == pytest.approx(float((net.top @ product).norm()))


@pytest.mark.parametrize("shape", [(90, 5), (90, 90)])
def test_operator_norms_are_largest_singular_values(shape):
    matrix = torch.from_numpy(np.random.default_rng(0).standard_normal(shape)).float()
    largest = np.linalg.svd(matrix.numpy(), compute_uv=False)[0]
    assert start_norms.spectral(matrix) == pytest.approx(largest, rel=1e-5)


def test_with_the_variance_1_m_all_features_are_sqrt_2_times_shorter():
    table = start_norms.compute(start_norms.Case(width=32, depth=2))
    value = {
        name: table.filter(quantity=name).sort("layer")["value"].to_numpy()
        for name in ("state", "pre", "state, 1/m", "pre, 1/m")
    }
    for name in ("state", "pre"):
        np.testing.assert_allclose(value[name], math.sqrt(2) * value[f"{name}, 1/m"], rtol=1e-5)
    assert [len(value[name]) for name in ("state", "pre")] == [3, 2]
    unit = DeepReLU.draw(
        start_norms.D, 32, 2, generator(start_norms.NAME, 32, 2, 0), input_var=1.0,
        dtype=torch.float32,
    )  # fmt: skip
    stated = DeepReLU.draw(
        start_norms.D, 32, 2, generator(start_norms.NAME, 32, 2, 0), dtype=torch.float32
    )
    torch.testing.assert_close(unit.bottom * math.sqrt(2), stated.bottom)
