"""Networks against what their papers publish: sizes, layers, shapes, starts, gradients."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.attacks import PGD
from advlab.certify import IBP
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, cross_entropy
from advlab.models import (
    LAYERS,
    NETWORKS,
    AlexNet,
    LeNet5,
    NetworkDescription,
    Normalised,
    PreActResNet,
    ReLUSoftplus,
    SmallCNN,
    Stack,
    WideResNet,
    network,
    settings_of,
)
from advlab.threats import Ball

CIFAR, MNIST = {"channels": 3, "side": 32}, {"channels": 1, "side": 28}

PUBLISHED = {
    # WRN-28-10: 36.5 M in Zagoruyko and Komodakis 2016, Table 4; to the last one in pytorchcv.
    ("wrn28_10", "cifar"): 36_479_194,
    ("wrn34_10", "cifar"): 46_160_474,
    # 2.47 M in the list of the code base that the purification paper used.
    ("alexnet", "cifar"): 2_472_266,
    # LeCun's sizes with full connections and pools without weights.
    ("lenet5", "mnist"): 156 + 2416 + 48120 + 10164 + 850,
    # 11,171,146 without the last BatchNorm (2 x 512), as the usual CIFAR code has it.
    ("preact_resnet18", "cifar"): 11_171_146 + 2 * 512,
}


def size(net: nn.Module) -> int:
    return sum(weight.numel() for weight in net.parameters())


def described(name, form, **own) -> NetworkDescription:
    image = CIFAR if form == "cifar" else MNIST
    return NetworkDescription(network=name, classes=10, settings=own, **image)


@pytest.mark.parametrize(("name", "form"), PUBLISHED)
def test_sizes_are_the_published_ones(name, form):
    assert size(described(name, form).build()) == PUBLISHED[name, form]


@pytest.mark.parametrize(("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85)])
def test_three_stages_have_the_sizes_of_he(depth, millions):
    # He et al. 2015, Table 6. The two 1x1 shortcuts are not in that table.
    net = described("preact_resnet", "cifar", depth=depth).build()
    shortcuts = 16 * 32 + 32 * 64
    assert round((size(net) - shortcuts) / 1e6, 2) == pytest.approx(millions, abs=0.0101)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("form", ["cifar", "mnist"])
def test_every_network_takes_both_forms(name, form):
    image = CIFAR if form == "cifar" else MNIST
    x = torch.empty(2, image["channels"], image["side"], image["side"], device="meta")
    about = NetworkDescription(network=name, classes=100, **image)
    assert about.build().eval()(x).shape == (2, 100)


def test_the_residual_network_of_the_purification_paper_has_31_convolutions():
    net = described("preact_resnet32", "cifar").build()
    kernels = [m.kernel_size for m in net.modules() if isinstance(m, nn.Conv2d)]
    assert kernels.count((3, 3)) == 31
    assert kernels.count((1, 1)) == 2
    # With the dense layer there are 34 weight matrices.
    assert sum(isinstance(m, nn.Conv2d | nn.Linear) for m in net.modules()) == 34


def norm(layer: nn.BatchNorm2d, x):
    flat = (1, -1, 1, 1)
    scaled = (x - layer.running_mean.reshape(flat)) / (
        layer.running_var + layer.eps
    ).sqrt().reshape(flat)
    return scaled * layer.weight.reshape(flat) + layer.bias.reshape(flat)


@pytest.mark.parametrize(
    ("net", "raw"),
    [
        (lambda: PreActResNet.draw(generator("net"), depth=18, width=2), False),
        (lambda: PreActResNet.draw(generator("net"), depth=14, width=2), True),
        (lambda: WideResNet.draw(generator("net"), depth=10, widen=2, width=2), False),
    ],
)
def test_residual_networks_layer_by_layer(net, raw):
    net = net()
    x = torch.rand(4, 3, 16, 16, generator=generator("images"))
    with torch.no_grad():
        net.train()(x)
        net.eval()
        rest = list(net.modules())
        norms = iter([m for m in rest if isinstance(m, nn.BatchNorm2d)])
        wide = iter([m for m in rest if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)])
        narrow = iter([m for m in rest if isinstance(m, nn.Conv2d) and m.kernel_size == (1, 1)])
        blocks = (sum(isinstance(m, nn.BatchNorm2d) for m in rest) - 1) // 2
        state = F.conv2d(x, next(wide).weight, padding=1)
        for _ in range(blocks):
            first = next(wide)
            entered = norm(next(norms), state).relu()
            inner = F.conv2d(entered, first.weight, padding=1, stride=first.stride)
            inner = F.conv2d(norm(next(norms), inner).relu(), next(wide).weight, padding=1)
            if inner.shape != state.shape:
                seen = state if raw else entered
                state = F.conv2d(seen, next(narrow).weight, stride=first.stride)
            state = state + inner
        dense = rest[-1]
        mean = norm(next(norms), state).relu().mean((2, 3))
        torch.testing.assert_close(net(x), mean @ dense.weight.T + dense.bias, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("image", [CIFAR, MNIST])
def test_lenet_and_alexnet_layer_by_layer(image):
    x = torch.rand(2, image["channels"], image["side"], image["side"], generator=generator("x"))
    net = LeNet5.draw(generator("net"), **image)
    one, two, *dense = (m for m in net.layers if hasattr(m, "weight"))
    state = F.pad(x, [(32 - image["side"]) // 2] * 4)
    state = F.max_pool2d(F.conv2d(state, one.weight, one.bias).relu(), 2)
    state = F.max_pool2d(F.conv2d(state, two.weight, two.bias).relu(), 2).reshape(2, -1)
    assert state.shape == (2, 400)
    for layer in dense[:-1]:
        state = (state @ layer.weight.T + layer.bias).relu()
    torch.testing.assert_close(net(x), state @ dense[-1].weight.T + dense[-1].bias)

    net = AlexNet.draw(generator("net"), width=2, **image)
    *convs, last = (m for m in net.layers if hasattr(m, "weight"))
    assert [c.out_channels for c in convs] == [2, 6, 12, 8, 8]
    state = F.pad(x, [(32 - image["side"]) // 2] * 4)
    for k, (conv, pooled) in enumerate(zip(convs, (1, 1, 0, 0, 1), strict=True)):
        stride, padding = (4, 5) if k == 0 else (1, conv.kernel_size[0] // 2)
        state = F.conv2d(state, conv.weight, conv.bias, stride=stride, padding=padding).relu()
        state = F.max_pool2d(state, 2) if pooled else state
    assert state.shape == (2, 8, 1, 1)
    torch.testing.assert_close(net(x), state.flatten(1) @ last.weight.T + last.bias)


def test_he_starts_have_their_variance():
    net = WideResNet.draw(generator("net"), depth=10, widen=2)
    for conv in (m for m in net.modules() if isinstance(m, nn.Conv2d) and m.weight.numel() > 4000):
        wanted = 2 / (math.prod(conv.kernel_size) * conv.out_channels)
        assert conv.weight.var().item() == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize("name", ["lenet5", "alexnet", "preact_resnet14", "wide_resnet"])
def test_starts_come_from_the_generator_alone(name):
    own = {"lenet5": {}, "wide_resnet": {"depth": 10, "widen": 1, "width": 2}}
    about = described(name, "mnist", **own.get(name, {"width": 2}))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    one = about.build(rng=1).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    two, other = about.build(rng=1).state_dict(), about.build(rng=2).state_dict()
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not all(torch.equal(one[key], other[key]) for key in one)


# ReLU forward, Softplus backward.


@settings(deadline=None, max_examples=30)
@given(
    z=st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=8),
    beta=st.sampled_from([1.0, 10.0, 50.0]),
)
def test_values_are_those_of_relu_and_gradients_those_of_softplus(z, beta):
    point = torch.tensor(z, requires_grad=True)
    same = point.detach().clone().requires_grad_()
    value = ReLUSoftplus(beta)(point)
    assert torch.equal(value, F.relu(same))
    weights = torch.arange(1.0, len(z) + 1)
    (value @ weights).backward()
    (F.softplus(same, beta=beta) @ weights).backward()
    torch.testing.assert_close(point.grad, same.grad, rtol=1e-4, atol=1e-5)


def test_its_gradient_has_a_gradient_and_passes_stacks():
    z = torch.tensor([0.03, -0.2], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(ReLUSoftplus()(z).sum(), z, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), z)
    s = torch.sigmoid(10 * z.detach())
    torch.testing.assert_close(second, 10 * s * (1 - s))
    nets = [SmallCNN.draw(generator(k), 2, hidden=3, activation="relu_softplus") for k in "ab"]
    x = torch.rand(4, 1, 28, 28, generator=generator("x"), requires_grad=True)
    alone = torch.cat([net(part) for net, part in zip(nets, x.chunk(2), strict=True)])
    torch.testing.assert_close(Stack(nets)(x), alone)
    one, two = (torch.autograd.grad(out.sum(), x)[0] for out in (Stack(nets)(x), alone))
    torch.testing.assert_close(one, two)


def test_certificates_and_losses_see_relu_and_attacks_the_other_gradient():
    smooth = SmallCNN.draw(generator("net"), 2, hidden=3, activation="relu_softplus").eval()
    plain = SmallCNN.draw(generator("net"), 2, hidden=3).eval()
    x = torch.rand(3, 1, 28, 28, generator=generator("x"))
    y, ball = torch.arange(3), Ball("linf", 0.01, box=(0, 1))
    assert torch.equal(smooth(x), plain(x))
    assert torch.equal(*(IBP().worst_margin(net, x, y, ball) for net in (smooth, plain)))
    steps = [
        PGD(steps=3)(ModelLoss(net, y, cross_entropy), x, ball, rng=generator("pgd")).x
        for net in (smooth, plain)
    ]
    assert not torch.equal(*steps)


@pytest.mark.parametrize("activation", LAYERS)
@pytest.mark.parametrize(
    "name", ["lenet5", "small_cnn", "resnet9", "alexnet", "preact_resnet14", "wrn34_1"]
)
def test_every_kind_of_network_takes_every_activation(name, activation):
    net = described(name, "mnist", activation=activation).build()
    layers = [type(m) for m in net.modules()]
    assert type(LAYERS[activation]()) in layers
    assert activation == "relu" or nn.ReLU not in layers


# By name.


def test_a_network_by_name_is_the_class_with_its_normalisation():
    net = network("small_cnn", **MNIST, classes=3, rng=4, mean=[0.5], std=[0.25], width=2, hidden=5)
    x = torch.rand(2, 1, 28, 28, generator=generator("x"))
    assert isinstance(net, Normalised)
    inner = copy.deepcopy(net.model)
    torch.testing.assert_close(net(x), inner((x - 0.5) / 0.25))
    again = network("small_cnn", **MNIST, classes=3, rng=4, width=2, hidden=5)
    assert torch.equal(again((x - 0.5) / 0.25), inner((x - 0.5) / 0.25))


def test_settings_of_a_name_leave_out_what_it_fixes():
    assert settings_of("wrn34_10") == {"width": 16, "activation": "relu"}
    assert set(settings_of("wide_resnet")) == {"depth", "widen", "width", "activation"}
    assert settings_of("lenet5") == {"activation": "relu"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "resnet_9"}, "did you mean resnet9"),
        ({"widht": 2}, "settings of small_cnn among width, .* did you mean width"),
        ({"width": 2.5}, "width of small_cnn as a whole number"),
        ({"width": True}, "width of small_cnn as a whole number"),
        ({"width": 0}, "width, hidden and channels of at least 1"),
        ({"activation": "rleu"}, "did you mean relu"),
        ({"side": 3}, "side of at least 4"),
        ({"classes": 1}, "classes"),
        ({"channels": 0}, "channels"),
        ({"mean": (0.5,)}, "mean and std together"),
        ({"mean": (0.5, 0.5), "std": (1, 1)}, "mean and std of 1 channels"),
        ({"mean": (0.5,), "std": (0.0,)}, "std above 0"),
        ({"rng": "a"}, "rng as a torch.Generator"),
        ({"width": 10**17}, "settings that small_cnn can be built with"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(given, says):
    asked = {"name": "small_cnn", **MNIST, "classes": 10, "rng": 0, **given}
    with pytest.raises(AdvlabError, match=says) as refused:
        network(**asked)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("depth", [10**9 * 6 + 2, 15, 2, -4])
def test_depths_that_there_are_not_are_refused_at_once(depth):
    for kind in (PreActResNet, WideResNet):
        with pytest.raises(AdvlabError, match="depth as"):
            kind(depth=depth)


@pytest.mark.parametrize(
    ("shape", "labels", "says"),
    [
        ((2, 1, 28, 28), [0, 9], None),
        ((2, 3, 28, 28), [0, 9], r"images of shape \(1, 28, 28\) for lenet5; got \(3, 28, 28\)"),
        ((2, 1, 32, 32), [0, 9], r"got \(1, 32, 32\)"),
        ((2, 784), [0, 9], r"got \(784,\)"),
        ((2, 1, 28, 28), [0, 10], "labels from 0 to 9 for lenet5; got labels from 0 to 10"),
        ((2, 1, 28, 28), [-1, 1], "got labels from -1 to 1"),
        ((2, 1, 28, 28), [0], "2 images and 1"),
        ((2, 1, 28, 28), [0.0, 1.0], "a class per image"),
    ],
)
def test_examples_that_do_not_fit_the_network_are_refused(shape, labels, says):
    about, y = described("lenet5", "mnist"), torch.tensor(labels)
    if says is None:
        return about.check_examples(torch.zeros(shape), y)
    with pytest.raises(AdvlabError, match=says):
        about.check_examples(torch.zeros(shape), y)
    return None
