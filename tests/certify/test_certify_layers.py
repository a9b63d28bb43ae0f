"""Today's layers: every bound holds against samples and PGD, and says something."""

import pytest
import torch
from certify_layers import ACTIVATIONS, LAYERS, Function, layered
from certify_nets import sampled_worst
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.attacks import PGD
from advlab.certify import IBP, Crown, CrownIBP, Lipschitz
from advlab.certify._graph.reader import read
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball

BOUNDS = (IBP(), CrownIBP(), Crown())


def reached(net, x, y, ball):
    attack = PGD(steps=8)(ModelLoss(net, y, margin), x, ball, rng=torch.Generator()).loss
    return torch.maximum(attack, sampled_worst(net, x, y, ball, draws=60))


@pytest.mark.parametrize("name", LAYERS)
def test_bounds_hold_and_tighter_methods_are_tighter(name):
    net, x, y = layered(name, seed=0)
    ball = Ball("linf", 0.05, (0.0, 1.0))
    worst = reached(net, x, y, ball)
    ibp, crown_ibp, crown = (c.worst_margin(net, x, y, ball) for c in BOUNDS)
    assert (worst <= crown).all()
    assert (crown <= crown_ibp).all()
    assert (crown_ibp <= ibp).all()
    assert ibp.isfinite().all()
    # Backward bounds gain much where intervals forget how numbers hang together.
    if name in ACTIVATIONS:
        assert (crown - worst).mean() < 0.35 * (ibp - worst).mean()


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(sorted(LAYERS)),
    seed=st.integers(0, 10**6),
    norm=st.sampled_from(["linf", "l2", "l1"]),
    radius=st.sampled_from([0.0, 0.01, 0.1, 0.6]),
    boxed=st.booleans(),
)
def test_random_networks(name, seed, norm, radius, boxed):
    net, x, y = layered(name, seed, n=2)
    ball = Ball(norm, radius, (0.0, 1.0) if boxed else None)
    worst = sampled_worst(net, x, y, ball, draws=40)
    bounds = [c.worst_margin(net, x, y, ball) for c in BOUNDS]
    if Lipschitz().refuses(net, ball, x) is None:
        bounds.append(Lipschitz().worst_margin(net, x, y, ball))
    for bound in bounds:
        assert (bound >= worst).all()


@pytest.mark.parametrize("name", LAYERS)
def test_at_radius_zero_the_bound_is_the_margin(name):
    net, x, y = layered(name, seed=1)
    clean = ModelLoss(net, y, margin)(x)
    bound = CrownIBP().worst_margin(net, x, y, Ball("linf", 0.0))
    torch.testing.assert_close(bound, clean, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["attention", "layer norm", "softmax", "gelu"])
def test_float32_bounds_hold_for_float32_networks(name):
    net, x, y = layered(name, seed=2)
    ball = Ball("linf", 0.02)
    wide = Crown().worst_margin(net, x, y, ball)
    net, x = net.float(), x.float()
    bound = Crown().worst_margin(net, x, y, ball)
    assert (bound >= reached(net, x, y, ball)).all()
    torch.testing.assert_close(bound.double(), wide, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["attention", "heads", "encoder", "tokens", "group norm"])
def test_the_graph_is_the_network_for_any_number_of_examples(name):
    net, x, _ = layered(name, seed=3)
    graph = read(net, x[:1])
    points = torch.rand(7, *x.shape[1:], dtype=x.dtype)
    torch.testing.assert_close(graph.values(points)[-1], net(points))


def test_lipschitz_says_what_it_does_not_know():
    net, x, _ = layered("layer norm", seed=0)
    assert "NormalisedProduct" in str(Lipschitz().refuses(net, Ball("l2", 0.1), x))


def test_a_function_that_has_no_value_somewhere_certifies_nothing():
    """Where the logarithm's argument may be negative there is no bound, and no crash."""
    net = nn.Sequential(nn.Linear(3, 3)).double()
    net[0].weight.data, net[0].bias.data = torch.eye(3).double(), torch.zeros(3).double()
    x, y = torch.tensor([[0.05, 1.0, 2.0]]).double(), torch.tensor([2])
    functions = (torch.log, torch.rsqrt, torch.reciprocal, torch.sqrt)
    for one in functions:
        function = Function(lambda v, part, one=one: -one(part(v)), net)
        for certificate in BOUNDS:
            bound = certificate.worst_margin(function, x, y, Ball("linf", 0.1))
            assert (bound == torch.inf).all()
