"""Certificates trust a set only for what it states of itself."""

import pytest
import torch
from certify_nets import KINDS, network, sampled_worst
from torch import nn

from advlab.attacks import PGD
from advlab.certify import (
    CERTIFICATES,
    IBP,
    BranchAndBound,
    Crown,
    CrownIBP,
    LinearExact,
    Smoothing,
    certify,
)
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball, Cap


class Doubled(Ball):
    """Holds everything within twice the radius, and does not say so to certificates."""

    def project(self, point, center):
        return self.twice.project(point, center)

    def contains(self, point, center, slack=None):
        return self.twice.contains(point, center, slack)

    def maximiser(self, grad, center):
        return self.twice.maximiser(grad, center)

    def sample(self, center, *, rng):
        return self.twice.sample(center, rng=rng)

    @property
    def twice(self) -> Ball:
        return Ball(self.norm, 2 * self.radius, self.box)


class DoubledAndStated(Doubled):
    def support(self, direction, center):
        return self.twice.support(direction, center)


class OnlyContains(Ball):
    def contains(self, point, center, slack=None):
        return torch.ones(len(point), dtype=torch.bool)


class Wanderer:
    def project(self, point, center):
        return point


class MixedIn(Wanderer, Ball):
    pass


class Labelled(Ball):
    """A field more, and the same set."""

    label: str = ""


@pytest.mark.parametrize("kind", [Doubled, OnlyContains, MixedIn])
def test_a_set_made_larger_without_a_word_is_refused(kind):
    net, x, y = network("two_layer", 1)
    ball = kind("l2", 0.2)
    for name, certificate in CERTIFICATES.items():
        assert "support function" in str(certificate().refuses(net, ball, x)), name
        assert "support function" in str(certificate().refuses(net, ball)), name
        with pytest.raises(AdvlabError, match=f"support function.*{kind.__name__}"):
            certificate().worst_margin(net, x, y, ball)
    result = certify(net, x, y, ball)
    assert result.refused.keys() == set(CERTIFICATES) - {"beta_crown", "smoothing"}
    assert not result.robust.any()


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
@pytest.mark.parametrize("kind", ["mlp", "conv", "two_layer", "residual"])
def test_a_larger_set_that_states_its_support_function_has_larger_bounds(kind, norm, box):
    """Bounds of the doubled set hold on all of it, and for CROWN are those of the ball twice as
    large as far as intervals and backward passes alone can tell."""
    net, x, y = network(kind, 1)
    ball = DoubledAndStated(norm, {"linf": 0.05, "l2": 0.2, "l1": 0.4}[norm], box)
    plain, twice = Ball(norm, ball.radius, box), ball.twice
    for certificate in (IBP(), CrownIBP(), Crown()):
        bound = certificate.worst_margin(net, x, y, ball)
        assert (bound >= sampled_worst(net, x, y, twice)).all()
        assert (bound > certificate.worst_margin(net, x, y, plain)).all()
    low, high = ball.interval(x)
    torch.testing.assert_close((low, high), twice.interval(x))
    torch.testing.assert_close(
        Crown().worst_margin(net, x, y, ball), Crown().worst_margin(net, x, y, twice),
        atol=0.02, rtol=0.1,
    )  # fmt: skip


def test_what_a_certificate_needs_beyond_the_support_function_is_named():
    net, x, _ = network("two_layer", 1)
    ball = DoubledAndStated("l2", 0.2)
    assert "within its radius" in str(CERTIFICATES["lipschitz"]().refuses(net, ball, x))
    assert "Euclidean ball" in str(BranchAndBound().refuses(net, ball, x))
    assert "Euclidean ball" in str(BranchAndBound().refuses(net, Ball("l1", 0.2), x))


def test_a_subclass_that_changes_nothing_is_the_ball_it_was():
    net, x, y = network("two_layer", 1)
    for certificate in CERTIFICATES.values():
        if certificate in (LinearExact, Smoothing):  # for other models
            continue
        found = certificate().worst_margin(net, x, y, Labelled("l2", 0.2, label="mine"))
        assert torch.equal(found, certificate().worst_margin(net, x, y, Ball("l2", 0.2)))


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.8])
@pytest.mark.parametrize("kind", KINDS)
def test_caps_are_certified_by_their_support_function(kind, radius):
    net, x, _ = network(kind, 1)
    cap = Cap(radius)
    x = x / x.flatten(1).norm(dim=1).reshape(-1, *[1] * (x.ndim - 1))
    with torch.no_grad():
        scores = net.eval()(x)
    y = scores.argmax(1) if scores.ndim > 1 and scores.shape[1] > 1 else scores.reshape(-1).sign()
    reached = torch.maximum(
        sampled_worst(net, x, y, cap),
        PGD(steps=10)(ModelLoss(net, y, margin), x, cap, rng=torch.Generator()).loss,
    )
    for name in ("lipschitz", "ibp", "crown_ibp", "crown"):
        assert (CERTIFICATES[name]().worst_margin(net, x, y, cap) >= reached).all(), name


def test_the_exact_search_is_not_for_caps():
    net, x, _ = network("two_layer", 1)
    assert "Euclidean ball" in str(BranchAndBound().refuses(net, Cap(0.1), x))


def test_linear_networks_over_caps_are_exact():
    """max over a cap of <w, x>: along the great circle, cos(max(angle - angle of the cap, 0))."""
    torch.manual_seed(0)
    net, x = nn.Linear(4, 2).double(), torch.randn(6, 4, dtype=torch.float64)
    x, y = x / x.norm(dim=1, keepdim=True), torch.tensor([0, 1, 0, 1, 0, 1])
    w, b = (one.detach()[1] - one.detach()[0] for one in (net.weight, net.bias))
    sign = torch.where(y == 0, 1.0, -1.0).double()
    turn = 2 * torch.asin(torch.tensor(0.3 / 2, dtype=torch.float64))
    angle = torch.arccos(sign * (x @ w) / w.norm())
    exact = w.norm() * (angle - turn).clamp(min=0).cos() + sign * b
    torch.testing.assert_close(LinearExact().worst_margin(net, x, y, Cap(0.3)), exact)
