"""Networks as tensors: against the modules, autograd, Monte Carlo and loops over replicates."""

import pytest
import torch
from torch import nn

from advlab.attacks.base import value_and_gradient
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, margin
from advlab.models import Stack, TwoLayer
from advlab.papers.purification.measures import Nets, margin_of
from advlab.papers.purification.models import SymmetricReLU


def some(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=generator("features", name), dtype=torch.float64)


def stack(sigma: float) -> Stack:
    draw = [
        SymmetricReLU.draw(4, 6, 0.7, 0.3 + 0.1 * r, generator("net", r), sigma) for r in (0, 1, 2)
    ]
    return Stack(draw)


@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_nets_are_the_modules_alone_and_in_stacks(sigma):
    model, x = stack(sigma), some(3, 5, 4)
    nets = Nets.of(model)
    assert nets.smooth == (sigma > 0)
    torch.testing.assert_close(nets.value(x).flatten(), model(x.flatten(0, 1)).detach())
    for r in range(3):
        one = model.replicate(r)
        torch.testing.assert_close(nets.value(x)[r], one(x[r]).detach())
        torch.testing.assert_close(nets.gradient(x)[r], one.input_gradient(x[r]).detach())
        torch.testing.assert_close(Nets.of(one).value(x[r]), nets.value(x)[r])


@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_margins_have_the_gradients_of_autograd(sigma):
    model, x = stack(sigma), some(15, 4)
    y = torch.where(some(15, name="y") > 0, 1.0, -1.0).double()
    fast, plain = margin_of(model, y), ModelLoss(model, y, margin)
    for mine, theirs in zip(value_and_gradient(fast, x), value_and_gradient(plain, x), strict=True):
        torch.testing.assert_close(mine, theirs)
    one, index = model.replicate(1), torch.tensor([4, 0])
    torch.testing.assert_close(margin_of(one, y).rows(index)(x[index]), margin_of(one, y)(x)[index])
    torch.testing.assert_close(fast.under(stack(0.5))(x), margin_of(stack(0.5), y)(x))


def test_sides_and_units_are_expectations_over_the_noise():
    nets, u = Nets.at(torch.ones(1, 1, dtype=torch.float64), 0.3, 0.5), some(4, 1)
    rho = 0.5 * some(1, 400_000, name="rho")
    torch.testing.assert_close(
        nets.side(u), (u + rho > 0.3).double().mean(1, keepdim=True), atol=5e-3, rtol=0
    )
    sampled = torch.relu(u + rho - 0.3) - torch.relu(-u + rho - 0.3)
    torch.testing.assert_close(nets.units(u), sampled.mean(1, keepdim=True), atol=5e-3, rtol=0)


def test_other_models_are_left_to_autograd():
    y = torch.ones(3, dtype=torch.float64)
    net = TwoLayer.draw(4, 8, "relu", generator("two"), omega=1.0)
    assert isinstance(margin_of(net, y), ModelLoss)
    with pytest.raises(AdvlabError, match="SymmetricReLU"):
        Nets.of(nn.Linear(2, 1))


def test_bad_biases_are_refused():
    with pytest.raises(AdvlabError, match="biases of 0 or more"):
        Nets.at(some(3, 4), -0.1)
    with pytest.raises(AdvlabError, match="noise in all"):
        Nets(some(2, 3, 4), torch.ones(2).double(), torch.tensor([0.0, 1.0]).double())
