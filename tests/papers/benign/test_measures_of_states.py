"""Measures of a network at one step against autograd, loops and numpy; each can be violated."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mixture_setup import (
    BALL,
    ETA,
    LAW,
    WALK,
    D,
    M,
    N,
    R,
    contrary,
    draw,
    shapes,
    start,
    train,
    trained,
)

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.models import TwoLayer
from advlab.papers.benign import measures
from advlab.papers.benign.measures import Networks, Snapshot
from advlab.training import Probe


@shapes
def test_margins_and_the_gradient_are_those_of_autograd(shape):
    model, now = trained(shape)
    assert float((now.x - now.data.x).norm(dim=2).amax()) == pytest.approx(BALL.radius)
    f = model(now.x.flatten(0, 1)).reshape(R, N)
    torch.testing.assert_close(now.margin, (now.data.y * f).detach(), rtol=1e-12, atol=1e-14)
    loss = F.softplus(-now.data.y * f).mean(1)
    (grad,) = torch.autograd.grad(loss.sum(), model.get_parameter("weight"))
    torch.testing.assert_close(now.L_rob, loss.detach())
    torch.testing.assert_close(now.gradient, grad, rtol=1e-10, atol=1e-14)
    margin = now.margin.clone().requires_grad_()
    (slope,) = torch.autograd.grad(F.softplus(-margin).sum(), margin)
    torch.testing.assert_close(now.g, -slope)


@shapes
def test_the_first_step_has_its_closed_form_and_later_ones_follow_training(shape):
    model, data = start(shape), draw("data")
    seen = []

    def watch(net: torch.nn.Module) -> torch.Tensor:
        seen.append(Snapshot.take(net, data, LAW.mu(), BALL, WALK))
        return seen[-1].G_rob

    train(model, data, 4, Probe({"watch": watch}))
    first = seen[0]
    assert torch.equal(first.x, data.x)
    assert torch.equal(first.margin, torch.zeros_like(first.margin))
    assert measures.robust_training_error(first).tolist() == [1.0] * R
    w0, a = first.net.weight, first.net.top
    slope = first.net.activation.dphi(torch.einsum("rsd,rkd->rsk", w0, data.x))
    push = torch.einsum("rsk,rk,rkd->rsd", slope, data.y, data.x)
    closed = w0 + ETA * a[:, :, None] / (2 * N * math.sqrt(M)) * push
    torch.testing.assert_close(first.after(ETA).weight, closed, rtol=0, atol=1e-14)
    for now, later in pairwise(seen):
        torch.testing.assert_close(now.after(ETA).weight, later.net.weight, rtol=1e-11, atol=1e-15)
    moved = (seen[1].net.weight - w0).flatten(1).norm(dim=1) / w0.flatten(1).norm(dim=1)
    torch.testing.assert_close(measures.relative_move(first, ETA), moved)


def test_the_gradient_bounds_hold_for_any_weights_and_not_for_a_false_dimension():
    data = draw("data")
    for seed in range(1, 10):
        weight = 0.05 * seed * torch.randn(R, M, D, generator=generator(seed), dtype=torch.float64)
        net = replace(Networks.of(start("relu")), weight=weight)
        now = Snapshot.at(net, data, LAW.mu().expand(R, -1), 1.5, data.x + 1.5 / math.sqrt(D))
        low, middle, high = measures.gradient_bounds(now, D, LAW.kappa)
        assert bool((low <= middle).all() and (middle <= high).all())
        low, middle, _ = measures.gradient_bounds(now, 1, 100.0)
        assert bool((low > middle).all())


@shapes
def test_gradient_measures_against_loops(shape):
    _, now = trained(shape)
    signs = now.net.top / math.sqrt(M)
    V = signs[:, :, None] * (now.mu / now.mu.norm(dim=1, keepdim=True))[:, None]
    torch.testing.assert_close(V.flatten(1).norm(dim=1), torch.ones(R, dtype=torch.float64))
    push = (-now.gradient * V).sum((1, 2)) / (5.0 * now.G_rob)
    torch.testing.assert_close(measures.gradient_alignment(now), push)
    size = now.gradient.square().sum((1, 2)).sqrt() / (math.sqrt(D / N) * now.G_rob)
    torch.testing.assert_close(measures.gradient_size(now, D), size)
    ratio = [max(g) / min(g) for g in now.g.tolist()]
    assert measures.loss_ratio(now).tolist() == pytest.approx(ratio)
    flipped = replace(now, margin=torch.where(now.data.noisy, -1.0, 1.0))
    assert measures.noisy_training_error(flipped).tolist() == [1.0] * R
    assert measures.robust_training_error(flipped).tolist() == [0.25] * R


@shapes
def test_attacked_inputs_against_numpy(shape):
    _, now = trained(shape)
    distance = measures.span_distance(now)
    cosine, signal = measures.perturbation_alignment(now), measures.signal_products(now)
    for r in range(R):
        x, y, tilde = now.data.x[r].numpy(), now.data.y[r].numpy(), now.x[r].numpy()
        for i in range(N):
            move = tilde[i] - x[i]
            rest = move - x.T @ np.linalg.lstsq(x.T, move, rcond=None)[0]
            assert float(distance[r, i]) == pytest.approx(np.linalg.norm(rest), rel=1e-8)
            mean = -y @ x
            cos = y[i] * move @ mean / (np.linalg.norm(move) * np.linalg.norm(mean))
            assert float(cosine[r, i]) == pytest.approx(cos)
            assert float(signal[r, i]) == pytest.approx(y[i] * tilde[i] @ now.mu[r].numpy() / 25)
    assert 0 < float(distance.amin()) < float(distance.amax()) < BALL.radius
    # A move out of the span is all distance; one along it is none.
    out = torch.randn(R, N, D, generator=generator("out"), dtype=torch.float64)
    moved = Snapshot.at(now.net, now.data, now.mu, 1.5, now.data.x + 0.1 * now.data.x)
    assert float(measures.span_distance(moved).amax()) < 1e-12
    moved = Snapshot.at(now.net, now.data, now.mu, 1.5, now.data.x + out)
    assert float(measures.span_distance(moved).amin()) > 0.9 * math.sqrt(D - N - 40)


@shapes
def test_activations_against_loops_and_a_network_that_loses_some(shape):
    _, now = trained(shape)
    found = measures.active(now)
    for r in range(R):
        for i in range(N):
            for s in range(M):
                w, x = now.net.weight[r, s], now.data.x[r, i]
                on = bool(w @ x > BALL.radius * w.norm())
                assert bool(found[r, i, s]) == (on and now.data.y[r, i] == now.net.top[r, s])
    shares = measures.active_shares(now)
    torch.testing.assert_close(shares.per_neuron, found.double().sum(1) / N)
    torch.testing.assert_close(shares.per_example, found.double().sum(2) / M)
    assert measures.lost_pairs(now, ETA).tolist() == [0] * R
    assert measures.lost_pairs(contrary(), 0.0).tolist() == [0]
    assert int(measures.active(contrary()).sum()) == 2
    assert measures.lost_pairs(contrary(), 5.0).tolist() == [1]
    assert measures.activation_gain(contrary(), 5.0).tolist() == [-1]


def test_at_the_start_the_threshold_of_activity_is_zero():
    now = Snapshot.take(start("relu"), draw("data"), LAW.mu(), BALL, WALK)
    on = now.net.inner(now.data.x) > 0
    own = now.data.y[:, :, None] == now.net.top[:, None]
    assert torch.equal(measures.active(now), on & own)


@shapes
def test_twins(shape):
    model, now = trained(shape)
    standard = Snapshot.take(model, now.data, LAW.mu(), BALL.with_radius(0.0), WALK)
    gap = (now.gradient - standard.gradient).flatten(1).norm(dim=1)
    expected = gap / standard.gradient.flatten(1).norm(dim=1)
    torch.testing.assert_close(measures.gradient_gap(now), expected)
    assert bool((expected > 1e-3).all())
    assert measures.gradient_gap(standard).tolist() == [0.0] * R
    turned = replace(now.net, weight=now.net.weight.roll(1, dims=2))
    cosine = measures.trajectory_cosine(now.net, turned)
    one, other = now.net.weight.flatten(1).numpy(), turned.weight.flatten(1).numpy()
    inner = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosine.tolist() == pytest.approx(inner.tolist())


def test_only_the_papers_networks_are_measured():
    biased = TwoLayer.draw(D, M, "relu", generator("b"), omega=1.0, bias=True)
    with pytest.raises(AdvlabError, match="without biases"):
        Networks.of(biased)
    with pytest.raises(AdvlabError, match="R and d of the weights"):
        Snapshot.take(start("relu"), LAW.sample(generator("x")), LAW.mu(), BALL, WALK)
