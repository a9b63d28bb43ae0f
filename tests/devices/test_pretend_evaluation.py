"""Evaluations and one-line attacks on the pretend device, with data there or left on the CPU."""

import numpy as np
import pytest
import torch
from evaluated_nets import blobs, trained
from pretend_device import PretendDevice, both
from torch import Tensor, nn

import advlab
from advlab.attacks import APGD, PGD, Square
from advlab.core.devices import device_of
from advlab.evaluation.checks import comparison_attacks, monotonicity
from advlab.evaluation.memory import bytes_per_row
from advlab.threats import Ball

BALL = Ball("linf", 0.08, (0.0, 1.0))
CPU = torch.device("cpu")


def judged(device: torch.device, data: torch.device | None = None, n: int = 12, **more) -> dict:
    x, y = (part.to(data or device) for part in blobs(n))
    found = advlab.evaluate(trained().to(device), x, y, BALL, **more)
    shown = [(one.row, one.answer, one.margin) for one in found.examples]
    assert all(one.original.device == one.perturbed.device == CPU for one in found.examples)
    kept = {**found.numbers(), "examples": shown}
    if found.adversarial is not None:
        assert found.adversarial.x.device == found.adversarial.broken.device == x.device
        kept["points"] = found.adversarial.x.tolist()
    kept["members"] = [{**one, "seconds": 0} for one in kept["members"]]
    tried = {name: one[:2] for name, one in kept["certificates_tried"].items()}
    return {**kept, "seconds": 0, "certifying_seconds": 0, "certificates_tried": tried}


@pytest.mark.parametrize("data", [None, CPU])
def test_a_whole_evaluation_gives_the_same_numbers_also_without_float64(monkeypatch, data):
    monkeypatch.setattr(comparison_attacks, "BLACK_BOX", Square(queries=10))
    monkeypatch.setattr(monotonicity, "QUICK", PGD(steps=2, restarts=2, random_start=False))
    monkeypatch.setattr(monotonicity, "STEPS", (1, 3))

    def run(device: torch.device) -> dict:
        other, quick = trained().to(device), ("linear", "lipschitz", "ibp")
        return judged(device, data, attack=PGD(steps=3), transfer=other, certificates=quick)

    plain, pretended = both(run, float64=False)
    assert pretended == plain
    assert any("check" in one["name"] for one in plain["members"])


def test_data_on_the_cpu_move_batch_by_batch_and_batches_are_taken_up(tmp_path):
    def run(device: torch.device) -> list[dict]:
        about = {"attack": "fast", "checks": False, "certificates": ("ibp",), "points": True}
        about |= {"batch": 8, "store": tmp_path / device.type}
        return [judged(device, CPU, **about), judged(device, CPU, **about)]

    plain, pretended = both(run)
    assert pretended == plain
    assert pretended[0] == pretended[1]


def test_attack_returns_points_where_the_data_are():
    def found(device: torch.device, data: torch.device) -> list[Tensor]:
        x, y = (part.to(data) for part in blobs(12))
        adv = advlab.attack(trained().to(device), x, y, BALL, APGD(steps=4), batch=5, quiet=True)
        assert adv.x.device == adv.loss.device == adv.broken.device == x.device
        return [adv.x, adv.loss, adv.broken]

    plain, there = both(lambda device: found(device, device))
    _, here = both(lambda device: found(device, CPU))
    for one, other, third in zip(plain, there, here, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, third)


def test_adversarial_inputs_are_saved_from_the_device(tmp_path):
    with PretendDevice() as device:
        x, y = (part.to(device.place) for part in blobs(6))
        model = trained().to(device.place)
        found = advlab.attack(model, x, y, BALL, PGD(steps=2), quiet=True)
        path = found.save(tmp_path / "adv.npz", y=y)
        with np.load(path) as kept:
            assert torch.equal(torch.from_numpy(kept["x"]), found.x.cpu())


def test_a_model_of_one_output_with_labels_on_the_cpu():
    def margins(device: torch.device) -> Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1)).to(device)
        x, y = blobs(8)
        signs = torch.where(y > 0, 1, -1)
        return advlab.attack(model, x, signs, BALL, PGD(steps=2), quiet=True).loss

    plain, pretended = both(margins)
    assert torch.equal(plain, pretended)


def test_where_inputs_belong_and_what_a_row_costs():
    x, model = torch.zeros(2, 8), trained()
    costs = bytes_per_row(model, x)
    assert device_of(model, x) == device_of(lambda x: x, x) == CPU
    assert device_of(nn.Flatten(), x) == CPU
    with PretendDevice() as device:
        assert device_of(model.to(device.place), x) == device.place
        assert bytes_per_row(model, x.to(device.place)) == costs


@pytest.mark.parametrize("member", [PGD(steps=4), APGD(steps=4, early_exit=True)])
def test_a_random_model_draws_on_its_device(member):
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = trained()

        def forward(self, x):
            return self.net(x + 0.01 * torch.randn_like(x))

    def losses(device: torch.device) -> Tensor:
        torch.manual_seed(0)
        x, y = blobs(6)
        return advlab.attack(Noisy().to(device), x, y, BALL, member, quiet=True).loss

    plain, pretended = both(losses)
    assert torch.equal(plain, pretended)
