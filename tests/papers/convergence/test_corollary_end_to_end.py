"""Corollary 5.1 carried out: the sizes keep the promise, and a tiny case runs."""

import numpy as np
import pytest
import torch

from advlab.papers.convergence.experiments import corollary_end_to_end
from advlab.papers.convergence.experiments._parts import corollary_runs
from advlab.papers.convergence.experiments._parts.corollary_runs import Case, _built, _fits, _sized
from advlab.papers.convergence.experiments._parts.corollary_runs import _when as when
from advlab.papers.convergence.experiments._parts.regret_audit_runs import descent
from advlab.papers.convergence.theory.descent import two_layer_bound

CASE = Case(eps=0.4, n=4, replicates=2, searched=5, samples=6, share=0.05)


def test_sizes_of_the_theorem_keep_the_promise_and_half_the_width_does_not():
    whole = CASE.model_copy(update={"share": 1.0})
    for R in (0.8, 2.0):
        run = _sized(whole, R)
        fit = corollary_runs.FIT * whole.eps
        bound = two_layer_bound(descent(run.width, run.rate), run.steps, R, fit)
        assert bound == pytest.approx(whole.eps, rel=0.02)
        half = two_layer_bound(descent(run.width // 2, run.rate), run.steps, R, fit)
        assert half > 1.05 * whole.eps


def test_the_kernel_function_has_the_loss_that_was_asked_for():
    for fit in _fits(CASE):
        assert fit.status == "fits"
        loss = np.sqrt(1 + fit.sup_error**2) - 1
        assert loss == pytest.approx(corollary_runs.FIT * CASE.eps, rel=0.03)


def test_the_built_network_stands_on_the_trained_start_and_has_the_functions_value():
    fits = _fits(CASE)
    run = CASE.run(width=20_000)
    goal, start = _built(run, fits), run.networks(corollary_runs.NAME)
    x, _ = run.data(corollary_runs.NAME)
    moved = (goal.get_parameter("weight") - start.get_parameter("weight")).detach()
    with torch.no_grad():
        f = goal(x.flatten(0, 1)).reshape(2, -1).numpy()
    for r, fit in enumerate(fits):
        assert float(moved[r].norm()) == pytest.approx(fit.norm, rel=0.05)
        np.testing.assert_allclose(f[r], fit.expansion(x[r].numpy()), atol=0.05)


def test_the_distance_is_that_of_the_first_step_that_is_down():
    losses = torch.tensor([[3.0, 3.0], [1.0, 2.0], [2.0, 2.0], [0.5, 2.0]])
    moved = torch.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    found = when(losses, torch.tensor([1.0, 1.0]), moved)
    assert float(found[0]) == 1.0
    assert bool(found[1].isnan())


def test_a_tiny_case_runs_and_its_inequalities_hold():
    table = corollary_end_to_end.compute(CASE)
    assert table.height == 8 * 2
    assert (table["mean"] <= table["audited"]).all()
    assert (table["least"] <= table["proved"]).all()
    assert table["violations"].sum() == 0
