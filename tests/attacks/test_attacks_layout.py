"""Another order of pixels in memory changes the speed of an attack, and nothing else."""

import pytest
import torch
from torch import nn

from advlab.attacks import PGD, AutoAttack
from advlab.attacks._engine.channels_last import ChannelsLast, relaid
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, cross_entropy, margin
from advlab.models import Linear, ResNet9, SmallCNN, Stack
from advlab.threats import Ball

X = torch.rand(6, 3, 16, 16, generator=generator("layout"))
Y = torch.arange(6) % 3


def resnet():
    return ResNet9.draw(generator("net"), width=2, classes=3).eval()


class Viewing(nn.Module):
    """A model as many write it: `view` wants the usual layout."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x).view(len(x), -1)[:, :4]


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x).mean((2, 3)) + torch.randn(len(x), 4)


class Reading(nn.Module):
    """A model that answers by memory, not by pixels: the layouts give different answers."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1)

    def forward(self, x):
        return torch.as_strided(x, (len(x), 3), (x[0].numel(), 1))


@pytest.mark.parametrize("kind", ["resnet", "cnn"])
def test_values_and_gradients_are_the_same(kind):
    net = resnet() if kind == "resnet" else SmallCNN(4, classes=3, channels=3, side=16)
    loss = ModelLoss(net, Y, cross_entropy)
    other = relaid(loss, X)
    assert isinstance(other.model, ChannelsLast)
    grads = []
    for one in (loss, other):
        leaf = X.clone().requires_grad_()
        grads.append(torch.autograd.grad(one(leaf).sum(), leaf)[0])
    torch.testing.assert_close(other(X), loss(X), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-3, atol=1e-6)


def test_the_network_sees_the_other_layout():
    seen = []
    net = resnet()
    net.layers[0][0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride()))
    relaid(ModelLoss(net, Y, margin), X)(X)
    assert seen[-1] == (768, 1, 48, 3)


def test_images_of_one_channel_are_laid_out_too():
    seen = []
    net, x = SmallCNN(2, side=16), X[:, :1].contiguous()
    net.layers[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride()))
    relaid(ModelLoss(net, Y, margin), x)(x)
    assert seen[-1] == (256, 1, 16, 1)


@pytest.mark.parametrize("model", [Viewing(), Noisy(), Reading()], ids=lambda m: type(m).__name__)
def test_models_that_cannot_are_left_as_they_are(model):
    loss = ModelLoss(model, Y, margin)
    torch.manual_seed(0)
    assert relaid(loss, X) is loss


def test_what_has_no_images_or_convolutions_is_left_as_it_is():
    flat = ModelLoss(Linear.zero(5, torch.float32), torch.ones(6), margin)
    assert relaid(flat, torch.zeros(6, 5)) is flat
    dense = ModelLoss(nn.Sequential(nn.Flatten(), nn.Linear(768, 3)), Y, margin)
    assert relaid(dense, X) is dense
    stack = ModelLoss(Stack([SmallCNN(2, channels=3, side=16) for _ in range(2)]), Y, margin)
    assert relaid(stack, X) is stack
    empty = ModelLoss(resnet(), Y[:0], margin)
    assert relaid(empty, X[:0]) is empty
    own = lambda x: x.flatten(1).sum(1)  # noqa: E731
    assert relaid(own, X) is own


def test_once_is_enough_and_the_mode_stays():
    net = resnet().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    once = relaid(ModelLoss(net, Y, margin), X)
    assert relaid(once, X) is once
    once(X)
    assert all(module.training for module in net.modules())
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


def test_the_ensemble_reaches_the_model_in_the_other_layout_and_is_judged_in_the_usual_one():
    seen = []
    net = resnet()
    net.layers[0][0].register_forward_pre_hook(lambda _, args: seen.append(args[0].stride()))
    ball = Ball(norm="l2", radius=0.2, box=(0.0, 1.0))
    loss = ModelLoss(net, net(X).argmax(1), margin)
    found = AutoAttack(steps=3, queries=5)(loss, X, ball, rng=generator("ensemble"))
    assert (768, 1, 48, 3) in seen
    with torch.no_grad():
        torch.testing.assert_close(loss(found.x), found.loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("attack", [PGD(steps=3), PGD(steps=3, jump=False, keep="last")])
def test_what_an_attack_finds_is_judged_in_the_layout_given(attack):
    """Searched with channels last; loss and points are those of the model as it was given."""
    seen, net = set(), resnet()
    net.layers[0][0].register_forward_pre_hook(lambda _, args: seen.add(args[0].stride()))
    loss, ball = ModelLoss(net, Y, cross_entropy), Ball("linf", 0.05, box=(0, 1))
    found = attack(loss, X, ball, rng=generator("judged"))
    assert (768, 1, 48, 3) in seen
    assert torch.equal(found.loss, loss(found.x).detach())
    if attack.keep == "worst":
        assert (found.loss >= loss(X)).all()


def test_models_with_scores_in_a_dict_are_searched_too():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = resnet()

        def forward(self, x):
            return {"logits": self.net(x)}

    ball, rng = Ball("linf", 0.05, box=(0, 1)), generator("dict")
    found = PGD(steps=2)(ModelLoss(Named(), Y, cross_entropy), X, ball, rng=rng)
    assert found.x.shape == X.shape
