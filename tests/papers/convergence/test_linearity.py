"""Linearity against explicit gradients and finite differences; Lemma A.4 as an identity."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import pseudo_huber
from advlab.measure.linearity import descent_to_boundary, lin_residual
from advlab.models import TwoLayer
from advlab.papers.convergence.measures.weight_move import as_weight_move
from advlab.papers.convergence.models import DeepReLU
from advlab.training import LayerBalls, WholeBall


def on_sphere(n: int, d: int, *name: object) -> torch.Tensor:
    x = torch.randn(n, d, generator=generator(*name), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def mlp() -> nn.Module:
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1), nn.Flatten(0)).double()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, generator=generator("mlp"), dtype=torch.float64))
    return net


NETS = {
    "deep": lambda: DeepReLU.draw(4, 12, 2, generator("deep")),
    "mlp": mlp,
    "two layers": lambda: TwoLayer.draw(4, 8, "leaky_relu", generator("two"), omega=1.0),
}


def some_move(net: nn.Module, size: float) -> dict[str, torch.Tensor]:
    rng = generator("move")
    return {
        name: size * torch.randn(p.shape, generator=rng, dtype=torch.float64)
        for name, p in net.named_parameters()
    }


@pytest.mark.parametrize("name", NETS)
def test_the_residual_is_that_of_explicit_gradients(name):
    net, x = NETS[name](), on_sphere(5, 4, "x")
    move = some_move(net, 0.3)
    values = []
    for one in x:
        f = net(one[None])[0]
        grads = torch.autograd.grad(f, list(net.parameters()))
        named = net.named_parameters()
        slope = sum(float((g * move[n]).sum()) for (n, _), g in zip(named, grads, strict=True))
        values.append(-float(f.detach()) - slope)
    found = lin_residual(net, x, move)
    with torch.no_grad():
        for n, p in net.named_parameters():
            p.add_(move[n])
        values = [float(net(one[None])[0]) + rest for one, rest in zip(x, values, strict=True)]
    assert found == pytest.approx(max(map(abs, values)), rel=1e-10)


def test_the_residual_of_a_smooth_net_is_half_its_second_derivative():
    """r(t) = t^2/2 f'' + O(t^3), f'' along the move by a central difference."""
    net, x = mlp(), on_sphere(1, 4, "smooth")
    move = some_move(net, 1.0)

    def along(t: float) -> float:
        weights = {name: p.detach() + t * move[name] for name, p in net.named_parameters()}
        return float(torch.func.functional_call(net, weights, (x,))[0])

    h, t = 1e-4, 1e-3
    second = (along(h) - 2 * along(0) + along(-h)) / h**2
    scaled = {name: t * value for name, value in move.items()}
    assert lin_residual(net, x, scaled) == pytest.approx(abs(second) * t**2 / 2, rel=0.02)


def test_a_model_that_is_linear_in_what_moves_has_no_residual_and_stays_as_it_was():
    net = mlp()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    top = {name: move for name, move in some_move(net, 1.0).items() if name.startswith("2")}
    assert lin_residual(net, on_sphere(7, 4, "top"), top) < 1e-14
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])
    with pytest.raises(AdvlabError, match="own parameters; got bottom"):
        lin_residual(net, on_sphere(2, 4, "x"), {"bottom": torch.zeros(1)})


def test_the_move_goes_down_the_loss_to_the_boundary_of_every_layer_s_ball():
    net, x = DeepReLU.draw(4, 25, 3, generator("boundary")), on_sphere(6, 4, "boundary")
    y = torch.tensor([1.0, -1.0] * 3, dtype=torch.float64)
    move = descent_to_boundary(net, x, y, LayerBalls(radius=2.0, width=25))
    assert list(move) == ["hidden.0", "hidden.1", "hidden.2"]
    h = 1e-6
    for name, step in move.items():
        assert float(step.norm()) == pytest.approx(2 / 5, rel=1e-12)
        # No other direction of this length falls faster: -||grad|| by finite differences.
        start = dict(net.named_parameters())[name].detach()
        values = [
            pseudo_huber(torch.func.functional_call(net, {name: start + t * step}, (x,)), y).mean()
            for t in (h, -h)
        ]
        slope = float((values[0] - values[1]).detach()) / (2 * h)
        (grad,) = torch.autograd.grad(
            pseudo_huber(net(x), y).mean(), [dict(net.named_parameters())[name]]
        )
        assert slope == pytest.approx(-float(grad.norm()) * 2 / 5, rel=1e-6)


def test_one_ball_for_all_layers():
    net, x = mlp(), on_sphere(6, 4, "whole")
    move = descent_to_boundary(net, x, torch.ones(6, dtype=torch.float64), WholeBall(radius=0.7))
    total = math.sqrt(sum(float((step**2).sum()) for step in move.values()))
    assert total == pytest.approx(0.7, rel=1e-12)
    flat = DeepReLU(torch.ones(2, 4).double(), [torch.eye(2).double()], torch.zeros(2).double())
    with pytest.raises(AdvlabError, match="gradient of zero"):
        descent_to_boundary(flat, x, torch.ones(6, dtype=torch.float64), WholeBall(radius=0.7))


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([3, 20, 60]))
@settings(max_examples=40, deadline=None)
def test_moving_the_input_is_moving_the_first_layer(seed, depth, width):
    """Lemma A.4: the same pre-activations, signs and value, and the bound of its norm."""
    net = DeepReLU.draw(4, width, depth, generator("a4", seed))
    x, other = on_sphere(2, 4, "a4", seed)
    move = as_weight_move(net, x, other)
    moved = DeepReLU(net.bottom, [move.weight, *list(net.hidden)[1:]], net.top)
    for here, there in zip(
        moved.preactivations(x[None]), net.preactivations(other[None]), strict=True
    ):
        torch.testing.assert_close(here, there, atol=1e-10, rtol=0)
        assert torch.equal(here > 0, there > 0)
    torch.testing.assert_close(moved(x[None]), net(other[None]))
    assert move.norm == pytest.approx(float((move.weight - net.hidden[0].detach()).norm()))
    assert 0 < move.norm <= move.bound


def test_no_shorter_move_of_the_first_layer_does_the_same():
    """W1~ - W1 is the min-norm solution of D x0 = W1 (x0' - x0)."""
    net = DeepReLU.draw(3, 6, 1, generator("shortest"))
    x, other = on_sphere(2, 3, "shortest")
    move = as_weight_move(net, x, other)
    start, target = net.bottom @ x, net.hidden[0].detach() @ (net.bottom @ (other - x))
    least = torch.outer(target, torch.linalg.pinv(start[:, None])[0])
    torch.testing.assert_close(move.weight, net.hidden[0].detach() + least)
