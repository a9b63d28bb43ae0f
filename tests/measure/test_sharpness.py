"""Sharpness of inputs against closed forms, dense grids and the mean value theorem."""

import numpy as np
import pytest
import torch
from torch import nn

from advlab.attacks import FGM, PGD, Grid
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, cross_entropy, logistic
from advlab.measure.sharpness import input_sharpness
from advlab.models import Stack
from advlab.papers.cgro.theory.flatness import linear_logistic
from advlab.threats import Ball


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(seed: int, d: int = 2, outputs: int = 3) -> nn.Sequential:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(d, 12), nn.Tanh(), nn.Linear(12, outputs)).double()
    model[0].weight.data *= 2
    return model


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [0.0, 0.2, 1.5])
def test_a_linear_model_is_as_sharp_as_its_closed_form(norm, radius):
    x = torch.randn(7, 6, generator=seeded(0), dtype=torch.float64)
    theta = torch.randn(6, generator=seeded(1), dtype=torch.float64)
    y = torch.tensor([1.0, -1, 1, 1, -1, -1, 1], dtype=torch.float64)
    ball = Ball(norm=norm, radius=radius)
    found = input_sharpness(lambda x: x @ theta, x, y, ball, loss="logistic", rng=seeded(2))
    exact = linear_logistic(theta.numpy(), x.numpy(), y.numpy(), norm, radius)
    np.testing.assert_allclose(found.rise.numpy(), exact.rise, atol=1e-10)
    np.testing.assert_allclose(radius * found.slope.numpy(), exact.lower, atol=1e-12)
    np.testing.assert_allclose(radius * found.steepest.numpy(), exact.upper, atol=1e-9)


def brute_force(model, x, y, ball, loss) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest gradient and loss over a fine grid of the ball; the edge of the disc included."""
    axis = torch.linspace(-ball.radius, ball.radius, 101, dtype=torch.float64)
    moves = torch.cartesian_prod(axis, axis)
    angles = torch.linspace(0, 2 * torch.pi, 1001, dtype=torch.float64)
    edge = ball.radius * torch.stack([angles.cos(), angles.sin()], 1)
    moves = torch.cat([moves[ball.norm_of(moves) <= ball.radius], edge])
    steepest, highest = [], []
    for one, label in zip(x, y, strict=True):
        points = (one + moves).requires_grad_()
        value = ModelLoss(model, label.expand(len(points)), loss)(points)
        (grad,) = torch.autograd.grad(value.sum(), points)
        steepest.append(ball.dual_norm(grad).max())
        highest.append(value.detach().max())
    return torch.stack(steepest), torch.stack(highest)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [0.5, 1.5])
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_search_finds_what_brute_force_finds(seed, radius, norm):
    """The whole disc or square, input by input; without a climb of its own it found 75 %."""
    model, ball = network(seed), Ball(norm=norm, radius=radius)
    x = torch.randn(6, 2, generator=seeded(seed), dtype=torch.float64)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    found = input_sharpness(model, x, y, ball, rng=seeded(1))
    steepest, highest = brute_force(model, x, y, ball, cross_entropy)
    assert float((found.steepest / steepest).min()) >= 0.98
    assert float(((found.rise + found.loss) / highest).min()) >= 0.98
    # The grid misses the truth by at most its spacing.
    assert float((found.steepest / steepest).max()) <= 1.01
    assert found.steepest_bound is not None
    assert (found.steepest_bound >= found.steepest - 1e-9).all()


def test_a_loss_that_is_flat_at_the_input_is_climbed_from_elsewhere():
    """||grad|| is zero at the input: the climb from there cannot start, those beside it can."""
    ball = Ball(norm="l2", radius=0.5)
    x, y = torch.zeros(3, 2, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    found = input_sharpness(lambda x: x, x, y, ball, loss=lambda z, _: (z**2).sum(1), rng=seeded(0))
    torch.testing.assert_close(found.steepest, torch.full((3,), 1.0).double())
    torch.testing.assert_close(found.rise, torch.full((3,), 0.25).double())


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("radius", [0.05, 0.5])
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_bracket_holds_what_brute_force_finds(norm, radius, outputs):
    torch.manual_seed(outputs)
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, outputs)).double()
    x = torch.randn(6, 2, generator=seeded(2), dtype=torch.float64)
    y = torch.tensor([0, 1, 1, 0, 1, 0]) if outputs > 1 else torch.tensor([1, -1, 1, 1, -1, -1])
    y = y if outputs > 1 else y.double()
    loss, ball = (cross_entropy if outputs > 1 else logistic), Ball(norm=norm, radius=radius)
    found = input_sharpness(model, x, y, ball, loss=loss, rng=seeded(3))
    steepest, _ = brute_force(model, x, y, ball, loss)
    assert found.steepest_bound is not None
    assert (found.steepest_bound >= steepest).all()
    assert float((found.steepest_bound / steepest).median()) <= 10
    assert float((found.steepest / steepest).min()) >= 0.98


def relu_network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(10, 30), nn.ReLU(), nn.Linear(30, 1)).double()


@pytest.mark.parametrize("attack", [None, FGM(), PGD(steps=3, restarts=1)], ids=str)
def test_the_mean_value_theorem_holds_for_the_estimates(attack):
    model, ball = relu_network(0), Ball(norm="linf", radius=0.5)
    x = torch.randn(100, 10, generator=seeded(3), dtype=torch.float64)
    y = (model(x)[:, 0].detach()).sign()
    found = input_sharpness(model, x, y, ball, loss=logistic, attack=attack, rng=seeded(0))
    assert (found.rise >= 0).all()
    assert (found.steepest >= found.slope).all()
    assert (found.rise <= 0.5 * found.steepest * (1 + 1e-2)).all()
    assert (found.rise > 0.45 * found.slope).double().mean() > 0.5


def test_a_larger_ball_is_no_less_sharp_and_a_stack_gives_each_its_own():
    x = torch.randn(5, 2, generator=seeded(4), dtype=torch.float64)
    y = torch.tensor([0, 1, 2, 0, 1])
    grid = Grid(points=200, refinements=10)
    small, large = (
        input_sharpness(network(5), x, y, Ball(norm="l2", radius=r), attack=grid) for r in (0.1, 1)
    )
    assert (large.steepest >= small.steepest - 1e-9).all()
    assert (large.rise > small.rise).all()
    ball = Ball(norm="l2", radius=0.3)
    stack = Stack([network(5), network(6)])
    both = input_sharpness(stack, x.repeat(2, 1), y.repeat(2), ball, rng=[seeded(0), seeded(1)])
    alone = input_sharpness(network(6), x, y, ball, rng=[seeded(1)])
    torch.testing.assert_close(both.steepest[5:], alone.steepest)
    torch.testing.assert_close(both.rise[5:], alone.rise)


def test_inputs_that_are_not_finite_are_refused():
    with pytest.raises(AdvlabError, match="row 1"):
        input_sharpness(
            network(0),
            torch.tensor([[0.0, 0], [float("nan"), 0]]).double(),
            torch.tensor([0, 1]),
            Ball(norm="l2", radius=0.1),
        )
