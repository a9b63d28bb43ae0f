"""Attacks by labels alone: the nearest boundary, within a budget of queries."""

import evaluated_nets as nets
import pytest
import torch
from attack_specimens import Recorder, seeded
from torch import nn

from advlab.attacks import FAB, HopSkipJump, RayS
from advlab.attacks._engine.cascade import search
from advlab.losses import ModelLoss, is_error, margin
from advlab.models import LabelsOnly
from advlab.threats import Ball

ATTACKS = [HopSkipJump(queries=2000, restarts=2), RayS(queries=400, restarts=2)]


def labels(model) -> LabelsOnly:
    return LabelsOnly(lambda x: model(x).argmax(1), classes=3)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_distance_to_a_hyperplane_is_its_closed_form(attack, norm):
    """|w x + b| / ||w||, in the dual norm; RayS knows directions of signs only, exact in linf."""
    w, b = torch.tensor([1.0, -1.0, 1.0, 1.0]), 0.2
    x = torch.randn(12, 4, generator=seeded(0))
    model = LabelsOnly(lambda x: (x @ w + b > 0).long())
    y = model(x).argmax(1)
    found = attack.minimum(ModelLoss(model, y, margin), x, norm, rng=seeded(1))
    exact = (x @ w + b).abs() / torch.linalg.vector_norm(w, 1 if norm == "linf" else 2)
    assert bool(found.found.all())
    assert bool((found.distance >= exact * (1 - 1e-4)).all())
    assert torch.allclose(found.distance, exact, rtol=0.02)


@pytest.mark.parametrize(("norm", "radius"), [("linf", 0.15), ("l2", 0.4)])
def test_labels_suffice_to_break_what_gradients_break(norm, radius):
    x, y = nets.blobs(45)
    ball = Ball(norm, radius, box=(0, 1))
    exact = FAB()(ModelLoss(nets.trained(), y, margin), x, ball, rng=seeded(0)).loss
    found = HopSkipJump(queries=2500, restarts=3)(
        ModelLoss(labels(nets.trained()), y, margin), x, ball, rng=seeded(0)
    )
    assert bool(ball.contains(found.x, x).all())
    assert is_error(found.loss).sum() >= is_error(exact).sum() - 1 > 15
    with torch.no_grad():
        assert torch.equal(is_error(margin(nets.trained()(found.x), y)), is_error(found.loss))
    if norm == "linf":
        found = RayS(queries=300)(
            ModelLoss(labels(nets.trained()), y, margin), x, ball, rng=seeded(0)
        )
        assert is_error(found.loss).sum() >= is_error(exact).sum() - 1


@pytest.mark.parametrize("attack", [HopSkipJump, RayS])
@pytest.mark.parametrize("queries", [50, 400])
def test_the_budget_of_queries_holds_for_every_row(attack, queries):
    x, y = nets.blobs(10)
    model = Recorder(nets.trained())
    ball = Ball("linf", 0.001, box=(0, 1))
    _, forwards, backwards = search(
        attack(queries=queries), ModelLoss(model, y, margin), x, ball, seeded(0)
    )
    assert backwards == 0
    # Beyond the budget: the bisection and jump under way, and the points that are returned.
    assert forwards <= 10 * (queries + 45)
    assert forwards >= 10 * queries * 0.8
    assert model.rows == forwards


def test_probes_that_agree_are_widened_on_steps():
    """A quantised model: its boundary is a staircase, and nothing changes within a step."""
    net = nets.trained()
    model = LabelsOnly(lambda x: net((10 * x).round() / 10).argmax(1), classes=3)
    x, y = nets.blobs(30)
    ball = Ball("linf", 0.15, box=(0, 1))
    found = HopSkipJump(queries=3000, restarts=3)(
        ModelLoss(model, y, margin), x, ball, rng=seeded(0)
    )
    assert is_error(found.loss).double().mean() > 0.4


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_one_row_and_one_class_start_from_random_points(attack, box):
    model = nn.Sequential(nn.Linear(8, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(2, 8))
        model[0].bias.copy_(torch.tensor([0.3, 0.0]))
    x = torch.full((1, 8), 0.5)
    found = attack.minimum(
        ModelLoss(model, torch.zeros(1, dtype=torch.long), margin), x, "linf", box, rng=seeded(0)
    )
    assert float(found.distance) == pytest.approx(0.15, rel=0.05)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_constant_model_is_not_broken_and_takes_little(attack):
    x = torch.rand(5, 4, generator=seeded(0))
    model = LabelsOnly(lambda x: torch.zeros(len(x), dtype=torch.long))
    loss = ModelLoss(model, torch.zeros(5, dtype=torch.long), margin)
    found, forwards, _ = search(attack, loss, x, Ball("linf", 0.1, box=(0, 1)), seeded(0))
    assert bool((found.loss == -1).all())
    assert forwards < 5 * 200


class Refusing(nn.Module):
    """A model that cannot take a batch of nothing, as decision trees cannot."""

    def forward(self, x):
        if len(x) == 0:
            raise ValueError("found array with 0 samples")
        return nets.trained()(x)


@pytest.mark.parametrize(
    "attack", [FAB(steps=5), FAB(steps=5, targets=2), HopSkipJump(queries=90), RayS(queries=90)]
)
@pytest.mark.parametrize("radius", [0.01, 3.0])
def test_no_model_is_asked_for_nothing(attack, radius):
    x, y = nets.blobs(8)
    attack(ModelLoss(Refusing(), y, margin), x, Ball("linf", radius), rng=seeded(0))
