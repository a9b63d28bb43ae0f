"""The empirical tangent kernel against finite differences, closed forms and explicit Jacobians."""

import pytest
import torch
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.measure.tangent_kernel import empirical_ntk, tangent_kernels
from advlab.models import SmallCNN


def network(*layers: nn.Module) -> nn.Sequential:
    net = nn.Sequential(*layers).double()
    rng = generator("tangent kernel")
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(torch.randn(weight.shape, generator=rng, dtype=torch.float64))
    return net


def rows(n, *shape):
    return torch.randn(n, *shape, generator=generator("rows", n), dtype=torch.float64)


def differences(net, x, step=1e-5):
    """All partial derivatives by central differences: (n, outputs, weights that train)."""
    columns = []
    with torch.no_grad():
        for weight in (one for one in net.parameters() if one.requires_grad):
            for place in range(weight.numel()):
                flat = weight.view(-1)
                old = flat[place].item()
                ends = []
                for sign in (1, -1):
                    flat[place] = old + sign * step
                    ends.append(net(x).reshape(len(x), -1))
                flat[place] = old
                columns.append((ends[0] - ends[1]) / (2 * step))
    return torch.stack(columns, -1)


@pytest.mark.parametrize("batch", [None, 2])
def test_several_outputs_by_finite_differences(batch):
    """BatchNorm and Dropout are there in eval mode; frozen weights do not count."""
    net = network(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Dropout(), nn.Linear(5, 2))
    net[0].bias.requires_grad_(False)
    net[1].running_var.fill_(2.0)
    x1, x2 = rows(3, 3), rows(5, 3)
    found = empirical_ntk(net, x1, x2, batch=batch)
    assert net.training
    assert all(one.grad is None for one in net.parameters())
    net.eval()
    expected = torch.einsum("iap,jbp->ijab", differences(net, x1), differences(net, x2))
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("batch", [None, 2])
def test_convolutions_by_finite_differences(batch):
    net = network(nn.Conv2d(2, 3, 3, padding=1), nn.Softplus(), nn.Flatten(), nn.Linear(48, 1))
    x = rows(3, 2, 4, 4)
    jacobian = differences(net, x)[:, 0]
    found = empirical_ntk(net, x, batch=batch)
    assert found.shape == (3, 3, 1, 1)
    torch.testing.assert_close(found[:, :, 0, 0], jacobian @ jacobian.T, rtol=1e-7, atol=1e-7)


def test_shares_of_weights_in_closed_form():
    """f = W2 relu(W1 x): the shares are <x, x'> W2 D D' W2' and <h, h'> times the identity."""
    net = network(nn.Linear(4, 6, bias=False), nn.ReLU(), nn.Linear(6, 3, bias=False))
    x = rows(5, 4)
    hidden = (x @ net[0].weight.T).relu().detach()
    top, on = net[2].weight.detach(), (hidden > 0).double()
    first = torch.einsum("ij,ah,ih,jh,bh->ijab", x @ x.T, top, on, on, top)
    second = torch.einsum("ij,ab->ijab", hidden @ hidden.T, torch.eye(3).double())
    shares = tangent_kernels(net, x)
    torch.testing.assert_close(shares["0.weight"], first)
    torch.testing.assert_close(shares["2.weight"], second)
    torch.testing.assert_close(empirical_ntk(net, x), first + second)


def test_one_step_of_descent_is_what_the_kernel_says():
    """f(W - alpha grad sum_b f_b(x0)) = f(W) - alpha sum_b K(., x0)[:, b], up to alpha^2."""
    net = SmallCNN.draw(generator("small"), width=4, hidden=8, side=12).double()
    x, rate = rows(4, 1, 12, 12), 1e-7
    kernel = empirical_ntk(net, x, x[:1])[:, 0].sum(2)
    net.eval()
    before = net(x)
    before[0].sum().backward()
    with torch.no_grad():
        for weight in net.parameters():
            weight -= rate * weight.grad
        change = (net(x) - before) / -rate
    torch.testing.assert_close(change, kernel, rtol=1e-3, atol=1e-3 * float(kernel.abs().max()))


def test_arrays_come_in_and_a_network_without_weights_is_refused():
    net = network(nn.Linear(3, 2))
    x = rows(4, 3)
    torch.testing.assert_close(empirical_ntk(net, x.numpy()), empirical_ntk(net, x))
    with pytest.raises(AdvlabError, match="weights that train"):
        empirical_ntk(net.requires_grad_(False), x)
