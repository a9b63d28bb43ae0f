"""Stacks agree with their members, and lazy networks with the linear model they follow."""

import pytest
import torch
from torch import nn

from advlab.attacks import FGM, PGD, Surrogate
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generators
from advlab.losses import ModelLoss, cross_entropy
from advlab.models import ACTIVATIONS, Linear, Normalised, Stack
from advlab.papers.generalization.models import LazyNet
from advlab.threats import Ball
from advlab.training import fit


def mlp(rng: torch.Generator) -> nn.Module:
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=rng, dtype=torch.float64))
    return net


FACTORIES = {
    "mlp": mlp,
    "lazy": lambda rng: LazyNet.draw(4, 10, "relu", rng),
    "linear": lambda rng: Linear(torch.randn(4, generator=rng, dtype=torch.float64)),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_replicate_alone_and_in_the_stack_agree(name):
    rngs = generators("models", seeds=range(5))
    stack = Stack.draw(FACTORIES[name], rngs)
    x = torch.randn(5, 7, 4, dtype=torch.float64)
    together = stack(x.flatten(0, 1)).unflatten(0, (5, 7))
    for r in range(5):
        torch.testing.assert_close(stack.replicate(r)(x[r]), together[r])


def test_more_replicates_change_no_earlier_one():
    few = Stack.draw(mlp, generators("m", seeds=range(2)))
    many = Stack.draw(mlp, generators("m", seeds=range(6)))
    for a, b in zip(few.parameters(), many.parameters(), strict=True):
        assert torch.equal(a, b[:2])


@pytest.mark.parametrize("attack", [FGM(), PGD(steps=3, restarts=2), Surrogate(xi=0.1)], ids=str)
def test_training_a_stack_is_training_each_replicate(attack):
    """Same data, same generator: alone or in company, to float tolerance."""
    seeds = range(4)
    x = torch.stack([torch.randn(8, 4, generator=g).double() for g in generators("x", seeds=seeds)])
    y = torch.randint(0, 3, (4, 8), generator=torch.Generator().manual_seed(0))
    settings = {"steps": 6, "lr": 0.3, "ball": Ball(norm="l2", radius=0.5), "attack": attack}
    stack = Stack.draw(mlp, generators("m", seeds=seeds))
    together = fit(stack, x, y, rng=generators("a", seeds=seeds), **settings)
    for r in (0, 3):
        alone = mlp(generators("m", seeds=seeds)[r])
        result = fit(alone, x[r], y[r], rng=generators("a", seeds=seeds)[r], **settings)
        torch.testing.assert_close(result.log.losses()[:, 0], together.log.losses()[:, r])
        for p, q in zip(alone.parameters(), stack.replicate(r).parameters(), strict=True):
            torch.testing.assert_close(p, q)


def test_an_attack_on_a_stack_attacks_each_member():
    stack = Stack.draw(mlp, generators("m", seeds=range(3)))
    x, y = torch.randn(12, 4, dtype=torch.float64), torch.randint(0, 3, (12,))
    ball, attack = Ball(norm="linf", radius=0.2), PGD(steps=4)
    all_rows = attack(
        ModelLoss(stack, y, cross_entropy), x, ball, rng=generators("s", seeds=range(3))
    )
    own = attack(
        ModelLoss(stack.replicate(1), y[4:8], cross_entropy),
        x[4:8],
        ball,
        rng=generators("s", seeds=range(3))[1],
    )
    torch.testing.assert_close(all_rows.x[4:8], own.x)


def test_batchnorm_has_no_place_in_a_stack():
    with pytest.raises(AdvlabError, match="BatchNorm"):
        Stack([nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_at_zero_and_the_linear_part(activation):
    phi, slope = ACTIVATIONS[activation].phi, ACTIVATIONS[activation].slope
    zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    assert float(phi(zero).detach()) == 0
    assert float(torch.autograd.grad(phi(zero).sum(), zero)[0]) == pytest.approx(slope)
    net = LazyNet.draw(3, 400, activation, generators("lazy", seeds=[0])[0], delta=1.0)
    x = torch.randn(50, 3, dtype=torch.float64)
    if activation == "linear":
        torch.testing.assert_close(net(x), x @ net.linear_part())
    elif activation == "sigmoid":
        torch.testing.assert_close(
            net(1e-3 * x), 1e-3 * x @ net.linear_part(), rtol=1e-4, atol=1e-9
        )


def test_relu_top_layers_are_balanced_and_zero_starts_are_zero():
    net = LazyNet.draw(3, 51, "relu", generators("lazy", seeds=[1])[0], delta=None)
    torch.testing.assert_close(net.top.clamp(min=0).norm(), net.top.clamp(max=0).norm())
    assert not net.theta.any()
    with pytest.raises(AdvlabError, match="activation"):
        LazyNet(net.theta, net.top, "swish")


def test_normalisation_is_a_layer():
    model = Normalised(nn.Flatten(), [0.5, 0.0], [0.5, 2.0])
    x = torch.ones(1, 2, 1, 1)
    torch.testing.assert_close(model(x), torch.tensor([[1.0, 0.5]]))
    with pytest.raises(AdvlabError, match="std"):
        Normalised(nn.Identity(), [0.0], [0.0])
