"""Lazy networks in closed form give the run of attack and autograd, and one neuron that of many."""

import pytest
import torch

from advlab.attacks import FGM, PGD, Identity, Surrogate
from advlab.core.errors import AdvlabError
from advlab.models import ACTIVATIONS, Linear, Stack
from advlab.papers.generalization.models import LazyNet
from advlab.papers.generalization.reductions.lazy_training import (
    CURVES,
    LazyAdversarial,
    single_neuron,
)
from advlab.threats import Ball
from advlab.training import Adversarial, fit

NETS = sorted(ACTIVATIONS)


def problem(activation: str, n=25, d=4, width=6, replicates=3, delta=-1.0):
    """delta = -1 starts far from zero, where kinks and saturation make FGM fail on some rows."""
    rngs = [torch.Generator().manual_seed(seed) for seed in range(replicates)]
    x = torch.stack([torch.randn(n, d, generator=rng, dtype=torch.float64) for rng in rngs])
    y = x.sum(2) + torch.stack([torch.randn(n, generator=rng, dtype=torch.float64) for rng in rngs])
    stack = Stack.draw(lambda rng: LazyNet.draw(d, width, activation, rng, delta), rngs)
    return stack, x, y


def train(model, x, y, objective, attack, radius=0.7, lr=0.5, steps=40):
    result = fit(
        model,
        x,
        y,
        steps=steps,
        lr=lr,
        objective=objective(loss="squared", ball=Ball(norm="l2", radius=radius), attack=attack),
    )
    return dict(result.model.named_parameters())["theta"].detach(), result.log.losses()


@pytest.mark.parametrize("activation", NETS)
@pytest.mark.parametrize(
    "attack", [FGM(), Surrogate(xi=0.01), Surrogate(xi=0.5), Surrogate(xi=0.0), Identity()], ids=str
)
def test_the_closed_form_is_attack_and_autograd(activation, attack):
    closed = train(*problem(activation), LazyAdversarial, attack)
    plain = train(*problem(activation), Adversarial, attack)
    torch.testing.assert_close(closed[0], plain[0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(closed[1], plain[1], rtol=1e-10, atol=1e-12)


def test_the_cases_above_have_rows_on_which_the_fast_gradient_fails():
    stack, x, y = problem("relu")
    objective = Adversarial(loss="squared", ball=Ball(norm="l2", radius=0.7), attack=FGM())
    context = objective.context(stack, x.flatten(0, 1), y.flatten(), torch.Generator(), 3)
    still = (context.attacked() == context.x).all(1)
    assert 0 < int(still.sum()) < len(still)


@pytest.mark.parametrize("activation", NETS)
def test_one_network_alone_and_its_losses(activation):
    stack, x, y = problem(activation)
    alone = train(stack.replicate(1), x[1], y[1], LazyAdversarial, Surrogate(xi=0.1))
    together = train(stack, x, y, LazyAdversarial, Surrogate(xi=0.1))
    torch.testing.assert_close(alone[0], together[0][1])
    rows = (stack, x.flatten(0, 1), y.flatten())
    against = {"loss": "squared", "ball": Ball(norm="l2", radius=0.3), "attack": FGM()}
    closed, plain = LazyAdversarial(**against), Adversarial(**against)
    context = plain.context(*rows, torch.Generator(), 3)
    torch.testing.assert_close(closed.per_example(context), plain.per_example(context))


@pytest.mark.parametrize("activation", NETS)
def test_the_curves_are_the_activations_and_their_derivatives(activation):
    z = torch.tensor([-30.0, -2.0, -0.1, 0.0, 0.1, 2.0, 30.0], dtype=torch.float64)
    leaf = z.clone().requires_grad_()
    phi = ACTIVATIONS[activation].phi(leaf)
    (slope,) = torch.autograd.grad(phi.sum(), leaf)
    value, closed = CURVES[activation](z.clone())
    torch.testing.assert_close(value, phi.detach())
    torch.testing.assert_close(closed, slope)


def test_one_neuron_trains_like_the_whole_linear_network():
    stack, x, y = problem("linear")
    whole = stack.replicate(0)
    one = single_neuron(whole)
    assert one.theta.shape == (1, 4)
    kwargs = {"objective": LazyAdversarial, "attack": Surrogate(xi=0.1), "steps": 200}
    one_losses = train(one, x[0], y[0], **kwargs)[1]
    torch.testing.assert_close(one_losses, train(whole, x[0], y[0], **kwargs)[1])
    torch.testing.assert_close(one.linear_part(), whole.linear_part())
    assert one_losses[-1] < 0.9 * one_losses[0]


def test_what_has_no_closed_form_is_refused():
    stack, x, y = problem("relu")
    with pytest.raises(AdvlabError, match="FGM, and Surrogate"):
        train(stack, x, y, LazyAdversarial, PGD())
    cube = Ball(norm="linf", radius=0.1)
    objective = LazyAdversarial(loss="squared", ball=cube, attack=FGM())
    with pytest.raises(AdvlabError, match="l2 balls"):
        fit(stack, x, y, steps=1, lr=0.1, objective=objective)
    with pytest.raises(AdvlabError, match="LazyNet"):
        train(Linear.zero(4), x[0], y[0], LazyAdversarial, FGM())
    with pytest.raises(AdvlabError, match="linear network only"):
        single_neuron(stack.replicate(0))
