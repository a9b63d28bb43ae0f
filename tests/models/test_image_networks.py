"""Image networks: their shapes, their layers by hand, and starts that come from the generator."""

import pytest
import torch
import torch.nn.functional as F

import advlab
from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, cross_entropy
from advlab.models import ResNet9, SmallCNN
from advlab.threats import Ball

NETWORKS = {"cnn": (SmallCNN, (1, 28, 28)), "resnet": (ResNet9, (3, 32, 32))}


def images(shape, n=4, *name):
    return torch.rand(n, *shape, generator=generator("images", *name))


@pytest.fixture(params=NETWORKS)
def case(request):
    kind, shape = NETWORKS[request.param]
    return kind, images(shape)


def test_one_score_a_class(case):
    kind, x = case
    assert kind.draw(generator("net"), width=2)(x).shape == (4, 10)
    assert kind.draw(generator("net"), width=2, classes=3)(x).shape == (4, 3)


def test_the_start_comes_from_the_generator_alone(case):
    kind, x = case
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = kind.draw(generator("net", 1), width=2).eval()(x)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(kind.draw(generator("net", 1), width=2).eval()(x), first)
    assert not torch.equal(kind.draw(generator("net", 2), width=2).eval()(x), first)


def test_a_start_uses_up_the_generator():
    rng = generator("net")
    first, second = (SmallCNN.draw(rng, width=2).layers[0].weight for _ in range(2))
    assert not torch.equal(first, second)


def test_small_cnn_layer_by_layer():
    net = SmallCNN.draw(generator("net"), width=3, hidden=5)
    x = images((1, 28, 28))
    one, two, dense, last = (m for m in net.layers if hasattr(m, "weight"))
    state = F.avg_pool2d(F.conv2d(x, one.weight, one.bias, padding=1).relu(), 2)
    state = F.avg_pool2d(F.conv2d(state, two.weight, two.bias, padding=1).relu(), 2)
    assert state.shape == (4, 6, 7, 7)
    hidden = (state.reshape(4, -1) @ dense.weight.T + dense.bias).relu()
    torch.testing.assert_close(net(x), hidden @ last.weight.T + last.bias)


def test_resnet9_layer_by_layer():
    net = ResNet9.draw(generator("net"), width=2)
    x = images((3, 32, 32))
    net.train()(x)
    net.eval()
    convs = [m for m in net.modules() if isinstance(m, torch.nn.Conv2d)]
    norms = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    assert [c.out_channels for c in convs] == [2, 4, 4, 4, 8, 16, 16, 16]

    def block(state, k):
        state = F.conv2d(state, convs[k].weight, padding=1)
        n = norms[k]
        shape = (1, -1, 1, 1)
        state = (state - n.running_mean.reshape(shape)) / (n.running_var + n.eps).sqrt().reshape(
            shape
        )
        return (state * n.weight.reshape(shape) + n.bias.reshape(shape)).relu()

    state = F.max_pool2d(block(block(x, 0), 1), 2)
    state = state + block(block(state, 2), 3)
    state = F.max_pool2d(block(F.max_pool2d(block(state, 4), 2), 5), 2)
    state = state + block(block(state, 6), 7)
    dense = net.layers[-1]
    expected = state.amax((2, 3)) @ dense.weight.T + dense.bias
    torch.testing.assert_close(net(x), expected, rtol=1e-4, atol=1e-5)


def test_resnet9_at_the_usual_width_has_the_usual_size():
    # 3x3 convolutions 3-64-128, 128-128-128, 128-256, 256-512, 512-512-512; BatchNorm 2 a channel.
    pairs = [(3, 64), (64, 128), (128, 128), (128, 128), (128, 256), (256, 512)] + [(512, 512)] * 2
    wanted = sum(9 * a * b + 2 * b for a, b in pairs) + 512 * 10 + 10
    assert sum(p.numel() for p in ResNet9().parameters()) == wanted


def test_resnet9_takes_images_of_other_sizes():
    assert ResNet9.draw(generator("net"), width=2)(images((3, 40, 24))).shape == (4, 10)


def test_both_train_against_pgd(case):
    kind, x = case
    y = torch.arange(8) % 2
    x = 0.5 * images(x.shape[1:], 8, "fit") + 0.4 * y[:, None, None, None]  # light and dark
    net = kind.draw(generator("net"), width=2, classes=2)
    ball = Ball(norm="linf", radius=0.02, box=(0, 1))
    fitted = advlab.fit(
        net, x, y, steps=40, lr=0.02, ball=ball, attack=PGD(steps=2), 
        optimizer=torch.optim.Adam,
        rng=generator("fit"),
    )  # fmt: skip
    losses = fitted.log.losses()[:, 0]
    assert losses[-5:].mean() < 0.5 * losses[:5].mean()


def test_an_attack_leaves_batch_norm_alone():
    net = ResNet9.draw(generator("net"), width=2).train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x, y = images((3, 32, 32)), torch.arange(4)
    ball = Ball(norm="l2", radius=0.5, box=(0, 1))
    PGD(steps=2)(ModelLoss(net, y, cross_entropy), x, ball, rng=generator("pgd"))
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert all(m.training for m in net.modules())


@pytest.mark.parametrize(
    "make",
    [
        lambda: SmallCNN(width=0),
        lambda: SmallCNN(side=3),
        lambda: SmallCNN(classes=1),
        lambda: ResNet9(width=0),
        lambda: ResNet9(classes=1),
    ],
)
def test_networks_of_no_size_are_refused(make):
    with pytest.raises(AdvlabError):
        make()
