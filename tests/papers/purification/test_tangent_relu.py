"""The tangent model against its definition, finite differences, autograd and the network's own."""

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.models import Stack
from advlab.papers.purification.models import SymmetricReLU, TangentReLU
from advlab.training import fit

SETTINGS = [(0.7, 0.5), (0.7, 0.0), (-0.2, 0.3), (0.0, 1.0)]


def model(bias: float, sigma: float, sign, seed: int = 0) -> TangentReLU:
    rng = generator("tangent", seed)
    net = TangentReLU.draw(4, 7, bias, rng, sigma, sign)
    with torch.no_grad():
        net.weight.copy_(torch.randn(7, 4, generator=rng, dtype=torch.float64))
    return net


def inputs(n: int = 25, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, 4, generator=generator("tangent inputs", seed), dtype=torch.float64)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("bias", "sigma"), SETTINGS)
def test_the_model_is_its_definition_by_monte_carlo(bias, sigma, sign):
    net, x = model(bias, sigma, sign), inputs(5)
    rho = sigma * torch.randn(100_000, 1, generator=generator("rho"), dtype=torch.float64)
    for row, value in zip(x, net(x), strict=True):
        u = net.directions @ row
        gates = (u + rho >= bias).double() + sign * (-u + rho >= bias).double()
        sampled = float((gates.mean(0) * (net.weight.detach() @ row)).sum())
        assert float(value.detach()) == pytest.approx(sampled, abs=0.05 if sigma else 1e-12)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("bias", "sigma"), SETTINGS)
def test_the_input_gradient_is_autograd_s_and_that_of_finite_differences(bias, sigma, sign):
    net, x = model(bias, sigma, sign), inputs().requires_grad_()
    (auto,) = torch.autograd.grad(net(x).sum(), x)
    own = net.input_gradient(x).detach()
    torch.testing.assert_close(own, auto)
    step = 1e-6
    for j in range(4):
        move = step * torch.eye(4, dtype=torch.float64)[j]
        slope = (net(x + move) - net(x - move)).detach() / (2 * step)
        assert (slope - own[:, j]).abs().max() < 1e-6


@pytest.mark.parametrize(("bias", "sigma"), SETTINGS)
def test_the_true_kernel_is_odd_and_the_printed_one_even(bias, sigma):
    x = inputs()
    odd, even = (model(bias, sigma, sign) for sign in (1, -1))
    torch.testing.assert_close(odd(-x), -odd(x))
    torch.testing.assert_close(even(-x), even(x))
    assert odd(x).detach().abs().max() > 0.1


@pytest.mark.parametrize(("bias", "sigma"), SETTINGS[:2])
def test_it_is_the_first_order_change_of_the_network(bias, sigma):
    """d/dt f(w + t v) at t = 0 is p with sign +1, not with -1."""
    tangent, x, step = model(bias, sigma, 1), inputs(), 1e-6
    ends = [
        SymmetricReLU(tangent.directions + move * tangent.weight, bias, sigma)(x)
        for move in (step, -step)
    ]
    change = (ends[0] - ends[1]).detach() / (2 * step)
    assert (change - tangent(x)).abs().max() < 1e-6
    assert (change - model(bias, sigma, -1)(x)).abs().max() > 0.1


def test_only_v_trains_alone_and_in_a_stack():
    seeds = range(3)
    x = torch.stack([inputs(20, seed) for seed in seeds])
    y = torch.where(x[..., 0] > 0, 1.0, -1.0).double()
    draw = lambda rng: TangentReLU.draw(4, 6, 0.5, rng, 0.5)  # noqa: E731
    stack = Stack.draw(draw, generators("stack", seeds=seeds))
    before = stack.get_buffer("directions").clone()
    settings = {"steps": 30, "lr": 0.05, "loss": "logistic", "optimizer": torch.optim.Adam}
    run = fit(stack, x, y, **settings)
    assert torch.equal(stack.get_buffer("directions"), before)
    alone = draw(generators("stack", seeds=seeds)[2])
    fit(alone, x[2], y[2], **settings)
    torch.testing.assert_close(alone.weight, stack.replicate(2).get_parameter("weight"))
    losses = run.log.losses()
    assert (losses[-1] < losses[0] / 2).all()


def test_refusals():
    with pytest.raises(AdvlabError, match="noise of 0 or more"):
        TangentReLU.draw(3, 4, 0.5, generator("no"), -1.0)
    with pytest.raises(AdvlabError, match="features of at least 1"):
        TangentReLU.draw(3, 0, 0.5, generator("no"))
