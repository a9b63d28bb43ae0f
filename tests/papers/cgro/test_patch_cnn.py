"""The patch network against its sum, finite differences and itself in a stack."""

import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.models import Stack
from advlab.papers.cgro.models import PatchCNN


@pytest.mark.parametrize("q", [1, 3, 5])
def test_the_output_is_the_double_sum(q):
    net = PatchCNN.draw(4, 3, 0.5, generator("net"), q=q)
    x = torch.randn(5, 2, 4, generator=generator("x"), dtype=torch.float64)
    for one, f in zip(x, net(x).detach(), strict=True):
        by_hand = sum(
            float(net.weight[r].detach() @ one[j]) ** q for r in range(3) for j in range(2)
        )
        assert float(f) == pytest.approx(by_hand, rel=1e-12)


def test_f_is_odd_and_does_not_care_for_the_order_of_patches():
    net = PatchCNN.draw(4, 3, 0.5, generator("net"))
    x = torch.randn(5, 3, 4, generator=generator("x"), dtype=torch.float64)
    torch.testing.assert_close(net(-x), -net(x), rtol=0, atol=0)
    torch.testing.assert_close(net(x[:, [2, 0, 1]]), net(x))


def test_gradients_are_those_of_finite_differences():
    net = PatchCNN.draw(4, 3, 0.5, generator("net"))
    x = torch.randn(2, 3, 4, generator=generator("x"), dtype=torch.float64)
    forward = lambda weight: torch.func.functional_call(net, {"weight": weight}, (x,))  # noqa: E731
    assert torch.autograd.gradcheck(forward, net.weight)


def test_a_stack_runs_each_network_on_its_own_rows():
    stack = Stack.draw(lambda rng: PatchCNN.draw(4, 3, 0.5, rng), generators("s", seeds=range(3)))
    x = torch.randn(3, 5, 2, 4, generator=generator("x"), dtype=torch.float64)
    together = stack(x.flatten(0, 1)).reshape(3, 5)
    for r in range(3):
        alone = PatchCNN.draw(4, 3, 0.5, generator("s", r))
        torch.testing.assert_close(together[r], alone(x[r]), rtol=1e-13, atol=1e-15)


def test_the_start_has_its_standard_deviation():
    weight = PatchCNN.draw(2000, 50, 0.2, generator("start")).weight
    assert float(weight.detach().std()) == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize("q", [2, 0, -1])
def test_even_and_negative_powers_are_refused(q):
    with pytest.raises(AdvlabError, match="odd"):
        PatchCNN(torch.zeros(2, 3), q)


@pytest.mark.parametrize(("d", "filters", "sigma0"), [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0)])
def test_an_empty_start_is_refused(d, filters, sigma0):
    with pytest.raises(AdvlabError, match="at least 1"):
        PatchCNN.draw(d, filters, sigma0, generator("x"))
