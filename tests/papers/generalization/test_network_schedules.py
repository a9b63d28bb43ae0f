"""Theorems 3 and 4 at their schedules: the plan by its formula, training and risk by hand."""

import math

import pytest
import torch

from advlab.attacks import Surrogate
from advlab.core.randomness import generators
from advlab.models.activations import ACTIVATIONS
from advlab.papers.generalization import theory
from advlab.papers.generalization.experiments import network_schedules as schedules
from advlab.papers.generalization.experiments._parts.lazy_nets import beyond_linear
from advlab.papers.generalization.models import LazyNet
from advlab.papers.generalization.reductions import RepeatedNeurons
from advlab.threats import Ball
from advlab.training import fit


def test_the_plan_is_the_theorems():
    for net in schedules.NETS:
        plan = schedules.Case(net=net, n=10**6).plan
        ratio = -math.log(math.log(1e6)) / math.log(math.sqrt(4 * math.log(1e6) / 1e6))
        assert plan.xi / 2 == pytest.approx(ratio)
        assert plan.steps == math.ceil(math.log(math.log(1e6)) / ratio)
    held = schedules.Case(schedule="fixed xi", n=10**6)
    assert held.plan.xi == schedules.Case(n=1000).plan.xi
    assert held.plan.steps == math.ceil(2 * math.log(math.log(1e6)) / held.plan.xi)


def test_few_different_weights_have_the_schedule_of_the_whole_layer(monkeypatch):
    """Where the width decides: 2 log(10^4)/sqrt(1000) is above sqrt(4 log(10^4)/10^4)."""
    monkeypatch.setattr(schedules, "WIDTH", 1000)
    for net in ("gelu", "sigmoid"):
        top = schedules.NETS[net]
        whole = theory.theorem3_schedule(10**4, 2, 2.0, top * (1000 // len(top)), 0.5)
        few = schedules.Case(net=net, n=10**4).plan
        assert few.xi == pytest.approx(whole.xi)
        assert few.steps == whole.steps
        monkeypatch.setattr(schedules, "WIDTH", 2**40)
        assert schedules.Case(net=net, n=10**4).plan.xi < 0.9 * whole.xi
        monkeypatch.setattr(schedules, "WIDTH", 1000)


def test_training_in_parts_is_training_of_the_whole_network(monkeypatch):
    """By the general engine, attack and autograd over all neurons."""
    monkeypatch.setattr(schedules, "CHUNK", 250)
    monkeypatch.setattr(schedules, "WIDTH", 400)
    case = schedules.Case(net="sigmoid", n=1000)
    x, y = case.law.sample(generators(schedules.NAME, case.n, seeds=case.seeds)[0])
    top = torch.tensor(schedules.NETS["sigmoid"], dtype=x.dtype).repeat_interleave(100)
    whole = LazyNet(torch.zeros(400, 2), top, "sigmoid").double()
    run = fit(whole, x, y, steps=case.plan.steps, lr=case.lr, loss="squared",
              ball=Ball("l2", case.eps), attack=Surrogate(xi=case.plan.xi))  # fmt: skip
    found = schedules._train(case, x, y)
    torch.testing.assert_close(run.model(x).detach(), found.values(x[None])[0][0])


@pytest.mark.parametrize("net", ["gelu", "relu"])
def test_the_risks_are_mean_losses_on_other_points(net, monkeypatch):
    monkeypatch.setattr(schedules, "WIDTH", 512)
    case = schedules.Case(net=net, n=1000, eps=0.5)
    found = schedules.compute(case)
    law = case.law
    trained = schedules._train(
        case, *law.sample(generators(schedules.NAME, case.n, seeds=case.seeds)[0])
    )
    best = schedules.linear.optimal(law.theta0_vector(), law.sigma2, Ball("l2", 0.5)).risk
    x, y = law.sample(torch.Generator().manual_seed(2), 400_000)
    for name, xi in (("surrogate", case.plan.xi), ("whole", 0.0)):
        moved = x[None] + trained.attack(x[None], y[None], 0.5, xi)
        loss = float((trained.values(moved)[0][0] - y).square().mean())
        assert found[name][0] * law.v2 + best == pytest.approx(loss, rel=0.015)


def test_a_linear_network_has_nothing_beyond_its_linear_part():
    theta = torch.ones(1, 2, 3, dtype=torch.float64)
    top = torch.tensor([-1.0, 0.5], dtype=torch.float64)
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    line = RepeatedNeurons(theta, top, 2, ACTIVATIONS["linear"])
    assert beyond_linear(line, x, x.sum(1), 0.3, 0.1) == 0.0
    bent = RepeatedNeurons(theta, top, 2, ACTIVATIONS["relu"])
    assert beyond_linear(bent, x, x.sum(1), 0.3, 0.1) != 0.0
