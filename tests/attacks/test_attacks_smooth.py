"""The attack of SmoothAdv: its loss, its step, its noise."""

import pytest
import torch
from attack_specimens import inputs, network, seeded

from advlab.attacks import SmoothPGD
from advlab.attacks.smoothadv import SmoothedLoss
from advlab.losses import ModelLoss, cross_entropy, logistic, squared
from advlab.threats import Ball


def test_the_loss_is_minus_log_of_the_mean_probability():
    x, model = inputs(0), network(0)
    y = torch.arange(6) % 3
    noise = torch.randn(7, 6, 5, generator=seeded(0), dtype=torch.float64)
    mean = torch.stack([model(x + one).softmax(1) for one in noise]).mean(0)
    expected = -mean.gather(1, y[:, None])[:, 0].log()
    found = SmoothedLoss(ModelLoss(model, y, cross_entropy), noise)(x)
    torch.testing.assert_close(found, expected)
    sign, one = (2 * (y % 2) - 1).double(), network(1, classes=1)
    mean = torch.stack([(sign * one(x + n)[:, 0]).sigmoid() for n in noise]).mean(0)
    torch.testing.assert_close(SmoothedLoss(ModelLoss(one, sign, logistic), noise)(x), -mean.log())
    plain = ModelLoss(one, sign, squared)
    expected = torch.stack([plain(x + n) for n in noise]).mean(0)
    torch.testing.assert_close(SmoothedLoss(plain, noise)(x), expected)


@pytest.mark.parametrize("box", [None, (-2.0, 2.0)])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_its_walk_is_the_one_of_the_reference(norm, box):
    """From zero, steps of 2 eps / T along the normalised gradient, the same noise at every step."""
    x, model, y = inputs(1), network(1), torch.arange(6) % 3
    attack = SmoothPGD(sigma=0.3, samples=3, steps=4)
    ball = Ball(norm=norm, radius=0.2, box=box)
    rng = seeded(0)
    copy = torch.Generator().set_state(rng.get_state())
    found = attack(ModelLoss(model, y, cross_entropy), x, ball, rng=rng)
    noise = attack.noise(x, copy)
    assert noise.shape == (3, 6, 5)
    point, ends = x, []
    for _ in range(4):
        leaf = point.detach().requires_grad_()
        mean = torch.stack([model(leaf + one).softmax(1) for one in noise]).mean(0)
        value = -mean.gather(1, y[:, None])[:, 0].log()
        ends.append((value.detach(), point.detach()))
        (grad,) = torch.autograd.grad(value.sum(), leaf)
        unit = grad / grad.norm(dim=1, keepdim=True) if norm == "l2" else grad.sign()
        point = ball.project(point.detach() + 2 * 0.2 / 4 * unit, x)
    torch.testing.assert_close(found.x, point)
    assert all(bool((found.loss > 0).all()) for _ in ends)


def test_no_noise_is_plain_and_other_noise_is_another_attack():
    x, y, ball = inputs(2), torch.arange(6) % 3, Ball(norm="l2", radius=0.5)
    loss = ModelLoss(network(2), y, cross_entropy)
    plain = SmoothPGD(sigma=0.0)(loss, x, ball, rng=seeded(0))
    assert (plain.loss > loss(x)).all()
    some, other = (SmoothPGD(sigma=1.0)(loss, x, ball, rng=seeded(s)).x for s in (0, 1))
    assert not torch.equal(some, other)
    # The noise has mean zero and the wanted spread.
    drawn = SmoothPGD(sigma=0.25, samples=50).noise(torch.zeros(200, 10), seeded(3))
    assert abs(float(drawn.mean())) < 0.01
    assert float(drawn.std()) == pytest.approx(0.25, rel=0.02)
