"""The start plus outer products is the network that the plain loop trains; the linearised optimum
is that of cvxpy, and the network that it makes is as good when it is wide."""

import cvxpy as cp
import numpy as np
import pytest
import torch

from advlab.attacks import PGD, Anti, Identity
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.losses import pseudo_huber
from advlab.models import Stack
from advlab.papers.convergence.data import Sphere
from advlab.papers.convergence.models import DeepReLU
from advlab.papers.convergence.reductions import LowRankDeep, descend
from advlab.papers.convergence.theory import linearised_optimum
from advlab.threats import Cap
from advlab.training import LayerBalls, Project, fit

CAP = Cap(radius=0.15)
ASCENT = PGD(steps=3, step_size=0.5, random_start=True, jump=False)


def _starts(depth: int) -> list[DeepReLU]:
    return [DeepReLU.draw(3, 12, depth, g) for g in generators("start", seeds=range(2))]


def _data(repeats: int = 1):
    x, y = Sphere(n=5, d=3, separation=0.6).sample_stack(generators("data", seeds=range(2)))
    return x.repeat_interleave(repeats, 0), y.repeat_interleave(repeats, 0)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("attack", [Identity(), ASCENT, Anti(inner=ASCENT)])
def test_it_is_the_run_of_the_plain_loop(depth, attack):
    radii, lr, steps = (0.5, 50.0), 1.5 / (12 * depth), 12
    runs = LowRankDeep(_starts(depth), radii)
    rngs = [generator("attack", r) for r in (0, 0, 1, 1)]
    losses = descend(runs, *_data(2), loss=pseudo_huber, attack=attack, threat=CAP, rate=lr,
                     steps=steps, rng=rngs)  # fmt: skip
    for k, R in enumerate(radii):
        stack = Stack.draw(lambda g: DeepReLU.draw(3, 12, depth, g),
                           generators("start", seeds=range(2)))  # fmt: skip
        start = [w.detach().clone() for w in stack.parameters()]
        run = fit(stack, *_data(), steps=steps, lr=lr, loss="pseudo_huber", ball=CAP,
                  attack=attack, hooks=[Project(LayerBalls(radius=R, width=12))],
                  rng=generators("attack", seeds=range(2)))  # fmt: skip
        torch.testing.assert_close(losses[:, k::2], run.log.losses(), rtol=0, atol=1e-11)
        moved = [w - w0 for w, w0 in zip(stack.parameters(), start, strict=True)]
        there = 12**0.5 * torch.stack([move.flatten(1).norm(dim=1) for move in moved])
        torch.testing.assert_close(runs.displacement[:, k::2], there.detach(), rtol=0, atol=1e-9)
    assert float(runs.displacement[:, 0].max()) == pytest.approx(0.5)  # the small ball was left
    assert float(runs.displacement[:, 1].max()) > 0.6


def test_tangents_are_the_gradients_of_autograd():
    nets, (x, _) = _starts(3), _data()
    runs = LowRankDeep(nets, (1.0,))
    f, tangents = runs.tangents(x.flatten(0, 1))
    grams = runs.tangent_grams(tangents)
    for r, net in enumerate(nets):
        out = net(x[r])
        torch.testing.assert_close(f[r], out.detach())
        grads = [torch.autograd.grad(one, list(net.parameters()), retain_graph=True) for one in out]
        for h in range(3):
            rows = torch.stack([g[h].flatten() for g in grads])
            torch.testing.assert_close(grams[h, r], rows @ rows.T)


def _problem():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((2, 12, 7))
    grams = features @ features.transpose(0, 2, 1)
    return features, grams, rng.standard_normal(12), np.repeat(np.arange(4), 3)


def test_linearised_optimum_is_that_of_cvxpy():
    features, grams, start, owner = _problem()
    y, radius = np.array([1.0, -1.0, 1.0, -1.0]), 0.2
    found = linearised_optimum(grams, start, owner, y, radius)
    moves = [cp.Variable(7) for _ in features]
    f = start + sum(F @ D for F, D in zip(features, moves, strict=True))
    worst = [
        cp.maximum(*(cp.norm(cp.hstack([1, f[z] - y[i]])) for z in np.flatnonzero(owner == i)))
        for i in range(4)
    ]
    problem = cp.Problem(cp.Minimize(sum(worst) / 4), [cp.norm(D) <= radius for D in moves])
    assert found.loss == pytest.approx(problem.solve(solver="CLARABEL") - 1, abs=1e-6)
    assert found.bound <= found.loss + 1e-9
    assert found.bound == pytest.approx(found.loss, abs=1e-6)
    # The coefficients are a move in the balls that has this loss.
    D = [F.T @ c for F, c in zip(features, found.coefficients, strict=True)]
    assert max(np.linalg.norm(one) for one in D) <= radius * (1 + 1e-6)
    u = start + sum(F @ one for F, one in zip(features, D, strict=True)) - y[owner]
    losses = (np.sqrt(1 + u**2) - 1).reshape(4, 3).max(1)
    assert losses.mean() == pytest.approx(found.loss, abs=1e-6)


def test_what_does_not_fit_together_is_refused():
    _, grams, start, owner = _problem()
    with pytest.raises(AdvlabError, match="Gram matrix per layer"):
        linearised_optimum(grams, start[:5], owner[:5], [1.0, -1.0], 0.1)
    with pytest.raises(AdvlabError, match="starts of one shape"):
        LowRankDeep([], (1.0,))
