"""A time for everything: the cheap first, what was found is kept, what was skipped is said."""

import time

import evaluated_nets as nets
import pytest
import torch
from torch import nn

import advlab
from advlab.attacks import PGD
from advlab.attacks._engine.cascade import Cascade
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.evaluation.budget import CHECKS, Budget, part_of, seconds
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball

BALL = Ball("linf", 0.1, box=(0, 1))


class Slow(nn.Module):
    """A network that takes its time, and counts its passes."""

    def __init__(self, net: nn.Module, pause: float):
        super().__init__()
        self.net, self.pause, self.passes = net, pause, 0

    def forward(self, x):
        time.sleep(self.pause)
        self.passes += 1
        return self.net(x)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(3, 3.0), (0.5, 0.5), ("90", 90), ("90s", 90), ("2m", 120), ("1h30m", 5400), ("1.5m", 90)],
)
def test_times_are_numbers_or_words(given, wanted):
    assert seconds(given) == wanted


@pytest.mark.parametrize("given", [0, -1, "two", "2x", "", "m", True, float("nan"), None, "-3s"])
def test_other_times_are_refused_in_a_line(given):
    with pytest.raises(AdvlabError, match="budget"):
        seconds(given)


def test_batches_share_the_time_by_their_rows_and_leave_some_for_checks():
    budget, now = Budget(100.0, 40), time.monotonic()
    first = budget.next_batch(10)
    assert first == pytest.approx(now + (1 - CHECKS) * 100 / 4, abs=0.5)
    # Nothing was used of it, so the next batch gets a third of all.
    assert budget.next_batch(10) == pytest.approx(now + (1 - CHECKS) * 100 / 3, abs=0.5)
    assert Budget(None, 40).next_batch(10) is None
    assert part_of(None, 0.5) is None


def test_a_member_out_of_time_keeps_what_it_found_and_says_what_it_left():
    x, y = nets.blobs(60)
    net = Slow(nets.trained(), 0.01)
    loss = ModelLoss(net, y, margin)
    before = Cascade(loss, x, BALL, generator("time"))
    cascade = Cascade(loss, x, BALL, generator("time"), deadline=time.monotonic() + 0.15)
    result = cascade.run_member("PGD", PGD(steps=1000))
    assert result.skipped == result.rows
    assert 1 < result.forwards / result.rows < 100
    assert (cascade.worst >= before.clean).all()
    assert float((cascade.worst - before.clean).mean()) > 0
    late = cascade.run_member("late", PGD(steps=5))
    assert (late.forwards, late.skipped) == (0, late.rows)


def test_an_evaluation_ends_in_time_with_a_bracket_and_an_account():
    x, y = nets.blobs(60)
    net, begun = Slow(nets.trained(), 0.01), time.monotonic()
    found = advlab.evaluate(net, x, y, BALL, "standard", budget=2)
    assert time.monotonic() - begun < 6
    assert found.budget == 2
    assert found.skipped
    assert found.clean_error <= found.robust_error
    assert "skipped for lack of time" in str(found)
    whole = advlab.evaluate(nets.trained(), x, y, BALL, "fast", budget="1h")
    plain = advlab.evaluate(nets.trained(), x, y, BALL, "fast")
    assert not whole.skipped
    assert whole.robust_error == plain.robust_error


def test_a_linear_model_needs_next_to_no_attack():
    rng = generator("linear first")
    net, x = nn.Linear(10, 3), torch.randn(50, 10, generator=rng)
    y = net(x).argmax(1)
    found = advlab.evaluate(net, x, y, Ball("linf", 0.05), checks=False)
    assert found.robust_error == found.certified_error
    given, proved, _ = found.certificates_tried["linear"]
    assert given == 50
    assert proved == 50 * (1 - found.certified_error)
    assert set(found.certificates_tried) == {"linear"}  # it is exact: no other is asked
    attacked = {one.name: one.rows for one in found.members}
    assert attacked["APGD cross entropy"] == 50 - proved


def test_what_a_certificate_was_asked_is_told_also_where_it_proved_nothing():
    x, y = nets.blobs(30)
    found = advlab.evaluate(nets.trained(), x, y, Ball("linf", 2.0), "fast", checks=False)
    given, proved, took = found.certificates_tried["ibp"]
    assert given > 0
    assert proved == 0
    assert took >= 0
    assert "ibp: proved 0 of" in str(found)
