"""Activations against autograd, differences and their constants; two-layer networks against
nn.Linear, the closed form of the first step, and their own symmetries."""

import math

import pytest
import torch
from torch import nn

from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.losses import ModelLoss, logistic
from advlab.models import ACTIVATIONS, SHAPES, Stack, TwoLayer, leaky_relu, smoothed_leaky_relu
from advlab.threats import Ball
from advlab.training import fit

EVERY = {
    **{f"lazy-{name}": activation for name, activation in ACTIVATIONS.items()},
    **{name: make() for name, make in SHAPES.items()},
    "leaky_relu(0.3)": leaky_relu(0.3),
    "smoothed_leaky_relu(0.2, 3)": smoothed_leaky_relu(0.2, 3.0),
    "smoothed_leaky_relu(1, 2)": smoothed_leaky_relu(1.0, 2.0),
}
LINE = torch.linspace(-8, 8, 4001, dtype=torch.float64)
KINKED = {"relu", "lazy-relu", "leaky_relu", "leaky_relu(0.3)"}
every = pytest.mark.parametrize("name", EVERY)
shapes = pytest.mark.parametrize("shape", SHAPES)


def slope(phi, z):
    z = z.clone().requires_grad_()
    return torch.autograd.grad(phi(z).sum(), z)[0]


def data(n=12, d=30, seed=0):
    rng = generator("two-layer", seed)
    y = 2.0 * torch.randint(0, 2, (n,), generator=rng).double() - 1
    return torch.randn(n, d, generator=rng, dtype=torch.float64), y


@every
def test_the_derivative_is_that_of_autograd_and_of_differences(name):
    phi, dphi = EVERY[name].phi, EVERY[name].dphi
    torch.testing.assert_close(dphi(LINE), slope(phi, LINE), rtol=1e-12, atol=1e-13)
    away = LINE[(LINE.abs() > 1e-3) if name in KINKED else slice(None)]
    step = 1e-5
    torch.testing.assert_close(
        dphi(away), (phi(away + step) - phi(away - step)) / (2 * step), rtol=0, atol=3e-5
    )
    assert dphi(LINE.float()).dtype == phi(LINE.float()).dtype == torch.float32


@every
def test_the_slope_at_zero_is_the_derivative_there(name):
    zero = torch.zeros(1, dtype=torch.float64)
    assert float(EVERY[name].dphi(zero)) == pytest.approx(EVERY[name].slope, abs=1e-15)
    there = {"sin_cos": 1.0, "gaussian_relu": 1 / math.sqrt(2 * math.pi)}.get(name, 0.0)
    assert float(EVERY[name].phi(zero)) == pytest.approx(there, abs=1e-15)


@every
def test_the_constants_hold_and_are_reached(name):
    activation, z = EVERY[name], LINE
    dphi = activation.dphi(z)
    if activation.gamma is not None:
        least = dphi[z > 0].min() if activation.lipschitz is None else dphi.min()
        # Above 0 a leaky ReLU does better than the gamma it has on the whole line.
        least = dphi.min() if name.startswith("leaky") else least
        assert float(least) == pytest.approx(activation.gamma)
    if activation.bound is None:
        assert float(dphi.abs().max()) > 10
    else:
        assert float(dphi.abs().max()) == pytest.approx(activation.bound, rel=1e-5)
    steepest = float(((dphi[1:] - dphi[:-1]) / (z[1:] - z[:-1])).abs().max())
    if activation.lipschitz is None:
        assert steepest > 1 / (5 * float(z[1] - z[0]))
    else:
        assert steepest == pytest.approx(activation.lipschitz, rel=1e-3, abs=1e-9)
    gap = float((z * dphi - activation.phi(z)).abs().max())
    if activation.c1 is None:
        assert gap > 5
    else:
        assert gap <= activation.c1 + 1e-12
        assert gap == pytest.approx(activation.c1, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize(("gamma", "H"), [(0.1, 1.0), (0.25, 4.0), (0.9, 0.5)])
def test_the_smoothed_leaky_relu_is_the_three_pieces_of_equation_1(gamma, H):
    phi, dphi = smoothed_leaky_relu(gamma, H).phi, smoothed_leaky_relu(gamma, H).dphi
    shift = (1 - gamma) / (4 * H)
    right, left = LINE[LINE >= 1 / H], LINE[LINE <= -1 / H]
    inside = LINE[LINE.abs() <= 1 / H]
    parabola = (1 - gamma) * H * inside**2 / 4 + (1 + gamma) * inside / 2
    for z, value in (
        (right, right - shift),
        (left, gamma * left - shift),
        (inside, parabola),
    ):
        torch.testing.assert_close(phi(z), value, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(dphi(right), torch.ones_like(right))
    torch.testing.assert_close(dphi(left), torch.full_like(left, gamma))
    for edge in (-1 / H, 1 / H):
        sides = torch.tensor([edge - 1e-12, edge, edge + 1e-12], dtype=torch.float64)
        for curve in (phi, dphi):
            assert float(curve(sides).max() - curve(sides).min()) < 1e-11
    assert smoothed_leaky_relu(gamma, H).c1 == pytest.approx(shift)
    # Beyond the parabola the bound is reached everywhere: zeta is 0.
    torch.testing.assert_close(right * dphi(right) - phi(right), torch.full_like(right, shift))


@shapes
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("width", "bias"), [(2, False), (14, True), (86, False)])
def test_a_symmetric_start_is_zero_with_no_gradient_in_x(shape, dtype, width, bias):
    net = TwoLayer.draw(9, width, shape, generator("s"), omega=3.0, bias=bias, dtype=dtype)
    x = 10 * torch.randn(33, 9, generator=generator("x"), dtype=dtype)
    x.requires_grad_()
    f = net(x)
    assert torch.equal(f, torch.zeros(33, dtype=dtype))
    assert not torch.autograd.grad(f.sum(), x, retain_graph=True)[0].any()
    assert torch.autograd.grad(f.sum(), net.weight)[0].any()
    # An attack has nowhere to go: Algorithm 1 leaves the inputs alone at t = 0.
    y = torch.ones(33, dtype=dtype)
    ball = Ball(norm="l2", radius=1.0)
    attack = PGD(steps=3, random_start=False)
    attacked = attack(ModelLoss(net, y, logistic), x, ball, rng=generator("a"))
    assert torch.equal(attacked.x, x)


@pytest.mark.parametrize("init", ["paired", "paired_sphere"])
def test_a_paired_start_is_zero_with_fair_signs_and_unit_weights(init):
    net = TwoLayer.draw(4, 2000, "sin_cos", generator("pairs"), init=init)
    x, _ = data(20, 4)
    assert not net(x).any()
    half = net.top[:1000]
    assert bool((half.abs() == 1).all())
    assert abs(float(half.mean())) < 4 / math.sqrt(1000)
    squares = net.weight.detach().square().sum(1)[:1000]
    if init == "paired_sphere":
        torch.testing.assert_close(squares, torch.full_like(squares, 4.0))
    else:
        assert abs(float(squares.mean()) - 4) < 4 * math.sqrt(8 / 1000)
        assert abs(float(squares.var()) - 8) < 2
    assert float(net.weight.detach()[:1000].mean(0).abs().max()) < 4 / math.sqrt(1000)
    # With the same generator the two kinds have the same directions.
    other = TwoLayer.draw(4, 2000, "sin_cos", generator("pairs"), init="paired").weight
    cosine = torch.nn.functional.cosine_similarity(net.weight, other)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))


def test_the_zero_ends_when_the_halves_part():
    net = TwoLayer.draw(5, 8, "relu", generator("s"), omega=1.0, bias=True)
    x, _ = data(20, 5)
    for part in (net.weight, net.bias, net.top):
        before = part.detach().clone()
        with torch.no_grad():
            part.view(-1)[0] += 0.5
        assert not net.mirrored()
        assert net(x).any()
        leaf = x.clone().requires_grad_()
        assert torch.autograd.grad(net(leaf).sum(), leaf)[0].any()
        with torch.no_grad():
            part.copy_(before)
        assert not net(x).any()


@shapes
@pytest.mark.parametrize("trained", [False, True])
def test_values_are_the_sum_over_neurons(shape, trained):
    rng = generator("sum")
    w, x = (torch.randn(6, 3, generator=rng, dtype=torch.float64) for _ in range(2))
    a, b = (torch.randn(6, generator=rng, dtype=torch.float64) for _ in range(2))
    c = torch.tensor(0.7, dtype=torch.float64)
    net = TwoLayer(w, a, shape, b, c, train_top=trained)
    phi = SHAPES[shape]().phi
    expected = torch.zeros(6, dtype=torch.float64)
    for s in range(6):
        expected += a[s] * phi((x * w[s]).sum(1) + b[s]) / math.sqrt(6)
    torch.testing.assert_close(net(x), expected + 0.7)
    names = {name for name, _ in net.named_parameters()}
    assert names == {"weight", "bias"} | ({"top", "top_bias"} if trained else set())


@shapes
def test_the_first_step_is_the_closed_form(shape):
    """w_s(1) = w_s(0) + eta a_s / (2 n sqrt(m)) sum_k phi'(w_s(0)'x_k) y_k x_k."""
    (x, y), eta, m = data(), 0.7, 10
    net = TwoLayer.draw(30, m, shape, generator("first"), omega=0.1)
    start, dphi = net.weight.detach().clone(), SHAPES[shape]().dphi
    fit(net, x, y, steps=1, lr=eta, loss="logistic")
    for s in range(m):
        a = 1.0 if s < m // 2 else -1.0
        moved = (dphi(x @ start[s]) * y) @ x
        expected = start[s] + eta * a / (2 * len(x) * math.sqrt(m)) * moved
        assert float((net.weight[s] - expected).detach().abs().max()) < 1e-12
    assert net.top.tolist() == [1.0] * 5 + [-1.0] * 5


@shapes
def test_the_weight_gradient_is_the_hand_formula_at_any_weights(shape):
    (x, y), m = data(), 6
    rng = generator("any")
    w, a = torch.randn(m, 30, generator=rng).double(), torch.randn(m, generator=rng).double()
    net = TwoLayer(w, a, shape)
    loss = logistic(net(x), y).mean()
    grad = torch.autograd.grad(loss, net.weight)[0]
    g = torch.sigmoid(-y * net(x)).detach()
    dphi = SHAPES[shape]().dphi(x @ w.T)
    hand = -a[:, None] / (len(x) * math.sqrt(m)) * ((g * y)[:, None] * dphi).T @ x
    torch.testing.assert_close(grad, hand, rtol=1e-11, atol=1e-13)


def test_other_labels_with_the_other_sign_of_a_give_the_same_path():
    """(y, a) -> (-y, -a) leaves losses, attacks and weights as they are."""
    x, y = data()
    net = TwoLayer.draw(30, 10, "smoothed_leaky_relu", generator("sign"), omega=0.01)
    other = TwoLayer(net.weight.detach(), -net.top, "smoothed_leaky_relu")
    settings = {"steps": 8, "lr": 0.5, "loss": "logistic", "ball": Ball(norm="l2", radius=0.5)}
    settings["attack"] = PGD(steps=3)
    one = fit(net, x, y, rng=generator("fit"), **settings)
    two = fit(other, x, -y, rng=generator("fit"), **settings)
    torch.testing.assert_close(one.log.losses(), two.log.losses(), rtol=1e-13, atol=0)
    torch.testing.assert_close(net.weight, other.weight, rtol=1e-12, atol=1e-15)
    assert one.log.losses()[-1] < one.log.losses()[0]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_torch_variant_is_linear_phi_linear(bias, dtype):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = nn.Linear(7, 13, bias=bias, dtype=dtype)
        second = nn.Linear(13, 1, bias=bias, dtype=dtype)
    peer = nn.Sequential(first, nn.ReLU(), second)
    rng = torch.Generator().manual_seed(5)
    settings = {"init": "torch", "bias": bias, "train_top": True, "dtype": dtype}
    net = TwoLayer.draw(7, 13, "relu", rng, **settings)
    mine, theirs = dict(net.named_parameters()), dict(peer.named_parameters())
    names = {"weight": "0.weight", "bias": "0.bias", "top": "2.weight", "top_bias": "2.bias"}
    assert set(mine) == {name for name in names if bias or "bias" not in name}
    assert all(torch.equal(mine[k].flatten(), theirs[names[k]].flatten()) for k in mine)
    x = torch.randn(20, 7, generator=generator("x"), dtype=dtype)
    torch.testing.assert_close(net(x), peer(x)[:, 0])
    net(x).square().mean().backward()
    peer(x).square().mean().backward()
    for k, value in mine.items():
        torch.testing.assert_close(value.grad.flatten(), theirs[names[k]].grad.flatten())


def test_the_law_of_a_symmetric_start():
    net = TwoLayer.draw(400, 100, "relu", generator("law"), omega=0.2, bias=True)
    assert torch.equal(net.weight[:50], net.weight[50:])
    assert torch.equal(net.bias[:50], net.bias[50:])
    first = net.weight[:50].detach()
    assert float(first.std()) == pytest.approx(0.2, rel=0.02)  # 20 000 draws: 4 s.e.
    assert abs(float(first.mean())) < 0.006
    assert float(net.bias.detach().std()) == pytest.approx(0.2, rel=0.4)
    again = TwoLayer.draw(400, 100, "relu", generator("law"), omega=0.2)
    assert torch.equal(again.weight, net.weight)


@pytest.mark.parametrize(
    "settings",
    [{"omega": 0.1}, {"omega": 0.1, "train_top": True, "bias": True}, {"init": "torch"}],
    ids=str,
)
@shapes
def test_a_stack_trains_as_each_alone(shape, settings):
    def factory(rng):
        return TwoLayer.draw(6, 8, shape, rng, **settings)

    seeds = range(3)
    x = torch.stack([data(10, 6, seed)[0] for seed in seeds])
    y = torch.stack([data(10, 6, seed)[1] for seed in seeds])
    stack = Stack.draw(factory, generators("m", seeds=seeds))
    if "omega" in settings:
        assert not stack(x.flatten(0, 1)).any()
    how = {"steps": 5, "lr": 0.2, "loss": "logistic", "ball": Ball(norm="l2", radius=0.3)}
    together = fit(stack, x, y, attack=PGD(steps=2), rng=generators("a", seeds=seeds), **how)
    for r in seeds:
        alone = factory(generators("m", seeds=seeds)[r])
        rng = generators("a", seeds=seeds)[r]
        result = fit(alone, x[r], y[r], attack=PGD(steps=2), rng=rng, **how)
        torch.testing.assert_close(result.log.losses()[:, 0], together.log.losses()[:, r])
        for p, q in zip(alone.parameters(), stack.replicate(r).parameters(), strict=True):
            torch.testing.assert_close(p, q)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"width": 7}, "even width"),
        ({"width": 0}, "even width"),
        ({"d": 0}, "at least one input"),
        ({"omega": None}, "omega"),
        ({"omega": -1.0}, "omega"),
        ({"omega": math.inf}, "omega"),
        ({"init": "torch"}, "no omega"),
        ({"init": "torch", "omega": None, "width": 0}, "a width"),
        ({"activation": "swish"}, "activation must be one of identity, relu"),
    ],
)
def test_wrong_requests_are_refused(wrong, says):
    settings = {"d": 3, "width": 4, "activation": "relu", "omega": 1.0, **wrong}
    with pytest.raises(AdvlabError, match=says):
        TwoLayer.draw(rng=generator("wrong"), **settings)


def test_wrong_parameters_of_activations_are_refused():
    for gamma in (0.0, -0.1, 1.5, math.nan):
        with pytest.raises(AdvlabError, match="gamma"):
            leaky_relu(gamma)
        with pytest.raises(AdvlabError, match="gamma"):
            smoothed_leaky_relu(gamma, 1.0)
    for H in (0.0, -1.0, math.inf):
        with pytest.raises(AdvlabError, match="H above 0"):
            smoothed_leaky_relu(0.1, H)
    with pytest.raises(AdvlabError, match="even width"):
        TwoLayer(torch.zeros(3, 2), torch.ones(3), "relu")
