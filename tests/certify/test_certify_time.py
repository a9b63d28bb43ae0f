"""Certificates under a deadline: what was tried, what it proved, what there was no time for."""

import time

import torch
from certify_nets import network
from torch import nn

from advlab.certify import CERTIFICATES, Crown, certify
from advlab.threats import Ball

BALL = Ball("linf", 0.05)


class Slow(Crown):
    """A certificate that takes a fixed time per example and proves nothing."""

    name = "slow"

    def bound(self, graph, sets, y):
        time.sleep(0.1 * len(y))
        return torch.full((len(y),), 1.0, dtype=sets.center.dtype)


def test_without_a_deadline_everything_is_tried_and_told():
    net, x, y = network("mlp", 6)
    result = certify(net, x, y, Ball("l2", 0.3))
    assert result.skipped == {}
    assert result.tried.keys() | result.refused.keys() == set(CERTIFICATES) - {
        "beta_crown",
        "smoothing",
    }
    assert list(result.tried)[:2] == ["ibp", "lipschitz"]
    left = len(x)
    for one in result.tried.values():
        assert one.given == left
        assert one.seconds > 0
        left -= one.proved
    assert left == int((~result.robust).sum())


def test_a_deadline_in_the_past_skips_all():
    net, x, y = network("mlp", 6)
    result = certify(net, x, y, BALL, deadline=time.monotonic())
    wanted = [name for name in CERTIFICATES if name != "smoothing"]  # it is no smoothed classifier
    assert result.skipped == dict.fromkeys(wanted, 4)
    assert result.tried == {}
    assert (result.bound == torch.inf).all()


def test_a_slow_certificate_stops_between_batches_and_says_what_it_left():
    net, _, _ = network("mlp", 6)
    x, y = torch.rand(60, 5, dtype=torch.float64), torch.zeros(60, dtype=torch.long)
    begun = time.monotonic()
    result = certify(net, x, y, BALL, ["ibp", Slow(), "crown"], deadline=begun + 2)
    assert time.monotonic() - begun < 6
    assert result.tried["ibp"].given == 60
    left = 60 - result.tried["ibp"].proved
    slow = result.tried["slow"]
    assert 0 < slow.given < left
    assert slow.proved == 0
    assert result.skipped["slow"] == left - slow.given
    assert result.tried["slow"].seconds > 0.2


def test_enough_time_changes_nothing():
    net, x, y = network("two_layer", 6)
    names = ["linear", "ibp", "lipschitz", "crown_ibp", "crown", "exact"]
    ends = (None, time.monotonic() + 600)
    free, timed = (certify(net, x, y, BALL, names, deadline=end) for end in ends)
    assert torch.equal(free.bound, timed.bound)
    assert free.by == timed.by
    assert timed.skipped == {}


def test_an_exact_bound_of_a_linear_model_is_all_there_is():
    torch.manual_seed(0)
    net, x = nn.Linear(4, 3).double(), torch.rand(50, 4, dtype=torch.float64)
    result = certify(net, x, net(x).argmax(1), BALL, deadline=time.monotonic() + 60)
    assert result.tried.keys() == {"linear"}
    assert result.tried["linear"].given == 50
    assert result.skipped == result.refused == {}
