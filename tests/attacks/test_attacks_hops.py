"""How much code one step of PGD runs through."""

import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from attack_specimens import inputs, network, seeded

import advlab
from advlab.attacks import PGD
from advlab.losses import ModelLoss, cross_entropy, squared
from advlab.threats import Ball

ROOT = str(Path(advlab.__file__).parent)


def calls(steps: int, loss, x, ball) -> Counter:
    """How often each function of the package is called, by file and name."""
    seen: Counter = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            seen[frame.f_code.co_filename, frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        PGD(steps=steps)(loss, x, ball, rng=seeded(0))
    finally:
        sys.setprofile(before)
    return seen


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_step_of_pgd_is_at_most_twelve_calls_in_four_files(norm):
    x, ball = inputs(0), Ball(norm=norm, radius=0.1)
    label = torch.zeros(6, dtype=torch.long)
    given = {
        "l2": ModelLoss(lambda x: x.sum(1), label.double(), squared),
        "linf": ModelLoss(network(0).eval(), label, cross_entropy),
    }
    calls(1, given[norm], x, ball)  # the first call of a model looks whether it edits its input
    step = calls(11, given[norm], x, ball) - calls(10, given[norm], x, ball)
    assert 0 < step.total() <= 12, step
    assert len({file for file, _ in step}) <= 4, step


def test_the_loop_of_pgd_is_in_its_file():
    source = Path(ROOT, "attacks", "pgd.py").read_text()
    assert len(source.splitlines()) <= 60
    assert "for _ in range(self.steps)" in source
