"""Straight-through stand-ins: the same values, and gradients where the model has none."""

import masked_nets
import pytest
import torch
import torch.nn.functional as F
from attack_specimens import seeded
from torch import nn

from advlab.attacks import BPDA, PGD
from advlab.attacks._engine.stand_ins import StandIn
from advlab.attacks.base import value_and_gradient
from advlab.losses import ModelLoss, is_error, margin
from advlab.threats import Ball

W = torch.randn(6, 3, generator=torch.Generator().manual_seed(3))


def winners_by_scatter(z):
    values, index = z.topk(2, dim=1)
    return torch.zeros_like(z).scatter(1, index, values)


HIDDEN = {
    "round": lambda x: (5 * x).round(),
    "floor": lambda x: torch.floor(5 * x),
    "method floor": lambda x: (5 * x).floor(),
    "floor division": lambda x: x // 0.2,
    "div with a rounding mode": lambda x: torch.div(x, 0.2, rounding_mode="floor"),
    "sign": lambda x: torch.sign(x - 0.5),
    "heaviside": lambda x: torch.heaviside(x - 0.5, torch.tensor(0.0)),
    "comparison, cast": lambda x: (x > 0.5).float(),
    "comparison, to": lambda x: (x <= 0.5).to(x.dtype),
    "comparison, times": lambda x: 2 * (x > 0.5),
    "comparison, where": lambda x: torch.where(x > 0.5, 1.0, -1.0),
    "comparisons, and": lambda x: ((x > 0.3) & (x < 0.9)).float(),
    "not": lambda x: (~(x > 0.5)).float(),
    "masked_fill": lambda x: torch.ones_like(x).masked_fill(x < 0.5, 0.0),
    "bytes": lambda x: (10 * x).byte().float() / 10,
    "whole numbers": lambda x: (10 * x).long() / 10,
    "detach": lambda x: x.detach(),
    "saturated sigmoid": lambda x: torch.sigmoid(1e4 * (x - 0.5)),
    "saturated tanh": lambda x: (1e4 * (x - 0.5)).tanh(),
    "saturated clamp": lambda x: (100 * (x - 0.5)).clamp(-1, 1),
    "hardtanh": lambda x: F.hardtanh(100 * (x - 0.5)),
    "softmax inside": lambda x: 3 * F.softmax(1e4 * x, dim=1),
    "argmax, one hot": lambda x: F.one_hot(x.argmax(1), 6).float(),
}
REFUSED = ("floor division", "heaviside")
"""torch has no derivative of these, not even zero."""


@pytest.mark.parametrize("name", HIDDEN)
def test_values_stay_and_gradients_come(name):
    x = torch.rand(40, 6, generator=seeded(0))

    def model(x):
        return HIDDEN[name](x).to(x.dtype) @ W

    loss = ModelLoss(model, torch.zeros(40, dtype=torch.long), margin)
    stand_value, stand_grad = value_and_gradient(loss.under(StandIn(model)), x)
    torch.testing.assert_close(stand_value, loss(x), rtol=0, atol=0)
    if name not in REFUSED:
        assert (value_and_gradient(loss, x)[1] == 0).all(1).double().mean() > 0.5
    assert (stand_grad != 0).any(1).all()


def test_winners_by_index_move_the_losers_too():
    x = torch.rand(10, 6, generator=seeded(0))
    loss = ModelLoss(lambda x: winners_by_scatter(x) @ W, torch.zeros(10).long(), margin)
    grad = value_and_gradient(loss, x)[1]
    stand_value, stand_grad = value_and_gradient(loss.under(StandIn(loss.model)), x)
    assert torch.equal(stand_value, loss(x))
    assert ((grad != 0).sum(1) <= 2).all()
    assert ((stand_grad != 0).sum(1) > 2).all()


def test_the_last_softmax_gives_way_to_its_logits_and_models_without_tricks_stay():
    x, net = torch.rand(5, 6), nn.Linear(6, 3)
    hard = StandIn(lambda x: F.softmax(1000 * net(x), dim=1))
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            assert torch.equal(hard(x), 1000 * net(x))
    plain = nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.LayerNorm(9), nn.GELU(), nn.Linear(9, 3))
    loss = ModelLoss(plain, torch.zeros(5, dtype=torch.long), margin)
    for one, two in zip(
        value_and_gradient(loss, x), value_and_gradient(loss.under(StandIn(plain)), x), strict=True
    ):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("kind", masked_nets.KINDS)
def test_it_breaks_what_plain_gradients_leave(kind):
    x, y = masked_nets.clouds(32)
    loss = ModelLoss(masked_nets.masked(kind), y, margin)
    ball, inner = Ball("linf", 0.1, box=(0, 1)), PGD(steps=20, climb="margin")
    plain = is_error(inner(loss, x, ball, rng=0).loss).sum()
    found = BPDA(inner=inner)(loss, x, ball, rng=0)
    assert bool(ball.contains(found.x, x).all())
    # The judge is the model itself.
    assert torch.equal(found.loss, loss(found.x))
    assert is_error(found.loss).sum() >= plain + (-2 if kind == "winners" else 8)


def test_a_model_that_cannot_run_with_stand_ins_is_attacked_as_it_is():
    net = nn.Linear(6, 3)

    def picky(x):
        if torch.overrides._is_torch_function_mode_enabled():
            raise TypeError("no modes here")
        return net(x)

    x, y = torch.rand(6, 6), torch.zeros(6, dtype=torch.long)
    ball = Ball("linf", 0.2)
    one, two = (BPDA()(ModelLoss(model, y, margin), x, ball, rng=0).loss for model in (picky, net))
    torch.testing.assert_close(one, two)
