"""Every certificate on the pretend device: the CPU's bounds."""

import pytest
import torch
from certify_nets import RADII, network
from pretend_device import PretendDevice, both
from torch import Tensor, nn

from advlab.certify import CERTIFICATES, BranchAndBound, Smoothed, certify
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.threats import Ball

KINDS = ["conv", "pooled", "forked", "two_layer", "linear"]


def examples(kind: str, device: torch.device) -> tuple[nn.Module, Tensor, Tensor]:
    net, x, y = network("mlp" if kind == "linear" else kind, 1)
    net = nn.Linear(5, 3).double() if kind == "linear" else net
    return net.to(device), x.to(device), y.to(device)


def bound(device: torch.device, name: str, kind: str, ball: Ball) -> Tensor | str:
    try:
        found = CERTIFICATES[name]().worst_margin(*examples(kind, device), ball)
        assert found.device.type == device.type
        return found
    except AdvlabError as refusal:
        return str(refusal)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", list(CERTIFICATES))
def test_every_certificate_gives_the_same_bounds(name, kind, norm):
    ball = Ball(norm, RADII[norm], (0.0, 1.0) if kind == "conv" else None)
    plain, pretended = both(lambda device: bound(device, name, kind, ball))
    if isinstance(plain, str):
        assert pretended == plain
    else:
        torch.testing.assert_close(pretended, plain, rtol=1e-13, atol=1e-13)


def test_examples_may_stay_on_the_cpu():
    net, x, y = examples("conv", torch.device("cpu"))
    ball = Ball("linf", 0.01)
    plain = certify(net, x, y, ball)
    with PretendDevice() as device:
        pretended = certify(net.to(device.place), x, y, ball)
    assert pretended.by == plain.by
    assert pretended.refused == plain.refused
    torch.testing.assert_close(pretended.bound, plain.bound, rtol=1e-12, atol=0)


def test_a_device_without_float64_certifies():
    def found(device: torch.device) -> Tensor:
        net, x, y = examples("two_layer", torch.device("cpu"))
        net, x, y = net.float().to(device), x.float().to(device), y.float().to(device)
        ball = Ball("l2", 0.1)
        return torch.stack([CERTIFICATES[name]().worst_margin(net, x, y, ball) for name in NAMES])

    plain, pretended = both(found, float64=False)
    torch.testing.assert_close(pretended, plain)


NAMES = [name for name in CERTIFICATES if name not in ("linear", "smoothing")]


def test_both_ends_of_branch_and_bound():
    def solved(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        from advlab.certify._graph.input_sets import InputSets
        from advlab.certify._graph.reader import read

        net, x, y = examples("two_layer", device)
        found = BranchAndBound().solve(read(net, x), InputSets(x, Ball("linf", 0.1)), y)
        return found.lower, found.exact, found.nodes

    for one, other in zip(*both(solved), strict=True):
        assert torch.equal(one, other)


def test_votes_of_a_smoothed_model():
    def votes(device: torch.device) -> tuple[Tensor, Tensor, float]:
        net, x, y = examples("conv", device)
        smoothed, rng = Smoothed(net, 0.25), generator("votes")
        vote = smoothed.certify(x, n0=20, n=200, rng=rng)
        guess = smoothed.predict(x, n=100, rng=rng)
        return vote.label, vote.radius, guess.label, smoothed.certified_error(vote, y, 0.1)

    plain, pretended = both(votes)
    assert all(torch.equal(one, other) for one, other in zip(plain[:3], pretended[:3], strict=True))
    assert plain[3] == pretended[3]
