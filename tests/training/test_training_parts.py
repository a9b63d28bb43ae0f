"""Penalties and projections against independent answers."""

import cvxpy as cp
import numpy as np
import pytest
import torch

from advlab.models import Linear
from advlab.training import L1, L2, L2L3, LayerBalls, NeuronCap, Penalize, WholeBall, fit
from advlab.training.freed_memory import TOGETHER, Room


def draws(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize(
    "penalty", [L1(weight=0.3, how="subgradient"), L2(weight=0.3), L2L3(weight=0.3)]
)
def test_gradients_are_those_of_the_values(penalty):
    w = draws(2, 4, 5).requires_grad_()
    (expected,) = torch.autograd.grad(penalty.value(w).sum(), w)
    torch.testing.assert_close(penalty.gradient(w.detach()), expected)
    assert penalty.value(w).shape == (2,)


def test_proximal_training_solves_the_lasso():
    x, noise = draws(60, 8), draws(60)
    y = x[:, 0] - 2 * x[:, 1] + 0.3 * noise
    model = Linear.zero(8)
    fit(model, x, y, steps=4000, lr=0.1, loss="squared", hooks=[Penalize(L1(weight=0.4))])
    theta = cp.Variable(8)
    goal = cp.sum_squares(x.numpy() @ theta - y.numpy()) / 60 + 0.4 * cp.norm1(theta)
    cp.Problem(cp.Minimize(goal)).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(model.theta.detach().numpy(), theta.value, atol=1e-5)
    assert (model.theta == 0).sum() >= 3


def test_a_penalty_above_the_gradient_at_zero_keeps_the_zero_model():
    x, y = draws(30, 6), draws(30)
    largest = float((2 / 30 * x.T @ y).abs().max())
    for weight, stays in ((1.01 * largest, True), (0.99 * largest, False)):
        model = Linear.zero(6)
        fit(model, x, y, steps=200, lr=0.1, loss="squared", hooks=[Penalize(L1(weight=weight))])
        assert bool((model.theta == 0).all()) is stays


@pytest.mark.parametrize("kind", [LayerBalls(radius=1.0, width=4), WholeBall(radius=1.0)])
def test_projections_are_nearest_points(kind):
    start = [draws(1, 3, 2), draws(1, 4) + 1]
    point = [start[0] + draws(1, 3, 2), start[1] + 0.1 * draws(1, 4)]
    ours = [p.clone() for p in point]
    kind.apply(ours, start)
    z = [cp.Variable(6), cp.Variable(4)]
    moves = [v - s.flatten().numpy() for v, s in zip(z, start, strict=True)]
    if isinstance(kind, LayerBalls):
        limits = [cp.norm(m) <= 0.5 for m in moves]
    else:
        limits = [cp.norm(cp.hstack(moves)) <= 1.0]
    far = sum(cp.sum_squares(v - p.flatten().numpy()) for v, p in zip(z, point, strict=True))
    cp.Problem(cp.Minimize(far), limits).solve(solver=cp.CLARABEL)
    for a, b in zip(ours, z, strict=True):
        np.testing.assert_allclose(a.flatten().numpy(), b.value, atol=1e-4)


def test_replicates_are_projected_one_by_one():
    start = [torch.zeros(2, 3)]
    weights = [torch.tensor([[3.0, 4.0, 0.0], [0.1, 0.0, 0.0]])]
    WholeBall(radius=1.0).apply(weights, start)
    expected = torch.tensor([[0.6, 0.8, 0.0], [0.1, 0.0, 0.0]])
    torch.testing.assert_close(weights[0], expected)


def test_no_neuron_is_longer_than_its_cap_and_short_ones_keep_their_bits():
    w = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(3))
    w[:, :3] *= 0.1
    capped = w.clone()
    NeuronCap(radius=1.2).apply([capped], [torch.zeros_like(w)])
    length = w.norm(dim=2, keepdim=True)
    torch.testing.assert_close(capped, torch.where(length > 1.2, 1.2 * w / length, w))
    assert torch.equal(capped[:, :3], w[:, :3])


@pytest.mark.parametrize("shape", [(), (3,), (40, 40)])
def test_a_room_keeps_copies_that_nothing_overwrites(shape):
    room, given = Room(), [torch.randn(shape, dtype=torch.float64) for _ in range(TOGETHER + 5)]
    source = torch.empty(shape, dtype=torch.float64)
    kept = [room.keep(source.copy_(value)) for value in given]
    assert all(torch.equal(one, value) for one, value in zip(kept, given, strict=True))
    other = room.keep(torch.ones(2, dtype=torch.float32))
    assert other.dtype == torch.float32
    assert torch.equal(kept[-1], given[-1])


def test_small_values_of_many_steps_share_blocks():
    room = Room()
    blocks = {room.keep(torch.zeros(10)).untyped_storage().data_ptr() for _ in range(2 * TOGETHER)}
    assert len(blocks) <= 2
