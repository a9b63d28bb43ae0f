"""Evaluations and one-line attacks on the pretend device, with data there or left on the CPU."""

import pytest
import torch
from evaluated_nets import blobs, trained
from pretend_device import both

import advlab
from advlab.attacks import PGD
from advlab.threats import Ball

BALL = Ball("linf", 0.08, (0.0, 1.0))


def judged(device: torch.device, place: torch.device | None = None, **more) -> dict:
    x, y = (part.to(place or device) for part in blobs(40))
    found = advlab.evaluate(trained().to(device), x, y, BALL, **more)
    assert found.adversarial is None or found.adversarial.x.device == x.device
    kept = found.numbers()
    kept["members"] = [{**one, "seconds": 0} for one in kept["members"]]
    shown = [(one.row, one.answer, one.margin) for one in found.examples]
    return {**kept, "seconds": 0, "certifying_seconds": 0, "examples": shown}


@pytest.mark.parametrize("attack", ["fast", "rand", PGD(steps=5)])
def test_evaluate_gives_the_same_numbers(attack):
    plain, pretended = both(lambda device: judged(device, attack=attack))
    assert pretended == plain


def test_evaluate_moves_batches_of_data_that_stay_on_the_cpu(tmp_path):
    cpu = torch.device("cpu")
    plain, pretended = both(
        lambda device: judged(device, cpu, attack="fast", batch=16, points=True)
    )
    assert pretended == plain
