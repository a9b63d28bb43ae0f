"""Every attack and threat set on the pretend device: the CPU's numbers, bit for bit."""

import pytest
import torch
from attack_specimens import dimension, inputs, loss_for, seeded, specimen
from evaluated_nets import blobs, trained
from pretend_device import PretendDevice, both
from torch import Tensor, nn

from advlab.attacks import (
    APGD,
    ATTACKS,
    EAD,
    FAB,
    GTA,
    MIM,
    PGD,
    Attack,
    AutoAttack,
    CarliniWagner,
    Exact,
    Grid,
    Square,
    Transfer,
)
from advlab.losses import ModelLoss, cross_entropy, margin, squared
from advlab.threats import Ball, Cap, FeatureBall, Threat

BALLS = {
    "linf": Ball("linf", 0.4, (-2.0, 2.0)),
    "l2": Ball("l2", 0.7, (-2.0, 2.0)),
    "l1": Ball("l1", 1.0, (-2.0, 2.0)),
}
FEATURES = (0.4, 0.0, 0.2, 0.1, 0.3)
SETS = {
    **BALLS,
    "l2 without box": Ball("l2", 0.7),
    "cap": Cap(0.5),
    "linf of features": FeatureBall("linf", FEATURES, low=-2.0, high=2.0),
    "l2 of features": FeatureBall("l2", FEATURES, low=-2.0),
    "l1 of features": FeatureBall("l1", 0.5, mask=[True, False, True, True, True]),
}


SHORT: dict[type[Attack], Attack] = {
    PGD: PGD(steps=3),
    MIM: MIM(steps=3),
    APGD: APGD(steps=6),
    FAB: FAB(steps=3),
    CarliniWagner: CarliniWagner(steps=3, rounds=2),
    EAD: EAD(steps=3, rounds=2),
    Square: Square(queries=8, squares=False),
    AutoAttack: AutoAttack(steps=2, queries=2),
    Grid: Grid(points=8, refinements=1),
}


def same(run, **about) -> None:
    plain, pretended = both(run, **about)
    for one, other in zip(plain, pretended, strict=True):
        assert torch.equal(one, other)


def attacked(
    attack: type[Attack], threat: Threat, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    d = dimension(attack)
    loss, x = loss_for(attack, 3), inputs(3, threat, d=d).to(device, dtype)
    if attack is Exact:
        w = torch.randn(d, generator=seeded(4), dtype=torch.float64).to(device, dtype)
        loss = ModelLoss(lambda x: x @ w, loss.y.to(device, dtype), squared)
    else:
        loss = ModelLoss(loss.model.to(device, dtype), loss.y.to(device), cross_entropy)
    one = SHORT.get(attack) or specimen(attack, d)
    if isinstance(one, Transfer):
        one = Transfer(source=one.source.to(device, dtype), inner=PGD(steps=3))
    if isinstance(one, GTA):
        one = GTA(surrogate=one.surrogate.to(device, dtype))
    found = one(loss, x, threat, rng=seeded(7))
    assert found.x.device.type == found.loss.device.type == device.type
    return found.x, found.loss


@pytest.mark.parametrize("name", list(ATTACKS))
def test_every_attack_gives_the_same_numbers(name):
    for norm in ("l2", "l1"):
        same(lambda device, n=norm: attacked(ATTACKS[name], BALLS[n], device, torch.float64))


@pytest.mark.parametrize("name", list(ATTACKS))
def test_every_attack_runs_on_a_device_without_float64(name):
    ball = BALLS["linf"]
    same(lambda device: attacked(ATTACKS[name], ball, device, torch.float32), float64=False)


@pytest.mark.parametrize("name", list(SETS))
def test_every_threat_set_has_the_same_geometry(name):
    threat = SETS[name]

    def run(device: torch.device) -> list[Tensor]:
        center = inputs(5, threat).to(device)
        rng = [seeded(1), seeded(2)]
        move = torch.randn(6, 5, generator=seeded(3), dtype=torch.float64).to(device)
        point = threat.sample(center, rng=rng)
        found = [
            threat.project(center + 3 * move, center), threat.maximiser(move, center), point,
            threat.steepest(move), threat.contains(point, center), threat.dual_norm(move),
            threat.uniform_move(center, rng=seeded(4)),
        ]  # fmt: skip
        if threat.states_support:
            found += [threat.support(move, center), *threat.interval(center)]
        return found

    same(run)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_square_on_images(norm):
    def run(device: torch.device) -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 3))
        x = torch.rand(3, 2, 6, 6, generator=seeded(0)).to(device)
        y = torch.tensor([0, 1, 2], device=device)
        loss = ModelLoss(net.to(device), y, margin)
        found = Square(queries=12)(loss, x, Ball(norm, 0.3, (0.0, 1.0)), rng=seeded(1))
        return found.x, found.loss

    same(run)


SETTINGS = {
    "targets": PGD(steps=3, climb="cross_entropy", target="random"),
    "rows that leave": PGD(steps=3, restarts=2, early_exit=True),
    "the last point": PGD(steps=3, keep="last", jump=False),
    "targeted dlr": APGD(steps=5, climb="dlr", target="most_likely", early_exit=True),
    "means of draws": APGD(steps=3, draws=2),
}


@pytest.mark.parametrize("name", list(SETTINGS))
def test_settings_of_the_ascents(name):
    def run(device: torch.device) -> tuple[Tensor, Tensor]:
        x, y = (part.to(device) for part in blobs(12))
        loss = ModelLoss(trained().to(device), y, cross_entropy)
        found = SETTINGS[name](loss, x, Ball("linf", 0.2), rng=seeded(0))
        return found.x, found.loss

    same(run)


def waits(attack: Attack, ball: Ball) -> int:
    with PretendDevice() as device:
        x, y = (part.to(device.place) for part in blobs(12))
        loss = ModelLoss(trained().to(device.place), y, cross_entropy)
        attack(loss, x, ball, rng=seeded(0))
        return sum(device.synchronisations.values())


@pytest.mark.parametrize("ball", [Ball("linf", 0.1, (0.0, 1.0)), Ball("l2", 0.2), BALLS["l1"]])
@pytest.mark.parametrize("attack", [PGD, MIM, APGD])
def test_a_step_waits_for_nothing(attack, ball):
    few, many = (waits(attack(steps=steps), ball) for steps in (5, 15))
    assert few == many
