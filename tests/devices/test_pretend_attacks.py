"""Every attack on the pretend device: the CPU's numbers, bit for bit."""

import pytest
import torch
from attack_specimens import dimension, inputs, loss_for, seeded, specimen
from pretend_device import both
from torch import Tensor

from advlab.attacks import ATTACKS, GTA, Attack, Exact, Transfer
from advlab.losses import ModelLoss, cross_entropy, squared
from advlab.threats import Ball, Cap

BALLS = {
    "linf": Ball("linf", 0.4),
    "linf box": Ball("linf", 0.4, (-2.0, 2.0)),
    "l2": Ball("l2", 0.7),
    "l2 box": Ball("l2", 0.7, (-2.0, 2.0)),
    "l1": Ball("l1", 1.0),
    "l1 box": Ball("l1", 1.0, (-2.0, 2.0)),
    "cap": Cap(0.5),
}


def run(attack: type[Attack], threat, device: torch.device) -> tuple[Tensor, Tensor]:
    d = dimension(attack)
    loss, x = loss_for(attack, 3), inputs(3, threat, d=d)
    if attack is Exact:
        w = torch.randn(d, generator=seeded(4), dtype=torch.float64).to(device)
        loss = ModelLoss(lambda x: x @ w, loss.y.to(device), squared)
    else:
        loss = ModelLoss(loss.model.to(device), loss.y.to(device), cross_entropy)
    one = specimen(attack, d)
    if attack is Transfer:
        one = Transfer(source=one.source.to(device))
    if attack is GTA:
        one = GTA(surrogate=one.surrogate.to(device))
    found = one(loss, x.to(device), threat, rng=seeded(7))
    assert found.x.device.type == found.loss.device.type == device.type
    return found.x, found.loss


@pytest.mark.parametrize("ball", list(BALLS))
@pytest.mark.parametrize("name", list(ATTACKS))
def test_every_attack_gives_the_same_numbers(name, ball):
    plain, pretended = both(lambda device: run(ATTACKS[name], BALLS[ball], device))
    for one, other in zip(plain, pretended, strict=True):
        assert torch.equal(one, other)
