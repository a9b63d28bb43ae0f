"""Certificates against samples, attacks and each other, on networks of every kind."""

import pytest
import torch
from certify_nets import KINDS, balls, network, sampled_worst
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.attacks import PGD
from advlab.certify import CERTIFICATES, IBP, Crown, CrownIBP, LinearExact, Lipschitz
from advlab.certify._graph.reader import read
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball

BOUNDS = {c.name: c() for c in (Lipschitz, IBP, CrownIBP, Crown)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ball", balls(), ids=lambda b: f"{b.norm}{'+box' if b.box else ''}")
def test_no_sample_and_no_attack_passes_a_bound_and_tighter_methods_are_tighter(kind, ball):
    net, x, y = network(kind, seed=1)
    attack = PGD(steps=15, restarts=2)
    rng = torch.Generator().manual_seed(0)
    reached = torch.maximum(
        sampled_worst(net, x, y, ball), attack(ModelLoss(net, y, margin), x, ball, rng=rng).loss
    )
    bound = {name: c.worst_margin(net, x, y, ball) for name, c in BOUNDS.items()}
    for name in BOUNDS:
        assert (bound[name] >= reached).all(), name
    assert (bound["ibp"] >= bound["crown_ibp"]).all()
    assert (bound["crown_ibp"] >= bound["crown"]).all()
    # The bounds say something: CROWN is within reach of the attack on nets this small.
    assert (bound["crown"] - reached).mean() < (bound["ibp"] - reached).mean() + 1e-12


@settings(max_examples=20, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    seed=st.integers(0, 10**6),
    norm=st.sampled_from(["linf", "l2", "l1"]),
    radius=st.sampled_from([0.0, 0.003, 0.1, 0.7]),
    boxed=st.booleans(),
)
def test_random_networks(kind, seed, norm, radius, boxed):
    net, x, y = network(kind, seed)
    ball = Ball(norm=norm, radius=radius, box=(0.0, 1.0) if boxed else None)
    reached = sampled_worst(net, x, y, ball, draws=60)
    bounds = [BOUNDS[name].worst_margin(net, x, y, ball) for name in ("ibp", "crown_ibp", "crown")]
    for bound in (*bounds, BOUNDS["lipschitz"].worst_margin(net, x, y, ball)):
        assert (bound >= reached).all()
    assert (bounds[0] >= bounds[1]).all()
    assert (bounds[1] >= bounds[2]).all()


def test_at_radius_zero_all_bounds_are_the_margin():
    for kind in KINDS:
        net, x, y = network(kind, seed=2)
        with torch.no_grad():
            clean = ModelLoss(net, y, margin)(x)
        for norm, certificate in zip(("linf", "l2", "l1", "linf"), BOUNDS.values(), strict=True):
            bound = certificate.worst_margin(net, x, y, Ball(norm=norm, radius=0.0))
            torch.testing.assert_close(bound, clean, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_is_left_as_it_was_found(kind):
    net, x, y = network(kind, seed=3)
    net.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    for certificate in BOUNDS.values():
        certificate.worst_margin(net, x, y, Ball(norm="linf", radius=0.1))
    assert all(module.training for module in net.modules())
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert all(parameter.grad is None for parameter in net.parameters())


def dense() -> nn.Module:
    return nn.Sequential(nn.Linear(300, 200), nn.Linear(200, 200), nn.Linear(200, 3))


def convolutional() -> nn.Module:
    body = [nn.Unflatten(1, (3, 10, 10)), nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3, stride=2)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(144, 3))


@pytest.mark.parametrize("certificate", [Crown(), LinearExact(), IBP()], ids=lambda c: c.name)
@pytest.mark.parametrize("make", [dense, convolutional])
@pytest.mark.parametrize(("norm", "radius"), [("linf", 0.1), ("l2", 0.5)])
def test_bounds_hold_for_the_float32_network_as_it_runs(certificate, make, norm, radius):
    """On linear nets the bound is the maximum itself, so only the slack keeps rounding below it."""
    torch.manual_seed(0)
    passed, slackless, ball = 0, 0, Ball(norm=norm, radius=radius)
    for _ in range(4):
        net, x = make(), torch.randn(20, 300)
        y = net(x).argmax(1)
        attacked = PGD(steps=3)(ModelLoss(net, y, margin), x, ball, rng=torch.Generator())
        bound = certificate.worst_margin(net, x, y, ball)
        wide = certificate.worst_margin(net.double(), x.double(), y, ball)
        passed += int((attacked.loss > bound).sum())
        slackless += int((attacked.loss.double() > wide).sum())
        # And it is small: below a thousandth of what the radius does.
        assert (bound.double() - wide).max() < 5e-4
    assert passed == 0
    assert slackless > 0


@pytest.mark.parametrize("kind", ["conv", "pooled", "residual"])
def test_chunks_do_not_change_bounds(kind, monkeypatch):
    net, x, y = network(kind, seed=5)
    ball = Ball(norm="linf", radius=0.1, box=(0.0, 1.0))
    whole = Crown().worst_margin(net, x, y, ball)
    monkeypatch.setattr("advlab.certify._graph.backward.ELEMENTS", 200)
    torch.testing.assert_close(Crown().worst_margin(net, x, y, ball), whole, rtol=1e-9, atol=1e-11)
    monkeypatch.setattr("advlab.certify.crown.ALONE", 1)
    torch.testing.assert_close(Crown().worst_margin(net, x, y, ball), whole, rtol=1e-9, atol=1e-11)
    alone = torch.cat(
        [Crown().worst_margin(net, x[i : i + 1], y[i : i + 1], ball) for i in range(4)]
    )
    torch.testing.assert_close(alone, whole, rtol=1e-9, atol=1e-11)


def test_every_registered_certificate_has_its_name():
    assert all(c.name == name for name, c in CERTIFICATES.items())
    assert next(iter(CERTIFICATES)) == "linear"


def test_the_graph_is_the_network():
    for kind in KINDS:
        net, x, _ = network(kind, seed=7)
        net.eval()
        graph = read(net, x[:1])
        points = torch.rand(9, *x.shape[1:], dtype=x.dtype)
        torch.testing.assert_close(graph.values(points)[-1], net(points).detach())


def test_the_slack_of_float32_covers_rounding_many_times_and_stays_small():
    """A network with margins and weights as training makes them: what rounding does to it is far
    below the slack, and the slack is below a thousandth."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 8, 4, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(392, 60)]
    net = nn.Sequential(*layers, nn.ReLU(), nn.Linear(60, 5))
    centers = torch.rand(5, 1, 14, 14)
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(60):
        y = torch.randint(5, (32,))
        x = (centers[y] + 0.2 * torch.randn(32, 1, 14, 14)).clamp(0, 1)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    x, y, ball = x[:6], y[:6], Ball("linf", 0.02, (0.0, 1.0))
    points = ball.sample(x.repeat_interleave(50, 0), rng=torch.Generator())
    many = y.repeat_interleave(50)
    bound = CrownIBP().worst_margin(net, x, y, ball)
    with torch.no_grad():
        single = ModelLoss(net, many, margin)(points)
        net, x, points = net.double(), x.double(), points.double()
        error = (ModelLoss(net, many, margin)(points) - single).abs().max()
    slack = bound - CrownIBP().worst_margin(net, x, y, ball)
    assert (slack > 20 * error).all()
    assert (slack < 1e-3).all()
    assert bound.abs().mean() > 1
