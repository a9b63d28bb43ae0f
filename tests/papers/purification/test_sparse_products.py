"""Sparse products against dense ones, and training in the basis of the dictionary against the plain
way: autograd on the inputs as they are drawn."""

from dataclasses import replace

import pytest
import torch

from advlab.core.randomness import generator, generators
from advlab.papers.purification import measures
from advlab.papers.purification.experiments._parts.presets import (
    PAPER_FGM,
    PRESETS,
    TRAINING_ATTACK,
    SparseProblem,
)
from advlab.papers.purification.experiments._parts.two_phase_runs import _tiny
from advlab.papers.purification.reductions import sparse_product
from advlab.papers.purification.reductions.sparse_products import Rows
from advlab.threats import Ball
from advlab.training import L2L3, Adversarial, NeuronCap, Penalize, Project, fit

STEPS = 12


@pytest.mark.parametrize("share", [0.0, 0.03, 0.15, 0.6, 1.0])
def test_a_sparse_product_is_the_dense_one(share):
    rng = generator("sparse", share)
    left = torch.randn(40, 30, generator=rng, dtype=torch.float64)
    left = left * (torch.rand(40, 30, generator=rng) < share)
    right = torch.randn(7, 30, generator=rng, dtype=torch.float64).mT
    torch.testing.assert_close(sparse_product(left, right), left @ right)
    torch.testing.assert_close(sparse_product(left != 0, right), (left != 0).to(right) @ right)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "neurons"), [(0, 8), (1, 1), (7, 0), (33, 40)])
def test_the_product_with_rows_is_the_dense_one(rows, neurons, dtype):
    rng = generator("rows", rows, neurons)
    x = torch.randn(rows, 24, generator=rng, dtype=torch.float64)
    weight = torch.randn(neurons, 24, generator=rng, dtype=torch.float64)
    found = Rows(weight.to(dtype))(x.to(dtype))
    assert found.dtype == dtype
    assert not found.is_mkldnn
    torch.testing.assert_close(
        found.double(), x @ weight.mT, rtol=0, atol=40 * torch.finfo(dtype).eps
    )


@pytest.mark.parametrize("start", ["random", "dictionary"])
@pytest.mark.parametrize("attack", [TRAINING_ATTACK, PAPER_FGM])
def test_training_in_the_basis_of_the_dictionary_is_training(start, attack):
    preset = _tiny(PRESETS[start])
    preset = preset.model_copy(update={"data": preset.data.model_copy(update={"spikes": 1.0})})
    turned, plain = (
        SparseProblem.draw(preset, [3, 4], "basis", 5, torch.float64, rotate)
        for rotate in (True, False)
    )
    assert turned.basis is not None
    torch.testing.assert_close(turned.x @ turned.basis.mT, plain.x, rtol=0, atol=1e-12)
    assert float((turned.x == 0).double().mean()) > 0.5
    nets, by_autograd = turned.networks(), plain.networks()
    short = preset.model_copy(
        update={"adversarial": preset.adversarial.model_copy(update={"steps": STEPS})}
    )
    replace(turned, preset=short).train_adversarial(nets, attack=attack)
    end = preset.bias.end
    with torch.no_grad():
        by_autograd.get_buffer("bias").fill_(end)
    fit(
        by_autograd, plain.x, plain.y, steps=STEPS, lr=preset.adversarial.lr, batch=preset.batch,
        objective=Adversarial(loss="logistic", ball=preset.ball, attack=attack,
                              warmup=preset.warmup),
        hooks=[Penalize(L2L3(weight=preset.adversarial.penalty)),
               *([] if preset.cap is None else [Project(NeuronCap(radius=preset.cap))])],
        rng=generators("basis", "adversarial", seeds=[3, 4]),
    )  # fmt: skip
    found = nets.get_parameter("weight").detach() @ turned.basis.mT
    torch.testing.assert_close(
        found, by_autograd.get_parameter("weight").detach(), rtol=1e-8, atol=1e-10
    )


def test_neurons_that_cannot_fire_change_no_value_in_the_ball():
    rng, ball = generator("firing"), Ball(norm="l2", radius=0.3)
    scale = torch.logspace(-2, 0.5, 50, dtype=torch.float64)[:, None]
    nets = measures.Nets.at(scale * torch.randn(50, 6, generator=rng, dtype=torch.float64), 1.0)
    x = torch.randn(20, 6, generator=rng, dtype=torch.float64)
    fewer = nets.firing(x, ball)
    assert 0 < len(fewer.weight) < 50
    for _ in range(20):
        point = ball.sample(x, rng=rng)
        for some, every in zip(fewer.value_and_gradient(point), nets.value_and_gradient(point),
                               strict=True):  # fmt: skip
            torch.testing.assert_close(some, every)
        torch.testing.assert_close(every, nets.gradient(point))
