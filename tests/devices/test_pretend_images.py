"""Augmentation, image networks and splits on the pretend device: the CPU's numbers, bit for bit."""

import pytest
import torch
from pretend_device import both

from advlab.core.randomness import generator, generators
from advlab.data import AUGMENTATIONS, Arrays, split
from advlab.models import ReLUSoftplus, network

X = torch.rand(6, 3, 8, 8, generator=generator("images"))


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_images_are_augmented_where_they_are(name):
    def run(device):
        x = X.to(device)
        one = AUGMENTATIONS[name](x, rng=generator(name))
        stacked = AUGMENTATIONS[name](x, rng=generators(name, seeds=[0, 1]))
        assert one.device == x.device
        return [one, stacked]

    # An accelerator without float64 draws the same too.
    for here, there in (both(run), both(run, float64=False)):
        for one, other in zip(here, there, strict=True):
            assert torch.equal(one, other)


def test_a_split_stays_where_its_data_are():
    def run(device):
        parts = split(Arrays(X.to(device), (torch.arange(6) % 2).to(device)), validation=2)
        assert parts.train.x.device == parts.validation.y.device == torch.device(device)
        return [parts.train.x, parts.validation.x, parts.validation.y]

    for one, other in zip(*both(run), strict=True):
        assert torch.equal(one, other)


def test_the_gradient_of_softplus_follows_the_model():
    def run(device):
        net = network(
            "preact_resnet14", channels=3, side=8, classes=2, rng=0, width=2,
            activation="relu_softplus", mean=(0.5,) * 3, std=(0.2,) * 3,
        ).to(device)  # fmt: skip
        x = X.to(device).requires_grad_()
        assert any(isinstance(layer, ReLUSoftplus) for layer in net.modules())
        (grad,) = torch.autograd.grad(net(x).square().sum(), x)
        return [grad]

    for one, other in zip(*both(run), strict=True):
        assert torch.equal(one, other)
