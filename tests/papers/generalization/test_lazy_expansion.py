"""Delta_1 to Delta_3 of Theorem 3's proof, and networks of repeated neurons, each in other ways."""

import math
from dataclasses import replace

import polars as pl
import pytest
import torch

from advlab.attacks import Surrogate
from advlab.models.activations import ACTIVATIONS, SHAPES
from advlab.papers.generalization.experiments import lazy_expansion
from advlab.papers.generalization.measures.expansion_terms import expansion_terms, straight
from advlab.papers.generalization.models import LazyNet
from advlab.papers.generalization.reductions import RepeatedNeurons
from advlab.threats import Ball
from advlab.training import fit

EPS, XI = 0.3, 0.1


def draw(*shape: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.fixture
def net() -> RepeatedNeurons:
    top = torch.tensor([-1.0, 0.5, 1.0], dtype=torch.float64)
    return RepeatedNeurons(0.5 * draw(2, 3, 4), top, 12, SHAPES["gelu"]())


def whole(net: RepeatedNeurons, r: int) -> tuple[torch.Tensor, torch.Tensor]:
    """All h neurons of one network."""
    times = net.width // len(net.top)
    return net.theta[r].repeat_interleave(times, 0), net.top.repeat_interleave(times)


def test_training_is_that_of_the_whole_network():
    """By the general engine: attack and autograd over all neurons."""
    x, y = draw(30, 4), draw(30)
    top = torch.tensor([-1.0, 0.5, 1.0], dtype=torch.float64)
    net = RepeatedNeurons(torch.zeros(1, 3, 4, dtype=x.dtype), top, 60, ACTIVATIONS["sigmoid"])
    whole_net = LazyNet(torch.zeros(60, 4), top.repeat_interleave(20), "sigmoid").double()
    run = fit(whole_net, x, y, steps=40, lr=0.5, loss="squared", ball=Ball("l2", EPS),
              attack=Surrogate(xi=XI))  # fmt: skip
    for _ in range(40):
        net = net.step(x[None], y[None], EPS, XI, 0.5)
    torch.testing.assert_close(run.model(x).detach(), net.values(x[None])[0][0])
    assert net.theta.norm() > 0.1


def by_hand(net: RepeatedNeurons, r: int, x: torch.Tensor, y: torch.Tensor) -> dict:
    """One input at a time, over all neurons, gradients by autograd."""
    theta, top = whole(net, r)
    root, slope = math.sqrt(net.width), net.activation.slope

    def outputs(point, weights, bent):
        z = weights @ point
        return top @ (net.activation.phi(z) if bent else slope * z) / root

    def attack(point, answer, bent):
        point = point.clone().requires_grad_()
        (g,) = torch.autograd.grad((outputs(point, theta, bent) - answer) ** 2, point)
        return EPS * g / (g.norm() ** 2 + XI**2).sqrt()

    found = {"attacks": [], "outputs": [], "slopes": [], "gradient": torch.zeros(4).double()}
    for point, answer in zip(x, y, strict=True):
        bent, flat = (attack(point, answer, b) for b in (True, False))
        found["attacks"].append((bent - flat).norm())
        gap = outputs(point + bent, theta, True) - outputs(point + flat, theta, False)
        found["outputs"].append(gap.abs())
        at = theta @ (point + bent)
        found["slopes"].append((net.activation.dphi(at) - slope).abs())
        for move, b, sign in ((flat, False, 1), (bent, True, -1)):
            weights = theta.clone().requires_grad_()
            loss = (outputs(point + move, weights, b) - answer) ** 2
            (g,) = torch.autograd.grad(loss, weights)
            found["gradient"] += sign * top @ g / root / len(x)
    return found


def test_the_terms_are_their_definitions(net):
    x, y = draw(2, 6, 4), draw(2, 6)
    found = expansion_terms(net, x, y, EPS, XI)
    for r in range(2):
        hand = by_hand(net, r, x[r], y[r])
        torch.testing.assert_close(found.attacks[r], torch.stack(hand["attacks"]))
        torch.testing.assert_close(found.outputs[r], torch.stack(hand["outputs"]))
        slopes = torch.stack(hand["slopes"])[:, :: net.width // 3]
        torch.testing.assert_close(found.slopes[r], slopes)
        torch.testing.assert_close(found.gradient[r], hand["gradient"].norm())


@pytest.mark.parametrize("xi", [0.0, XI])
def test_the_bounds_hold_for_networks_that_are_not_lazy(net, xi):
    x, y = 2 * draw(2, 500, 4), draw(2, 500)
    found = expansion_terms(net, x, y, EPS, xi)
    curve = net.activation.lipschitz
    assert (found.slopes <= curve * found.slope_order).all()
    beta = net.linear_part.norm(dim=1)[:, None]
    assert (found.outputs <= found.attacks * beta + curve / 2 * found.second_order).all()
    if xi:
        assert (found.attacks <= EPS / xi * found.attack_bound).all()
    else:
        order = 2 * EPS * curve / net.activation.slope * found.attack_order
        assert (found.attacks * found.same_sign <= order).all()


def test_a_linear_network_has_no_terms_and_the_remainder_is_of_second_order(net):
    x, y = draw(2, 50, 4), draw(2, 50)
    line = expansion_terms(replace(net, activation=straight(0.5)), x, y, EPS, XI)
    assert (
        max(float(line.attacks.max()), float(line.outputs.max()), float(line.gradient.max()))
        < 1e-14
    )
    sizes = []
    for width in (12 * 10**8, 12 * 10**10):
        # The same f to first order: theta falls like 1/sqrt(h).
        lazy = replace(net, width=width, theta=net.theta * math.sqrt(12 / width))
        found = expansion_terms(lazy, x, y, EPS, XI)
        sizes.append((found.gradient.mean(), found.remainder.mean()))
    assert float(sizes[0][0] / sizes[1][0]) == pytest.approx(10, rel=0.02)
    assert float(sizes[0][1] / sizes[1][1]) == pytest.approx(100, rel=0.05)


def test_the_scope_is_that_of_the_largest_size_that_is_judged():
    sizes = {
        "width": [2**16, 2**22, 2**22, 2**8],
        "n": [1000, 32_000, 4000, 250],
        "d": [2, 8, 2, 2],
    }
    scope = {one.name: one for one in lazy_expansion.assumptions(pl.DataFrame(sizes))}
    reached = math.log(32_000) * math.sqrt(64 / 32_000)
    assert scope["low dimension"].reached == pytest.approx(reached)
    assert scope["low dimension"].holds
    assert scope["lazy"].reached == pytest.approx(2 * math.log(1000) * math.sqrt(2 / 2**16))
    wide = pl.DataFrame({"width": [2**22], "n": [4000], "d": [8]})
    (low,) = (one for one in lazy_expansion.assumptions(wide) if one.name == "low dimension")
    assert not low.holds
