"""SPSA: its estimate, its optima, and what it does without gradients."""

import pytest
import torch
from attack_specimens import inputs, losses, seeded
from torch import nn

from advlab.attacks import PGD, SPSA, Exact, Random
from advlab.attacks._engine.queries import Query
from advlab.attacks.base import BestSoFar
from advlab.losses import ModelLoss, logistic, margin, squared
from advlab.threats import Ball, Cap

NORMS = ["l1", "l2", "linf"]


@pytest.mark.parametrize("threat", [*(Ball(norm=n, radius=0.2) for n in NORMS), Cap(radius=0.2)])
def test_the_estimate_turns_to_the_gradient(threat):
    w = torch.randn(10, generator=seeded(1), dtype=torch.float64)
    x = inputs(1, threat, rows=4, d=10)
    best = BestSoFar(lambda x: x @ w, x)
    query = Query(best, seeded(0), climb_margin=False)
    # The cosine to w of a mean over n draws is about 1 / sqrt(1 + (d - 1) / n).
    for samples, least in ((10, 0.5), (1000, 0.98)):
        estimate = SPSA(samples=samples)._estimate(query, threat, x)
        assert float((estimate @ w / w.norm()).min()) > least


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_near_the_worst_case_of_a_linear_model(norm, box):
    w = torch.randn(12, generator=seeded(1), dtype=torch.float64)
    x = torch.rand(6, 12, generator=seeded(2), dtype=torch.float64)
    loss = ModelLoss(lambda x: x @ w + 100, torch.ones(6).double(), margin)
    ball = Ball(norm=norm, radius={"l1": 1.0, "l2": 0.5, "linf": 0.1}[norm], box=box)
    best = Exact()(loss, x, ball, rng=seeded(0)).loss - loss(x)
    found = SPSA(steps=30, samples=8)(loss, x, ball, rng=seeded(0)).loss - loss(x)
    guess = Random(samples=480)(loss, x, ball, rng=seeded(0)).loss - loss(x)
    assert (found <= best + 1e-9).all()
    assert float((found / best).mean()) > 0.95
    assert found.mean() > guess.mean()


def test_close_to_pgd_on_a_network():
    loss, x = losses(3)[False], inputs(3)
    ball = Ball(norm="l2", radius=0.5)
    clean = loss(x).detach()
    pgd = PGD(steps=40)(loss, x, ball, rng=seeded(0)).loss - clean
    spsa = SPSA(steps=30, samples=8, climb_margin=False)(loss, x, ball, rng=seeded(0)).loss
    assert float(((spsa - clean) / pgd).mean()) > 0.95


def test_a_model_without_gradients_is_broken_and_its_rows_leave():
    seen: list[int] = []

    class Stair(nn.Module):
        def forward(self, x):
            seen.append(len(x))
            return (20 * x.sum(1)).floor()

    x = torch.cat([torch.full((5, 3), 0.05), torch.full((2, 3), 9.0)])
    loss = ModelLoss(Stair(), torch.ones(7), logistic)
    ball = Ball(norm="linf", radius=0.2)
    attack = SPSA(steps=20, samples=4, probe=0.5)
    result = attack(loss, x, ball, rng=seeded(0))
    assert torch.equal(loss.climbing(margin)(result.x) > 0, torch.arange(7) < 5)
    assert seen.count(2) >= 8 * 10
    blind = PGD(random_start=False)(loss, x, ball, rng=seeded(0))
    assert torch.equal(blind.x, x)


def test_regression_losses_are_climbed_themselves():
    loss, x = losses(6)[True], inputs(6)
    ball = Ball(norm="linf", radius=0.3)
    best = Exact()(loss, x, ball, rng=seeded(0)).loss
    found = SPSA(steps=30, samples=8)(loss, x, ball, rng=seeded(0)).loss
    assert loss.loss is squared
    assert float((found / best).median()) > 0.9
