"""Loss changes, robust gaps and sharpness curves: closed forms, grids, and models left alone."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from advlab.attacks import FGM, PGD
from advlab.core.errors import AdvlabError
from advlab.losses import cross_entropy
from advlab.measure.flatness import flatness
from advlab.measure.loss_change import loss_change
from advlab.measure.robust_gap import robust_gap
from advlab.measure.sharpness import input_sharpness
from advlab.measure.sharpness_curve import sharpness_over_radii
from advlab.papers.cgro.theory.flatness import linear_logistic
from advlab.threats import Ball

RADII = (0.0, 0.1, 0.4, 1.0)
QUICK = {"draws": 4, "starts": 1, "climb": 4, "along": 3}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def linear(seed: int = 0) -> tuple[nn.Linear, torch.Tensor, torch.Tensor]:
    model = nn.Linear(6, 1).double()
    x = torch.randn(9, 6, generator=seeded(seed), dtype=torch.float64)
    y = torch.tensor([1.0, -1, 1, 1, -1, -1, 1, 1, -1], dtype=torch.float64)
    with torch.no_grad():
        model.weight.copy_(torch.randn(1, 6, generator=seeded(seed + 1)))
        model.bias.zero_()
    return model, x, y


def relu_network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(2, 10), nn.ReLU(), nn.Linear(10, 3)).double()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_both_ends_of_a_linear_model_are_its_closed_form(norm):
    model, x, y = linear()
    found = loss_change(model, x, y, Ball(norm, 1.0), RADII, loss="logistic", rng=0)
    theta = model.weight[0].detach().numpy()
    for k, radius in enumerate(RADII):
        exact = linear_logistic(theta, x.numpy(), y.numpy(), norm, radius).rise
        np.testing.assert_allclose(found.low[k].numpy(), exact, atol=1e-9)
        assert found.high is not None
        np.testing.assert_allclose(found.high[k].numpy(), exact, atol=1e-6)
        worst = y.numpy() * (x.numpy() @ theta) - radius * np.linalg.norm(
            theta, {"l1": np.inf, "l2": 2, "linf": 1}[norm]
        )
        np.testing.assert_array_equal(found.broken[k].numpy(), worst <= 0)
        np.testing.assert_array_equal(found.certified[k].numpy(), worst > 0)


def brute_force(model: nn.Module, x: torch.Tensor, y: torch.Tensor, radius: float) -> torch.Tensor:
    axis = torch.linspace(-radius, radius, 121, dtype=torch.float64)
    points = x[:, None] + torch.cartesian_prod(axis, axis)
    with torch.no_grad():
        losses = cross_entropy(model(points.flatten(0, 1)), y.repeat_interleave(len(axis) ** 2))
    return losses.view(len(x), -1).amax(1)


def test_the_bracket_holds_what_a_grid_finds_and_is_wide_nowhere():
    model = relu_network()
    x, y = torch.randn(8, 2, generator=seeded(3)).double(), torch.arange(8) % 3
    found = loss_change(model, x, y, Ball("linf", 1.0), RADII, batch=3, rng=1)
    assert found.high is not None
    for k, radius in enumerate(RADII):
        rise = brute_force(model, x, y, radius) - found.clean
        # A grid misses a maximum by at most the steepest slope times half its spacing.
        assert (found.low[k] >= rise - 1e-9 - 0.02 * radius).all()
        assert (found.low[k] <= rise + 0.05 * radius + 1e-12).all()
        assert (found.high[k] >= rise - 1e-12).all()
    assert float((found.high[0] - found.low[0]).abs().max()) == 0
    for values in (found.low, found.high, found.broken.double()):
        assert (values.diff(dim=0) >= 0).all()
    assert not (found.broken & found.certified).any()


def test_a_weak_attack_at_one_radius_takes_what_another_radius_found():
    """FGM's one step passes over the peak of a wave once the radius is large."""

    def wave(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(3 * x[:, 0])

    x = torch.randn(40, 2, generator=seeded(5)).double()
    y, radii = torch.ones(40).double(), (0.05, 0.3, 1.0, 2.0)
    settings = {"loss": "logistic", "attack": FGM(), "certificates": ()}
    both = loss_change(wave, x, y, Ball("linf", 1.0), radii, **settings)
    alone = [loss_change(wave, x, y, Ball("linf", r), **settings).low[0] for r in radii]
    assert (both.low >= torch.stack(alone)).all()
    assert (both.low > torch.stack(alone) + 1e-6).any()
    assert both.high is None
    assert both.certified is None


def test_the_gap_of_linear_models_is_exact_and_vanishes_between_equal_data():
    model, x, y = linear(7)
    ball = Ball("l2", 0.3)
    gap = robust_gap(model, (x[:4], y[:4]), (x[4:], y[4:]), ball, loss="logistic", rng=0)
    length = float(model.weight.detach().norm())
    worst = np.logaddexp(0, -(y * (x @ model.weight[0])).detach().numpy() + 0.3 * length)
    errors = ((y * (x @ model.weight[0])).detach().numpy() - 0.3 * length) <= 0
    assert gap.loss_gap == pytest.approx(worst[4:].mean() - worst[:4].mean(), abs=1e-9)
    assert gap.error_gap == pytest.approx(errors[4:].mean() - errors[:4].mean())
    assert gap.loss_bracket == pytest.approx((gap.loss_gap, gap.loss_gap), abs=1e-6)
    assert gap.error_bracket == pytest.approx((gap.error_gap, gap.error_gap))
    none = robust_gap(model, (x, y), (x, y), ball, loss="logistic", attack=FGM())
    assert none.loss_gap == none.error_gap == 0
    assert robust_gap(lambda x: model(x), (x, y), (x, y), ball, loss="logistic",
                      certificates=()).loss_bracket is None  # fmt: skip


def test_brackets_hold_the_gap_that_a_stronger_attack_finds():
    model, ball = relu_network(2), Ball("linf", 0.2)
    x, y = torch.randn(30, 2, generator=seeded(8)).double(), torch.arange(30) % 3
    halves = (x[:15], y[:15]), (x[15:], y[15:])
    weak = robust_gap(model, *halves, ball, attack=PGD(steps=1))
    true = [float(brute_force(model, *half, 0.2).mean()) for half in halves]
    low, high = weak.loss_bracket
    assert low <= true[1] - true[0] <= high


def test_sharpness_over_radii_never_falls_and_is_what_single_calls_find():
    model = relu_network(1)
    x, y = torch.randn(6, 2, generator=seeded(2)).double(), torch.arange(6) % 3
    ball, radii = Ball("l2", 0.5), (0.1, 0.5, 1.0)
    curve = sharpness_over_radii(model, x, y, ball, radii, rng=seeded(0), **QUICK)
    rng = seeded(0)
    singles = [input_sharpness(model, x, y, ball.with_radius(r), rng=rng, **QUICK) for r in radii]
    torch.testing.assert_close(
        curve.low, torch.stack([s.steepest for s in singles]).cummax(0).values
    )
    less = sharpness_over_radii(model, x, y, ball, radii, bound=False, rng=seeded(0), **QUICK)
    assert torch.equal(less.low, curve.low)
    assert less.high is None
    assert curve.high is not None
    for values in (curve.low, curve.rise, curve.high):
        assert (values.diff(dim=0) >= 0).all()
    assert (curve.low <= curve.high).all()
    # The mean value theorem, between ends that differ in kind.
    assert (curve.rise <= torch.tensor(radii)[:, None] * curve.high + 1e-9).all()


def test_local_and_global_flatness_of_a_linear_model_are_closed_forms():
    model, x, y = linear(3)
    theta, radius = model.weight[0].detach().numpy(), 0.25
    train, test = (x[:5], y[:5]), (x[5:], y[5:])
    found = flatness(model, train, test, Ball("linf", radius), loss="logistic", batch=2)
    local, population = (
        linear_logistic(theta, a.numpy(), b.numpy(), "linf", radius).upper / radius
        for a, b in (train, test)
    )
    np.testing.assert_allclose(found.local.numpy(), local, atol=1e-9)
    np.testing.assert_allclose(found.population.numpy(), population, atol=1e-9)
    assert found.ratio == pytest.approx(population.mean() / local.mean())
    assert [one.value for one in found.estimates] == pytest.approx(
        [local.mean(), population.mean()]
    )


def test_the_model_is_left_as_it_was():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))
    before = copy.deepcopy(model.state_dict())
    x, y = torch.randn(5, 4, generator=seeded(1)), torch.tensor([0, 1, 0, 1, 1])
    ball = Ball("linf", 0.1)
    loss_change(model, x, y, ball)
    flatness(model, (x, y), (x, y), ball, **QUICK)
    assert model.training
    assert all(m.training for m in model.modules())
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_what_cannot_be_meant_is_refused_in_one_line():
    model, x, y = linear()
    with pytest.raises(AdvlabError, match="rising order"):
        loss_change(model, x, y, Ball("l2", 1.0), (0.2, 0.1), loss="logistic")
    with pytest.raises(AdvlabError, match="one label each"):
        loss_change(model, x, y[:3], Ball("l2", 1.0), loss="logistic")
