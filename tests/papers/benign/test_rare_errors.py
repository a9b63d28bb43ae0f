"""Importance sampling of errors against the exact error of linear rules, and against counting."""

import math
import sys

import pytest
import torch
from scipy.special import log_ndtr

from advlab.attacks import PGD
from advlab.core.randomness import generator, generators
from advlab.models import Stack, TwoLayer
from advlab.papers.benign.data import Clusters
from advlab.papers.benign.measures import errors, rare_errors
from advlab.threats import Ball

ATTACK = PGD(steps=20, step_size=0.2, random_start=False, jump=False)


def linear_rules(cosines, k=30) -> Stack:
    """f = <v, x>/sqrt 2 by two ReLUs, with these cosines of v and e_1."""
    nets = []
    for cos in cosines:
        v = torch.zeros(k, dtype=torch.float64)
        v[0], v[1] = cos, math.sqrt(1 - cos**2)
        top = torch.tensor([1.0, -1.0], dtype=torch.float64)
        nets.append(TwoLayer(torch.stack([v, -v]), top, "relu"))
    return Stack(nets)


@pytest.mark.parametrize(("mu_norm", "radius"), [(2.0, 0.0), (9.0, 0.0), (40.0, 0.0), (9.0, 1.5)])
def test_the_error_of_a_linear_rule_is_that_of_the_formula(mu_norm, radius):
    cosines = torch.tensor([0.5, 0.9])
    found = rare_errors(
        linear_rules(cosines), mu_norm, Ball("l2", radius), ATTACK,
        generators("linear rules", seeds=range(2)), draws=2000 if radius else 8000,
    )  # fmt: skip
    margin = cosines * mu_norm - radius
    exact = torch.from_numpy(log_ndtr(-margin.double().numpy()))
    assert (found.log_error - exact).abs().max() < 0.25
    assert (found.margin - margin).abs().max() < 0.1
    assert (found.effective > 50).all()


def test_where_errors_can_be_counted_they_are_the_same():
    rng, k, mu_norm = generator("counted"), 20, 2.0
    nets = [TwoLayer.draw(k, 10, "relu", rng, omega=0.3) for _ in range(2)]
    with torch.no_grad():
        for net in nets:
            net.weight[:, 0] += net.top
    stack, ball = Stack(nets), Ball("l2", 0.5)
    found = rare_errors(stack, mu_norm, ball, ATTACK, generators("a", seeds=range(2)), 2000)
    y = torch.ones(2, 6000, dtype=torch.float64)
    y[:, ::2] = -1
    noise = torch.randn(2, 6000, k, generator=rng, dtype=torch.float64)
    x = noise.clone()
    x[..., 0] += y * mu_norm
    counted = errors(stack, Clusters(x, y, y, noise), ball, ATTACK).robust
    assert (counted > 0.05).all()
    torch.testing.assert_close(found.log_error.exp(), counted, rtol=0.15, atol=0)


def test_a_network_that_is_wrong_everywhere_has_an_error_of_one():
    stack = linear_rules([-0.9, -0.9])
    found = rare_errors(stack, 9.0, Ball("l2", 0.0), ATTACK, generators("w", seeds=range(2)), 200)
    torch.testing.assert_close(found.log_error, torch.zeros(2).double())


@pytest.mark.parametrize("radius", [0.0, 1.5])
def test_points_in_parts_give_what_all_of_them_give_at_once(radius, monkeypatch):
    def found() -> tuple[torch.Tensor, torch.Tensor]:
        rngs = generators("parts", seeds=range(2))
        return rare_errors(linear_rules([0.5, 0.9]), 9.0, Ball("l2", radius), ATTACK, rngs, 130)

    whole = found()
    monkeypatch.setattr(sys.modules[rare_errors.__module__], "TOGETHER", 50)
    for one, other in zip(found(), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)
