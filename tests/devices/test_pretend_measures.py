"""Measures on the pretend device: the CPU's numbers, with data that stayed on the CPU."""

import torch
from pretend_device import both
from torch import Tensor

from advlab.attacks import PGD
from advlab.core.randomness import generator
from advlab.measure.activation_maximisation import maximise_activation
from advlab.measure.activation_sparsity import activation_sparsity
from advlab.measure.attack_difference import attack_difference, surrogate_shrinkage
from advlab.measure.correlations import neuron_correlations, pair_correlations
from advlab.measure.dictionaries import ConvolutionalDictionary, DenseDictionary
from advlab.measure.flatness import flatness
from advlab.measure.loss_change import loss_change
from advlab.measure.robust_gap import robust_gap
from advlab.measure.sparse_reconstruction import lasso_path, zero_mean
from advlab.measure.spectra import autocorrelation, high_frequency_share
from advlab.models import SmallCNN
from advlab.threats import Ball

BALL = Ball("linf", 0.05, box=(0.0, 1.0))
PGD2 = PGD(steps=2)
FEW = {"draws": 2, "starts": 1, "climb": 1, "along": 1}


def network(device: torch.device, seed: int = 0) -> SmallCNN:
    return SmallCNN.draw(generator("net", seed), width=4, hidden=8, classes=3, side=8).to(device)


def images() -> tuple[Tensor, Tensor]:
    return torch.rand(5, 1, 8, 8, generator=generator("images")), torch.arange(5) % 3


def same(run) -> None:
    for one, other in zip(*both(run, float64=False), strict=True):
        assert one.is_cpu
        # Searches on the CPU have channels last, which rounds in another order.
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_measures_of_the_loss():
    def run(device: torch.device) -> list[Tensor]:
        model, (x, y) = network(device), images()
        halves = (x[:2], y[:2]), (x[2:], y[2:])
        change = loss_change(model, x, y, BALL, [0.01, 0.05], attack=PGD2, batch=3, rng=0)
        gap = robust_gap(model, *halves, BALL, attack=PGD2, certificates=(), rng=0)
        flat = flatness(model, *halves, BALL, attack=PGD2, rng=0, **FEW)
        assert change.high is not None
        assert gap.loss_bracket is None
        return [change.low, change.high, change.broken, change.certified,
                torch.tensor(gap.loss_gap), flat.local, flat.population]  # fmt: skip

    same(run)


def test_measures_of_attacks_and_activations():
    def run(device: torch.device) -> list[Tensor]:
        model, (x, y) = network(device), images()
        apart = attack_difference(model, x, y, Ball("l2", 0.5), batch=2, rng=0)
        shrunk = surrogate_shrinkage(model, x, y, BALL, 0.1)
        active = activation_sparsity(model, x, batch=2)
        made = maximise_activation(model, "layers.3", [0, 5], (1, 8, 8), steps=3, rng=0)
        assert made.device.type == device.type
        found = [apart.distance, apart.random, shrunk, *(one.units for one in active.values())]
        return [*found, made.cpu()]

    same(run)


def test_measures_of_weights_and_images():
    def run(device: torch.device) -> list[Tensor]:
        before, after = network(device), network(torch.device("cpu"), 1)
        kept = neuron_correlations(before, after, "layers.3")
        pairs = pair_correlations(before, "layers.7")
        x = zero_mean(images()[0].to(device))
        conv = lasso_path(ConvolutionalDictionary.of(before.layers[0]), x, (0.5, 0.1), steps=30)
        dense = lasso_path(DenseDictionary(x[:3]), x, (0.5,), steps=30)
        return [kept.theta, kept.nearest, torch.tensor(pairs.mean), conv.error, dense.share,
                high_frequency_share(x).cpu(), autocorrelation(x).cpu()]  # fmt: skip

    same(run)
