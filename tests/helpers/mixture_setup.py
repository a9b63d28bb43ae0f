"""A small run of the noisy mixture for the tests of its measures."""

from functools import cache

import pytest
import torch

from advlab.attacks import PGD
from advlab.core.randomness import generators
from advlab.models import Stack, TwoLayer
from advlab.models.activations import resolve
from advlab.papers.benign.data import Clusters, NoisyMixture
from advlab.papers.benign.measures import Networks, Snapshot
from advlab.threats import Ball
from advlab.training import Hook, fit

N, D, M, ETA, OMEGA, R = 8, 600, 20, 0.01, 1e-4, 3
LAW = NoisyMixture(n=N, d=D, mu_norm=5.0, beta=0.25, flips="count")
BALL = Ball(norm="l2", radius=1.5)
WALK = PGD(steps=20, step_size=0.2, random_start=False, jump=False)
SHAPES = ["smoothed_leaky_relu", "leaky_relu", "relu"]
shapes = pytest.mark.parametrize("shape", SHAPES)


def start(shape: str) -> Stack:
    rngs = generators("measure", "net", seeds=range(R))
    return Stack.draw(lambda rng: TwoLayer.draw(D, M, shape, rng, omega=OMEGA), rngs)


def draw(stream: str, n: int = N) -> Clusters:
    return LAW.sample_stack(generators("measure", stream, seeds=range(R)), n)


def train(model: torch.nn.Module, data: Clusters, steps: int, *hooks: Hook):
    return fit(model, data.x, data.y, steps=steps, lr=ETA, loss="logistic", ball=BALL, attack=WALK,
               hooks=hooks)  # fmt: skip


@cache
def trained(shape: str) -> tuple[Stack, Snapshot]:
    """Networks after fifteen steps; not to be changed."""
    model, data = start(shape), draw("data")
    train(model, data, 15)
    return model, Snapshot.take(model, data, LAW.mu(), BALL, WALK)


def contrary(shape: str = "relu") -> Snapshot:
    """Two nearly equal inputs with opposite labels, far from the paper's almost orthogonal data."""
    x = torch.tensor([[[3.0, 0.0, 0.1], [3.0, 0.1, 0.0]]], dtype=torch.float64)
    y = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    weight = torch.tensor([[[0.2, 0.3, 0.1], [0.5, -0.1, 0.2]]], dtype=torch.float64)
    net = Networks(weight, torch.tensor([[1.0, -1.0]], dtype=torch.float64), resolve(shape))
    mu = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    data = Clusters(x, y, torch.ones_like(y), x - mu)
    return Snapshot.at(net, data, mu, 0.01, x)
