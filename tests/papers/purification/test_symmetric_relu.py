"""Closed forms of the symmetric ReLU network against quadrature, Monte Carlo and differences."""

import pytest
import torch
from scipy import integrate, stats

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, normal
from advlab.models import Stack
from advlab.papers.purification.data import SparseCoding
from advlab.papers.purification.models import BiasGrowth, SymmetricReLU, pure_features
from advlab.papers.purification.models.symmetric_relu import smooth_relu


def network(sigma: float = 0.0, bias: float = 0.3) -> SymmetricReLU:
    return SymmetricReLU.draw(6, 5, 0.8, bias, generator("net"), sigma)


def inputs(n: int = 40) -> torch.Tensor:
    return torch.randn(n, 6, generator=generator("x"), dtype=torch.float64)


@pytest.mark.parametrize("v", [-2.0, -0.3, 0.0, 0.4, 3.0])
@pytest.mark.parametrize("sigma", [0.05, 0.7])
def test_smoothed_relu_is_the_integral(v, sigma):
    def integrand(t: float) -> float:
        return max(v + sigma * t, 0.0) * float(stats.norm.pdf(t))

    kink = min(max(-v / sigma, -12.0), 12.0)
    exact = sum(integrate.quad(integrand, *ends)[0] for ends in ((-12, kink), (kink, 12)))
    got = smooth_relu(torch.tensor(v, dtype=torch.float64), sigma)
    assert float(got) == pytest.approx(exact, abs=1e-10)


def test_without_noise_it_is_the_printed_formula():
    net, x = network(), inputs()
    u = x @ net.weight.T
    printed = (torch.relu(u - 0.3) - torch.relu(-u - 0.3)).sum(1)
    torch.testing.assert_close(net(x), printed)
    torch.testing.assert_close(net.sampled(x, torch.zeros_like(u)), printed)


def test_the_mean_over_noise_is_the_closed_form():
    net, x = network(sigma=0.4), inputs(3)
    many = x.repeat_interleave(200_000, 0)
    rho = 0.4 * normal(torch.empty(len(many), 5, dtype=torch.float64), generator("rho"))
    draws = net.sampled(many, rho).reshape(3, -1)
    slack = 5 * draws.std(1) / 200_000**0.5
    assert ((draws.mean(1) - net(x)).abs() <= slack).all()


@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_gradients_are_the_differences(sigma):
    """grad_x f = sum_i G_i w_i and grad_{w_i} f = G_i x, with the plus in G."""
    net, x, step = network(sigma), inputs(), 1e-6
    gates = net.gates(net.preactivations(x))
    for j in range(6):
        move = step * torch.eye(6, dtype=torch.float64)[j]
        slope = (net(x + move) - net(x - move)) / (2 * step)
        torch.testing.assert_close(net.input_gradient(x)[:, j], slope, rtol=1e-6, atol=1e-6)
    for i in range(5):
        up, down = (SymmetricReLU(net.weight.detach(), 0.3, sigma) for _ in range(2))
        with torch.no_grad():
            up.weight[i] += step
            down.weight[i] -= step
        slope = (up(x) - down(x)) / (2 * step)
        torch.testing.assert_close(gates[:, i] * x.sum(1), slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_autograd_agrees_and_the_network_is_odd(sigma):
    net, x = network(sigma), inputs().requires_grad_()
    (grad,) = torch.autograd.grad(net(x).sum(), x)
    torch.testing.assert_close(grad, net.input_gradient(x).detach())
    torch.testing.assert_close(net(-x), -net(x))


def test_noise_going_to_zero_is_the_plain_network():
    torch.testing.assert_close(network(1e-9)(inputs()), network()(inputs()), rtol=1e-6, atol=1e-7)


def test_dictionary_start_has_every_atom_with_its_sign():
    law = SparseCoding(n=10, d=8, k=2)
    M, w = law.concept(generator("c"))
    pure = 0.8 * torch.diag(w.sign()).repeat(2, 1)
    mean = pure_features(M, w, 2, 0.8)
    torch.testing.assert_close(mean @ M, pure, rtol=1e-9, atol=1e-12)
    net, noise = (
        SymmetricReLU.draw(8, 16, 0.1, 0.1, generator("n"), mean=one) for one in (mean, None)
    )
    torch.testing.assert_close(net.weight - mean, noise.weight)


def test_bias_growth_sets_every_network_of_a_stack():
    nets = Stack([network(0.1), network(0.1)])
    growth = BiasGrowth(start=0.1, slope=0.05, end=0.3, noise=0.5)
    for step, bias in ((0, 0.1), (2, 0.2), (10, 0.3)):
        growth(nets, step)
        assert nets.get_buffer("bias").tolist() == pytest.approx([bias, bias])
        assert nets.get_buffer("sigma").tolist() == pytest.approx([bias / 2, bias / 2])


@pytest.mark.parametrize(("bias", "sigma"), [(-0.1, 0.0), (0.1, -1.0), (float("nan"), 0.0)])
def test_impossible_networks_are_refused(bias, sigma):
    with pytest.raises(AdvlabError, match="0 or more"):
        SymmetricReLU(torch.ones(2, 3), bias, sigma)
    with pytest.raises(AdvlabError, match="width"):
        SymmetricReLU.draw(3, 0, 0.1, 0.1, generator("n"))


def test_noise_is_a_share_of_the_bias():
    growth = BiasGrowth(start=0.2, slope=0.01, end=0.25, noise=0.5)
    assert [growth.noise_at(step) for step in (0, 3, 100)] == pytest.approx([0.1, 0.115, 0.125])


def test_a_schedule_with_noise_needs_a_network_with_noise():
    with pytest.raises(AdvlabError, match="noise in the network"):
        BiasGrowth(start=0.1, slope=0.0, end=0.1, noise=0.1)(network(), 0)
    with pytest.raises(AdvlabError, match="noise in the network"):
        BiasGrowth(start=0.1, slope=0.0, end=0.1)(Stack([network(0.1)]), 0)
