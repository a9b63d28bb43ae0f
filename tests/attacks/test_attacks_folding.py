"""BatchNorm folded into convolutions changes the speed of an attack, and nothing else."""

import gc
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.attacks import PGD, AutoAttack
from advlab.attacks._engine import folded_batchnorm
from advlab.attacks._engine.channels_last import ChannelsLast, relaid
from advlab.attacks._engine.folded_batchnorm import Folded, folded
from advlab.attacks.base import value_and_gradient
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, cross_entropy
from advlab.models import PreActResNet, ResNet9
from advlab.threats import Ball
from advlab.training import fit

X = torch.rand(6, 3, 16, 16, generator=generator("folding"))
Y = torch.arange(6) % 3
BALL = Ball("linf", 0.05, box=(0, 1))


def trained(net: nn.Module, seed: int = 0) -> nn.Module:
    """The network with statistics, scales and shifts as training leaves them: not 0 and 1."""
    rng = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_var is not None:
            module.running_mean.normal_(generator=rng)
            module.running_var.uniform_(0.2, 3.0, generator=rng)
            if module.affine:
                nn.init.uniform_(module.weight, -1.5, 1.5, generator=rng)
                nn.init.normal_(module.bias, generator=rng)
    return net


def resnet() -> nn.Module:
    return trained(ResNet9.draw(generator("net"), width=2, classes=3))


def loss_of(net: nn.Module) -> ModelLoss:
    return ModelLoss(net, Y, cross_entropy)


def is_folded(loss: ModelLoss) -> bool:
    return isinstance(loss.model, ChannelsLast) and isinstance(loss.model.model, Folded)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 99),
    bias=st.booleans(),
    affine=st.booleans(),
    stride=st.integers(1, 2),
    groups=st.sampled_from([1, 2]),
    padding=st.sampled_from(["zeros", "reflect"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_values_and_gradients_are_the_same(seed, bias, affine, stride, groups, padding, dtype):
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1, bias=bias, padding_mode=padding),
        nn.BatchNorm2d(4, affine=affine, eps=0.01),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 6, 3, stride=stride, groups=groups, bias=bias),
        nn.BatchNorm2d(6, affine=affine),
        nn.Flatten(),
        nn.LazyLinear(3),
    ).to(dtype)
    x = X.to(dtype)
    net(x)  # the lazy layer
    loss = loss_of(trained(net, seed))
    other = relaid(loss, x)
    assert is_folded(other)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 0, "atol": 1e-12}
    for one, two in zip(value_and_gradient(loss, x), value_and_gradient(other, x), strict=True):
        torch.testing.assert_close(two, one, **close)


@pytest.mark.parametrize("attack", [PGD(steps=4), PGD(steps=4, jump=False, keep="last")])
def test_attacks_find_the_same(attack, monkeypatch):
    net, rng = resnet(), generator("same")
    assert is_folded(relaid(loss_of(net), X))
    found = attack(loss_of(net), X, BALL, rng=rng)
    assert torch.equal(found.loss, loss_of(net)(found.x).detach())
    monkeypatch.setattr("advlab.attacks._engine.channels_last.folded", lambda model, x: None)
    plain = attack(loss_of(net), X, BALL, rng=generator("same"))
    torch.testing.assert_close(found.loss, plain.loss, rtol=0, atol=1e-5)


def test_the_ensemble_finds_the_same(monkeypatch):
    net, few = resnet(), AutoAttack(steps=3, queries=5)
    found = few(loss_of(net), X, BALL, rng=generator("ensemble"))
    monkeypatch.setattr("advlab.attacks._engine.channels_last.folded", lambda model, x: None)
    plain = few(loss_of(net), X, BALL, rng=generator("ensemble"))
    torch.testing.assert_close(found.loss, plain.loss, rtol=0, atol=1e-4)


def test_the_network_is_left_as_it_was():
    net = resnet().train()
    net.layers[0][1].eval()  # one frozen layer
    modes = [module.training for module in net.modules()]
    before = {name: value.clone() for name, value in net.state_dict().items()}
    keys = [set(module.__dict__) for module in net.modules()]
    fast = relaid(loss_of(net), X)
    fast(X)
    PGD(steps=2)(loss_of(net), X, BALL, rng=0)
    assert [module.training for module in net.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert [set(module.__dict__) for module in net.modules()] == keys
    assert all(weight.grad is None for weight in net.parameters())
    with pytest.raises(RuntimeError):  # and where it fails
        fast(X[:, :2])
    assert [set(module.__dict__) for module in net.modules()] == keys


def test_weights_that_moved_are_folded_anew():
    """Pairs are found once per network; what they hold is read at every attack."""
    net = resnet()
    first = relaid(loss_of(net), X)(X)
    trained(net, seed=7)
    second = relaid(loss_of(net), X)
    assert is_folded(second)
    torch.testing.assert_close(second(X), loss_of(net)(X), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(first, second(X), atol=1e-2)


def test_a_fresh_network_shows_its_pairs_too():
    """BatchNorm does nothing yet: only how the parts are joined tells what may be folded."""
    net = AlsoElsewhere()
    assert folded(net, X[:2]) is None
    assert len(folded(ResNet9(2, classes=3), X[:2])._forwards) == 16


class AlsoElsewhere(nn.Module):
    """What the convolution gives is used twice: folding would change the second use."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)

    def forward(self, x):
        z = self.conv(x)
        return (self.norm(z) + z).mean((2, 3))


class EditedInPlace(nn.Module):
    """What the convolution gives is changed before BatchNorm sees it."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(self.conv(x).mul_(2.0)).mean((2, 3))


class Twice(nn.Module):
    """One convolution, two BatchNorms."""

    def __init__(self):
        super().__init__()
        self.conv, self.one, self.two = nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3), nn.BatchNorm2d(3)

    def forward(self, x):
        return self.two(self.conv(self.one(self.conv(x)))).mean((2, 3))


def scored(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(3 * 14 * 14, 3))


ODD = {
    "also elsewhere": AlsoElsewhere(),
    "edited in place": EditedInPlace(),
    "twice": Twice(),
    "statistics of the batch": scored(
        nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3, track_running_stats=False)
    ),
    "before": scored(nn.BatchNorm2d(3), nn.Conv2d(3, 3, 3)),
    "between": scored(nn.Conv2d(3, 3, 3), nn.ReLU(), nn.BatchNorm2d(3)),
    "computed weights": scored(
        nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 3)), nn.BatchNorm2d(3)
    ),
    "hooks before": scored(nn.utils.spectral_norm(nn.Conv2d(3, 3, 3)), nn.BatchNorm2d(3)),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_models_are_attacked_as_they_are(kind):
    net = trained(ODD[kind])
    assert folded(net, X[:2]) is None
    other = relaid(loss_of(net), X)
    torch.testing.assert_close(other(X), loss_of(net)(X), rtol=1e-4, atol=1e-5)
    assert PGD(steps=2)(loss_of(net), X, BALL, rng=0).x.shape == X.shape


def test_a_layer_that_is_watched_is_not_folded():
    net, seen = resnet(), []
    hook = net.layers[0][1].register_forward_hook(lambda *call: seen.append(call[2]))
    fast = relaid(loss_of(net), X)
    assert len(fast.model.model._forwards) == 14  # seven pairs of eight
    fast(X)
    with torch.no_grad():
        expected = net.eval().layers[0][:2](X)
    torch.testing.assert_close(seen[-2], expected, rtol=1e-4, atol=1e-5)
    hook.remove()
    assert len(relaid(loss_of(net), X).model.model._forwards) == 16


def test_preactivation_networks_fold_only_what_follows_a_convolution():
    net = trained(PreActResNet(14, width=2, classes=3))
    loss = loss_of(net)
    fast = relaid(loss, X)
    norms = sum(isinstance(module, nn.BatchNorm2d) for module in net.modules())
    assert is_folded(fast)
    assert 0 < len(fast.model.model._forwards) < 2 * norms
    torch.testing.assert_close(fast(X), loss(X), rtol=1e-4, atol=1e-5)


def test_compiled_networks_are_left_alone():
    net = resnet()
    net._compiled_call_impl = net._call_impl  # what `compile` sets, without the minutes it takes
    assert folded(net, X[:2]) is None


def test_nothing_of_a_network_is_kept():
    net = resnet()
    gone = weakref.ref(net)
    PGD(steps=1)(loss_of(net), X, BALL, rng=0)
    assert net in folded_batchnorm._PAIRS
    before = len(folded_batchnorm._PAIRS)
    del net
    gc.collect()
    assert gone() is None
    assert len(folded_batchnorm._PAIRS) < before


def test_training_gives_the_same_losses_up_to_rounding(monkeypatch):
    attack = PGD(steps=2, jump=False, keep="last")
    runs = []
    for fold in (True, False):
        if not fold:
            monkeypatch.setattr("advlab.attacks._engine.channels_last.folded", lambda m, x: None)
        done = fit(resnet(), X, Y, steps=3, lr=0.01, ball=BALL, attack=attack, rng=0)
        runs.append(torch.stack(done.log.loss))
    torch.testing.assert_close(runs[0], runs[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attack", [PGD(steps=3), PGD(steps=3, jump=False, keep="last")])
def test_points_alone_are_those_of_a_call(attack):
    net = resnet()
    alone = attack.perturb(loss_of(net), X, BALL, rng=0)
    assert torch.equal(alone, attack(loss_of(net), X, BALL, rng=0).x)
    still = attack.perturb(loss_of(net), X, BALL.with_radius(0.0), rng=0)
    assert torch.equal(still, X)


@pytest.mark.parametrize("climb", ["given", "margin"])
def test_the_last_point_costs_one_forward_less_where_no_loss_is_asked_for(climb):
    calls = []
    net = resnet()
    net.register_forward_hook(lambda module, args, output: calls.append(len(args[0])))
    attack = PGD(steps=3, jump=False, keep="last", climb=climb)
    attack(loss_of(net), X, BALL, rng=0)
    called, _ = calls.count(len(X)), calls.clear()
    attack.perturb(loss_of(net), X, BALL, rng=0)
    assert (called, calls.count(len(X))) == (4, 3)
