"""Inequalities of Appendix B: measures against loops and autograd, and the experiment itself."""

import math

import numpy as np
import pytest
import torch
from mixture_setup import BALL, ETA, LAW, WALK, D, M, N, contrary, draw, shapes, trained

from advlab import lab
from advlab.core.randomness import generators
from advlab.models import Stack, TwoLayer
from advlab.papers.benign import measures
from advlab.papers.benign.experiments import appendix_bounds
from advlab.papers.benign.experiments._parts.appendix_runs import AppendixCase, appendix_run
from advlab.training import fit


def _gradient(net, r, x):
    """Of f at x in the weights of network r, by autograd."""
    weight = net.weight[r].clone().requires_grad_()
    f = (net.top[r] * net.activation.phi(weight @ x)).sum() / math.sqrt(net.width)
    return torch.autograd.grad(f, weight)[0]


@shapes
def test_products_of_gradients_are_those_of_autograd(shape):
    _, now = trained(shape)
    found = measures.gradient_products(now)
    for r in range(len(now.x)):
        moved = [_gradient(now.net, r, x) for x in now.x[r]]
        clean = [_gradient(now.net, r, x) for x in now.data.x[r]]
        both = torch.tensor([[float((a * b).sum()) for b in moved] for a in moved])
        half = torch.tensor([[float((a * b).sum()) for b in moved] for a in clean])
        off = ~torch.eye(N, dtype=torch.bool)
        own = torch.cat([both.diagonal(), half.diagonal()])
        assert float(found.apart[r]) == pytest.approx(float(both[off].abs().max()), rel=1e-5)
        assert float(found.half_clean[r]) == pytest.approx(float(half[off].abs().max()), rel=1e-5)
        assert float(found.own_low[r]) == pytest.approx(float(own.min()), rel=1e-5)
        assert float(found.own_high[r]) == pytest.approx(float(own.max()), rel=1e-5)


def test_nearly_equal_inputs_break_the_bound_between_examples():
    """Lemma B.8 lives on almost orthogonal data; its bound relative to own lengths fails here."""
    found = measures.gradient_products(contrary())
    assert float(found.apart) > 0.9 * float(found.own_low)


@shapes
def test_own_secants_and_their_floor_by_loops(shape):
    _, now = trained(shape)
    found, after = measures.secant_floor(now, ETA), now.after(ETA)
    phi, gamma = now.net.activation.phi, now.net.activation.gamma
    for i in range(3):
        x, centre = now.x[0, i], now.data.x[0, i]
        value, kept = 0.0, 0
        for s in range(now.net.width):
            old, new = now.net.weight[0, s], after.weight[0, s]
            secant = (phi(new @ x) - phi(old @ x)) / (new @ x - old @ x)
            value += float(secant * now.slope[0, i, s]) / now.net.width
            kept += all(float(w @ centre) > BALL.radius * float(w.norm()) for w in (old, new))
        assert float(found[0, i]) == pytest.approx(value - gamma**2 * kept / now.net.width)
        assert int(measures.kept_pairs(now, ETA)[0, i].sum()) == kept
    assert found.min() > -1e-12


@shapes
def test_neurons_on_fresh_points_by_loops(shape):
    _, now = trained(shape)
    test = draw("fresh", 5)
    margins = measures.neuron_margins(now.net, test)
    sizes = measures.neuron_sizes(now.net, test, BALL.radius, LAW.mu_norm, LAW.d, N)
    for k in range(5):
        products = now.net.weight[1] @ test.x[1, k]
        signs = test.y_clean[1, k] * now.net.top[1]
        assert float(margins[1, k]) == pytest.approx(float((signs * products).min()))
        xi, mu, alpha = float(test.noise[1, k].norm()), LAW.mu_norm, BALL.radius
        unit = mu**2 + mu * xi + math.sqrt(LAW.d / N) * xi + mu * alpha + xi * alpha
        assert float(sizes[1, k]) == pytest.approx(float(products.abs().max()) / unit)


def test_rounding_does_not_decide_lemma_b13_at_the_assumed_pace():
    """What a step uses of its curvature term, against 80-bit numbers, where that term is 1e-12 of
    the step: rounding is a twentieth of the term, and the bound is the whole of it."""
    eta, shape = 4e-16, "smoothed_leaky_relu"
    rngs = generators("small", seeds=range(2))
    omega = eta / math.sqrt(M * D)
    model = Stack.draw(lambda rng: TwoLayer.draw(D, M, shape, rng, omega=omega), rngs)
    data, test = (LAW.sample_stack(generators(one, seeds=range(2)), N) for one in ("a", "b"))
    fit(model, data.x, data.y, steps=2, lr=eta, loss="logistic", ball=BALL, attack=WALK)
    now = measures.Snapshot.take(model, data, LAW.mu(), BALL, WALK)
    found = measures.fresh_step(now, eta, test.x, test.y_clean)
    used = ((found.linear - found.step) / found.curvature)[0]
    assert float((found.curvature / found.step.abs()).max()) < 1e-10

    long = np.longdouble
    before, after, x = (one[0].numpy().astype(long) for one in
                        (now.net.weight, now.after(eta).weight, test.x))  # fmt: skip
    sign = now.net.top[0].numpy().astype(long) * test.y_clean[0].numpy()[:, None]
    H, gamma = long(1), long(now.net.activation.gamma)
    old, new = x @ before.T, x @ after.T
    phi = [(1 - gamma) * H * z * z / 4 + (1 + gamma) * z / 2 for z in (old, new)]
    slope = (1 - gamma) * H * old / 2 + (1 + gamma) / 2
    short = (sign * (slope * (new - old) - phi[1] + phi[0])).sum(1) / np.sqrt(long(M))
    room = H * (x * x).sum(1) * ((after - before) ** 2).sum() / (2 * np.sqrt(long(M)))
    exact = (short / room).astype(float)
    assert (np.abs(exact) < 1e-3).all()
    assert used.numpy() == pytest.approx(exact, abs=0.1)


def test_a_move_against_mu_takes_its_share_of_the_first_step():
    """The margin at t = 1 of a nearly linear network is (1 - 2 beta) - alpha/||mu||, in units."""
    common = {"C": 1.0, "n": 40, "width": 20, "d": 4_000_000, "mu_norm": 100.0, "pace": "fast",
              "steps": 2, "kind": "footnote", "activation": "smoothed_leaky_relu", "tests": 100,
              "seed": 0, "replicates": 2}  # fmt: skip
    values = {
        first: appendix_run(AppendixCase(alpha=50.0, first=first, **common))["first margin"]
        for first in ("clean", "against mu")
    }
    ratio = (values["against mu"] / values["clean"]).to_list()
    assert ratio == pytest.approx([1 - 0.5 / 0.8] * 2, abs=0.03)


def test_the_experiment_runs_end_to_end(tmp_path):
    result = lab.run("benign/appendix_bounds", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert [one.id for one in result.verdicts] == list(appendix_bounds.ABOUT.claims)
    assert {one.outcome for one in result.verdicts} == {"undecided"}
    assert result.chart
