"""Lazy networks in the reachable subspace: the same run, and the same law of fresh inputs."""

import pytest
import torch

from advlab.attacks import Surrogate
from advlab.models import Stack
from advlab.papers.generalization.models import LazyNet
from advlab.reductions import Subspace
from advlab.threats import Ball
from advlab.training import fit


@pytest.fixture
def problem():
    rngs = [torch.Generator().manual_seed(seed) for seed in range(2)]
    x = torch.stack([torch.randn(6, 40, generator=rng, dtype=torch.float64) for rng in rngs])
    theta0 = torch.ones(40, dtype=torch.float64)
    return x, x @ theta0, theta0, rngs


@pytest.mark.parametrize("activation", ["linear", "sigmoid", "relu"])
def test_a_network_never_leaves_the_span_of_data_and_start(problem, activation):
    x, y, theta0, rngs = problem
    whole = Stack.draw(lambda rng: LazyNet.draw(40, 5, activation, rng, 0.5), rngs)
    start = whole.get_parameter("theta").detach().clone()
    space = Subspace.of(torch.cat([x, start], dim=1), theta0)
    assert space.basis.shape == (2, 40, 12)
    inside = zip(space.into(start), whole.get_buffer("top"), strict=True)
    small = Stack([LazyNet(theta, top, activation) for theta, top in inside])
    for model, data in ((whole, x), (small, space.into(x))):
        fit(model, data, y, steps=50, lr=0.05, loss="squared",
            ball=Ball(norm="l2", radius=0.5), attack=Surrogate(xi=0.1))  # fmt: skip
    theta = whole.get_parameter("theta").detach()
    assert (theta - start).norm() > 0.1
    lifted = space.lift(small.get_parameter("theta").detach())
    torch.testing.assert_close(lifted, theta, rtol=1e-10, atol=1e-12)
    # A fresh input outside the span gives what its coordinates in the span give.
    fresh = torch.randn(2, 9, 40, generator=rngs[0], dtype=torch.float64)
    seen = small(space.into(fresh).flatten(0, 1))
    torch.testing.assert_close(seen, whole(fresh.flatten(0, 1)))
