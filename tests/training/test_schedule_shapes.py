"""Schedules against the schedulers of torch, run as torch runs them."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.optim import lr_scheduler

from advlab.core.errors import AdvlabError
from advlab.training import Constant, Cosine, Cyclic, Drops, FromTorch, Steps, Warmup


def by_torch(scheduler, lr: float, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    moving = scheduler(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        moving.step()
    return rates


def ours(schedule, steps: int) -> list[float]:
    return [schedule.at(step, steps) for step in range(steps)]


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 90), st.floats(0.1, 0.9))
def test_cyclic_is_the_triangle_of_torch(steps, peak):
    expected = by_torch(
        partial(
            lr_scheduler.CyclicLR,
            base_lr=0.0,
            max_lr=0.2,
            step_size_up=peak * steps,
            step_size_down=(1 - peak) * steps,
            cycle_momentum=False,
        ),
        0.2,
        steps,
    )
    schedule = Cyclic(lr=0.2, peak=peak)
    assert ours(schedule, steps) == pytest.approx(expected, abs=1e-12)
    assert schedule.at(0, steps) == 0.0
    assert schedule.at(steps, steps) == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6))
def test_steps_are_those_of_torch(length, parts):
    steps = length * parts
    expected = by_torch(partial(lr_scheduler.StepLR, step_size=length, gamma=0.1), 0.1, steps)
    assert ours(Steps(lr=0.1, every=1 / parts), steps) == pytest.approx(expected, rel=1e-12)


def test_drops_and_cosine_are_those_of_torch():
    expected = by_torch(partial(lr_scheduler.MultiStepLR, milestones=[75, 90], gamma=0.1), 0.1, 100)
    assert ours(Drops(lr=0.1), 100) == pytest.approx(expected)
    expected = by_torch(partial(lr_scheduler.CosineAnnealingLR, T_max=40), 0.1, 40)
    assert ours(Cosine(lr=0.1), 40) == pytest.approx(expected)


def test_a_warm_up_grows_linearly_to_the_schedule_and_is_then_the_schedule():
    warm = Warmup(lr=0.1, then=Constant(lr=0.1), share=0.25)
    assert ours(warm, 16) == pytest.approx([0.02, 0.04, 0.06, 0.08] + [0.1] * 12)
    assert ours(Warmup(lr=0.1, then=Drops(lr=0.1), share=0.0), 20) == ours(Drops(lr=0.1), 20)
    with pytest.raises(AdvlabError, match="one lr"):
        Warmup(lr=0.2, then=Constant(lr=0.1))


def test_any_scheduler_of_torch_gives_its_rates():
    one = partial(lr_scheduler.OneCycleLR, max_lr=0.3, total_steps=31, cycle_momentum=False)
    schedule = FromTorch(lr=0.1, scheduler=lambda optimizer, steps: one(optimizer))
    assert ours(schedule, 30) == by_torch(one, 0.1, 30)
    halved = FromTorch(
        lr=1.0, scheduler=lambda opt, steps: lr_scheduler.LambdaLR(opt, lambda s: 1 / (1 + s))
    )
    assert halved.at(7, 7) == pytest.approx(1 / 8)  # the look at the gradient after the last step
    assert math.isclose(halved.at(3, 7), 1 / 4)
