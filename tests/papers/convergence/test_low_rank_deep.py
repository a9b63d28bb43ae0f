"""The start plus outer products is the network that the plain loop trains; the linearised optimum
is that of cvxpy, and the network that it makes is as good when it is wide."""

import cvxpy as cp
import numpy as np
import pytest
import torch

from advlab.attacks import PGD, Anti, Grid, Identity
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.losses import pseudo_huber
from advlab.models import Stack
from advlab.papers.convergence.data import Sphere
from advlab.papers.convergence.models import DeepReLU
from advlab.papers.convergence.reductions import LowRankDeep, descend
from advlab.papers.convergence.reductions.linearised_deep import LinearisedDeep, robustly_linear
from advlab.papers.convergence.reductions.one_hidden import OneHidden
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


def test_one_hidden_layer_in_few_numbers_is_the_same_run():
    setting = {"loss": pseudo_huber, "attack": ASCENT, "threat": CAP, "rate": 1.5 / 12, "steps": 15}
    found = []
    for kind in (LowRankDeep, OneHidden):
        rngs = [generator("attack", r) for r in (0, 0, 1, 1)]
        runs = kind(_starts(1), (0.5, 50.0))
        losses = descend(runs, *_data(2), rng=rngs, **setting)
        found.append((losses, runs.displacement, runs(_data(2)[0].flatten(0, 1))))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    assert runs.layers[0].left.shape == (4, 12, 3)
    with pytest.raises(AdvlabError, match="one hidden layer"):
        OneHidden(_starts(2), (1.0,))


def test_the_linearised_network_is_the_derivative_of_autograd():
    nets, (x, _) = _starts(3), _data()
    runs, z = LowRankDeep(nets, (1.0,)), Sphere(n=4, d=3).sample(generator("z")).x.expand(2, 4, 3)
    with torch.no_grad():
        _, tangents = runs.tangents(x.flatten(0, 1))
    sizes = [torch.randn(2, 5, dtype=torch.float64) for _ in range(3)]
    moved = LowRankDeep(nets, (np.inf,))
    moved.move(sizes, tangents)
    found = LinearisedDeep(moved)(z.flatten(0, 1)).reshape(2, 4)
    for r, net in enumerate(nets):
        D = [(b[r].T * size[r]) @ (a[r] if h else a[r] @ net.bottom.T)
             for h, (size, (b, a)) in enumerate(zip(sizes, tangents, strict=True))]  # fmt: skip
        for out, linear in zip(net(z[r]), found[r], strict=True):
            grads = torch.autograd.grad(out, list(net.parameters()), retain_graph=True)
            change = sum(float((g * one).sum()) for g, one in zip(grads, D, strict=True))
            assert float(linear) == pytest.approx(float(out.detach()) + change, abs=1e-10)


def test_cutting_planes_end_at_the_program_with_many_points():
    """As many points at once give what was reached with few; a search finds little beyond."""
    nets, (x, y) = _starts(2), _data()
    rng = generators("search", seeds=range(2))
    search = Grid(points=100, refinements=20)
    few = robustly_linear(nets, (2.0,), x, y, CAP, first=1, search=search, rng=rng)
    many = robustly_linear(nets, (2.0,), x, y, CAP, first=60, search=search, rng=rng)
    np.testing.assert_allclose(few.least, many.least, atol=1e-3)
    assert (few.bound <= few.found + 1e-9).all()
    assert (few.found - few.least < 1e-3).all()
    # The move is in the balls.
    assert float(few.runs.displacement.max()) <= 2 * (1 + 1e-6)


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
