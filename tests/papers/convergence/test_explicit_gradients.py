"""Two-layer networks with written-out gradients against autograd, for every attack."""

from itertools import product

import pytest
import torch
from turns import in_turn

from advlab.attacks import FGM, PGD, Anti, Identity, Random, Switch, Transfer
from advlab.attacks.base import value_and_gradient
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generators
from advlab.losses import ModelLoss, pseudo_huber
from advlab.models import Linear, Stack, TwoLayer
from advlab.models.activations import SHAPES
from advlab.papers.convergence.reductions import ExplicitAdversarial, ExplicitLoss
from advlab.threats import Ball, Cap
from advlab.training import Adversarial, fit

SEEDS = range(3)
NETS = {
    "paired": {"init": "paired"},
    "symmetric, biases, top": {"init": "symmetric", "omega": 0.5, "bias": True, "train_top": True},
    "torch": {"init": "torch", "bias": True, "train_top": True},
}


def problem(shape="sin_cos", net="paired", d=3, n=5, width=8):
    rngs = generators("explicit", seeds=SEEDS)
    stack = Stack.draw(lambda rng: TwoLayer.draw(d, width, shape, rng, **NETS[net]), rngs)
    x = torch.stack([torch.randn(n, d, generator=rng, dtype=torch.float64) for rng in rngs])
    x = x / x.norm(dim=-1, keepdim=True)
    y = torch.stack([2.0 * torch.randint(2, (n,), generator=rng).double() - 1 for rng in rngs])
    return stack, x, y


def train(stack, x, y, objective, attack=None, threat=None, steps=8):
    return fit(
        stack,
        x,
        y,
        steps=steps,
        lr=0.5,
        objective=objective(
            loss="pseudo_huber",
            ball=threat or Cap(radius=0.3),
            attack=attack or PGD(steps=4),
        ),
        rng=generators("attack", seeds=SEEDS),
    )


@pytest.mark.parametrize(("shape", "net"), in_turn(product(SHAPES, NETS), always=3))
def test_a_run_is_that_of_autograd(shape, net):
    (ours, x, y), (usual, *_) = problem(shape, net), problem(shape, net)
    a, b = train(ours, x, y, ExplicitAdversarial), train(usual, x, y, Adversarial)
    torch.testing.assert_close(a.log.losses(), b.log.losses(), rtol=1e-10, atol=1e-12)
    for p, q in zip(ours.parameters(), usual.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "attack",
    [
        Identity(),
        Random(samples=1),
        FGM(),
        PGD(steps=3, restarts=2),
        Anti(inner=PGD(steps=3)),
        Switch(inner=PGD(steps=3)),
        Transfer(source=problem(width=6)[0]),
    ],
    ids=lambda attack: type(attack).__name__,
)
@pytest.mark.parametrize("threat", [Cap(radius=0.2), Ball(norm="linf", radius=0.1)], ids=str)
def test_every_attack_runs_on_it(attack, threat):
    (ours, x, y), (usual, *_) = problem(), problem()
    a = train(ours, x, y, ExplicitAdversarial, attack, threat)
    b = train(usual, x, y, Adversarial, attack, threat)
    torch.testing.assert_close(a.log.losses(), b.log.losses(), rtol=1e-9, atol=1e-11)


def test_one_network_is_a_stack_of_one():
    stack, x, y = problem()
    alone = stack.replicate(0)
    loss = ExplicitLoss.of(alone, y[0], pseudo_huber)
    usual = ModelLoss(alone, y[0], pseudo_huber)
    for ours, theirs in zip(
        loss.value_and_gradient(x[0]), value_and_gradient(usual, x[0]), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
    with torch.no_grad():
        alone.weight += 0.1 * torch.ones_like(alone.weight).cumsum(0)
    loss = ExplicitLoss.of(alone, y[0], pseudo_huber)
    for ours, theirs in zip(
        loss.value_and_gradient(x[0]), value_and_gradient(usual, x[0]), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_other_networks_are_refused():
    with pytest.raises(AdvlabError, match="a TwoLayer network"):
        ExplicitLoss.of(Linear(torch.zeros(3)), torch.ones(2), pseudo_huber)
