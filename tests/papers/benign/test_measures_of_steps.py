"""Measures of steps and of runs, and their probes, against training itself and loops."""

import math

import numpy as np
import pytest
import torch
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

from advlab.attacks import FGM, PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.models import Stack, TwoLayer
from advlab.papers.benign import measures
from advlab.papers.benign.data import Clusters
from advlab.papers.benign.measures import Networks, Snapshot
from advlab.papers.benign.theory import linear_rule_risk, squared_norm_rate
from advlab.reductions import Subspace
from advlab.threats import Ball
from advlab.training import Probe


@shapes
def test_the_secant_identity_is_exact_and_its_coefficients_are_shares(shape):
    model, now = trained(shape)
    test = draw("test", 30)
    twin = Stack([model.replicate(r) for r in range(R)])
    before = twin(test.x.flatten(0, 1)).reshape(R, -1)
    twin.get_parameter("weight").data.sub_(ETA * now.gradient)
    step = (test.y * (twin(test.x.flatten(0, 1)).reshape(R, -1) - before)).detach()
    found = measures.secant_step(now, ETA, test.x, test.y)
    torch.testing.assert_close(found, step, rtol=1e-10, atol=1e-10 * float(step.abs().amax()))
    shares = measures.secants(now, ETA, test.x)
    assert float(shares.amin()) >= -1e-12
    assert float(shares.amax()) <= 1 + 1e-12
    # lambda_i(x~_i) >= gamma^2 |A^i(t) and A^i(t+1)|/m (B.26).
    own = measures.secants(now, ETA, now.x).diagonal(dim1=1, dim2=2)
    both = (measures.active(now) & measures.active(now, now.after(ETA))).double().mean(2)
    assert both.amax() > 0
    assert bool((own >= now.net.activation.gamma**2 * both - 1e-12).all())


@shapes
def test_margins_grow_on_the_balls_but_not_for_contrary_data(shape):
    model, now = trained(shape)
    rows = now.data.x[:, None].expand(-1, 4, -1, -1)
    draws = BALL.sample(rows.flatten(0, 2), rng=generator("ball")).reshape(rows.shape)
    steps = measures.margin_steps(now, ETA, draws - rows)
    later = Stack([model.replicate(r) for r in range(R)])
    later.get_parameter("weight").data.sub_(ETA * now.gradient)
    points = torch.cat([now.x[:, None], draws], dim=1)
    for k in range(5):
        change = (net(points[:, k].flatten(0, 1)).reshape(R, N) for net in (later, model))
        expected = (now.data.y * (next(change) - next(change))).detach()
        torch.testing.assert_close(steps[:, k], expected, rtol=1e-9, atol=1e-14)
    assert float(steps.amin()) > 0
    relative = measures.relative_margin_steps(now, ETA, draws - rows)
    assert 0 < float(relative.amin()) < float(relative.amax()) < 1
    scaled = measures.scaled_margin_steps(now, ETA, D)
    torch.testing.assert_close(scaled * ETA * D * now.g / N, steps[:, 0])
    assert float(measures.relative_margin_steps(contrary(), 0.1).amin()) < -0.01


@pytest.mark.parametrize("eta", [0.02, 5.0])
def test_the_fresh_step_is_bounded_by_its_curvature_and_not_without_it(eta):
    model, data, test = start("smoothed_leaky_relu"), draw("data"), draw("test", 50)
    train(model, data, 15)
    now = Snapshot.take(model, data, LAW.mu(), BALL, WALK)
    step, linear, curvature = measures.fresh_step(now, eta, test.x, test.y)
    assert bool((step >= linear - curvature).all())
    assert bool((step < linear).any())
    rho = torch.einsum(
        "rks,ris->rki", *(now.net.activation.dphi(now.net.inner(x)) for x in (test.x, now.x))
    ) / M  # fmt: skip
    assert now.net.activation.gamma**2 <= float(rho.amin()) < float(rho.amax()) <= 1
    products = torch.einsum("ri,rid,rk,rkd->rki", now.data.y, now.x, test.y, test.x)
    expected = eta / N * torch.einsum("ri,rki,rki->rk", now.g, rho, products)
    torch.testing.assert_close(linear, expected)
    with pytest.raises(AdvlabError, match="Lipschitz"):
        measures.fresh_step(contrary(), eta, contrary().x, contrary().data.y)


@shapes
def test_the_four_parts_add_up_to_the_margin_of_a_neuron(shape):
    _, now = trained(shape)
    test = draw("test", 12)
    parts = measures.margin_decomposition(now, ETA, test)
    move = now.after(ETA).weight - now.net.weight
    whole = torch.einsum("rs,rk,rsd,rkd->rks", now.net.top, test.y_clean, move, test.x)
    total = torch.stack(parts).sum(0)
    torch.testing.assert_close(total, whole, rtol=1e-9, atol=1e-10 * float(whole.abs().amax()))
    weight = ETA / (N * math.sqrt(M)) * now.g[:, :, None] * now.slope
    noise = now.data.noise + now.x - now.data.x
    own = 25 + now.data.y_clean * torch.einsum("rd,rid->ri", now.mu, noise)
    signal = torch.einsum("ris,ri->rs", weight, own)
    flips = -2 * torch.einsum("ris,ri->rs", weight, own * now.data.noisy)
    for k in range(12):
        torch.testing.assert_close(parts.signal[:, k], signal)
        torch.testing.assert_close(parts.flips[:, k], flips)
    assert float(signal.amin()) >= 0 > float(flips.amin())
    quiet = Clusters(test.x - test.noise, test.y, test.y_clean, 0 * test.noise)
    parts = measures.margin_decomposition(now, ETA, quiet)
    assert float(parts.test_noise.abs().amax()) == float(parts.noise_products.abs().amax()) == 0


def test_fresh_margins_and_errors_against_a_linear_rule():
    """phi = identity makes f linear, whose risks are known, and FGM exact."""
    rule = torch.zeros(1, M, D, dtype=torch.float64)
    rule[0, : M // 2, :2] = torch.tensor([0.6, 0.8])
    model = TwoLayer(rule[0], Networks.of(start("relu")).top[0], "identity")
    law = LAW.model_copy(update={"flips": "independent", "mu_norm": 3.0})
    test = law.sample(generator("fresh"), 40_000)
    found = measures.errors(model, test, Ball(norm="l2", radius=0.7), FGM())
    for error, radius in zip(found, (0.0, 0.7), strict=True):
        assert float(error[0]) == pytest.approx(linear_rule_risk(0.6, 3.0, radius, 0.25), abs=0.01)
    net, scale = Networks.of(model), M / 2 / math.sqrt(M)
    means = measures.class_margins(net, test)
    torch.testing.assert_close(means[0], torch.full((2,), 1.8 * scale).double(), rtol=0.02, atol=0)
    norm = math.sqrt(M / 2)
    assert measures.spectral_norm(net).tolist() == pytest.approx([norm])
    least = float(means.min()) / norm
    assert measures.normalised_margin(net, test).tolist() == pytest.approx([least])
    positive = np.mean(test.y_clean.numpy() * (test.x.numpy()[:, :2] @ [0.6, 0.8]) > 0)
    assert float(measures.aligned_share(net, test)) == pytest.approx(positive / 2)


@shapes
def test_sums_over_a_run(shape):
    model, data = start(shape), draw("data")
    every = measures.probes(data, LAW.mu(), ball=BALL, attack=WALK, eta=ETA, d=D)
    run = train(model, data, 20, Probe(every))
    G, norms, L = (run.log.probe(name) for name in ("G_rob", "norm", "L_rob"))
    torch.testing.assert_close(L, run.log.losses(), rtol=1e-10, atol=0)
    bound, growth = measures.averaged_bound(G), measures.norm_growth(norms, G, ETA, D, N)
    assert bool(torch.isinf(bound[0]).all())
    assert growth[0].tolist() == [0.0] * R
    torch.testing.assert_close(bound[7], 2 * G[:7].mean(0))
    room = ETA * math.sqrt(D / N) * G[:7].sum(0)
    torch.testing.assert_close(growth[7], (norms[7] - norms[0]) / room)
    assert bool((bound >= L).all())
    assert float(growth.amax()) < 1.1
    squares, c1 = norms**2, model.skeleton.activation.c1
    steps = torch.arange(21)[:, None]
    curvature = ETA * float(run.log.probe("gradient").amax()) ** 2 * D / N
    rate = squared_norm_rate(ETA, M, c1, curvature)
    assert bool((squares <= squares[0] + rate * steps).all())
    assert rate == pytest.approx(ETA * (2 / 3 + 2 * c1 * math.sqrt(M) + curvature))
    large = contrary().after(50.0).weight.square().sum() - contrary().net.weight.square().sum()
    assert float(large) > squared_norm_rate(50.0, 2, 0.0)


@shapes
def test_probes_of_a_stack_are_those_of_its_networks_and_of_any_coordinates(shape):
    data, test = draw("data"), draw("test", 300)
    model = start(shape)
    weight = model.get_parameter("weight").detach().clone()
    space = Subspace.of(torch.cat([data.x, weight], dim=1), LAW.mu())
    inside = Stack([TwoLayer(w, a, shape) for w, a in
                    zip(space.into(weight), model.get_buffer("top"), strict=True)])  # fmt: skip
    small, fresh = (
        Clusters(space.into(some.x), some.y, some.y_clean, space.into(some.noise))
        for some in (data, test)
    )
    mu = space.into(LAW.mu().expand(R, -1))
    settings = {"ball": BALL, "attack": WALK, "eta": ETA, "d": D}
    runs = [
        train(model, data, 3, Probe(measures.probes(data, LAW.mu(), test=test, **settings))),
        train(inside, small, 3, Probe(measures.probes(small, mu, test=fresh, **settings))),
    ]
    one, part = start(shape).replicate(1), Clusters(*(value[1] for value in data))
    some = Clusters(*(value[1] for value in test))
    alone = train(one, part, 3, Probe(measures.probes(part, LAW.mu(), test=some, **settings)))
    assert set(alone.log.probes) == set(runs[0].log.probes)
    for name in alone.log.probes:
        whole, reduced = (run.log.probe(name) for run in runs)
        assert alone.log.probe(name).shape[1] == 1
        if name in ("relative step", "secant error", "fresh slack"):  # random, rounding, sharper
            continue
        torch.testing.assert_close(whole, reduced, rtol=1e-7, atol=1e-9, equal_nan=True, msg=name)
        torch.testing.assert_close(whole[:, 1:2], alone.log.probe(name), equal_nan=True, msg=name)
    assert runs[0].log.table().height == 4 * R


def test_one_attack_a_step_serves_all_probes():
    calls = []

    class Counting(PGD):
        def search(self, best, threat, rng):
            calls.append(1)
            super().search(best, threat, rng)

    data = draw("data")
    every = measures.probes(data, LAW.mu(), ball=BALL, attack=Counting(steps=2), eta=ETA, d=D)
    run = train(start("relu"), data, 5, Probe(every, at={0, 2, 3}))
    assert len(calls) == len(run.log.probe_steps) == 4
