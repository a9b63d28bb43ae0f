"""Corollary 5.1 carried out: the sizes keep the promise, and a tiny case runs."""

import numpy as np
import pytest
import torch

from advlab.papers.convergence import theory
from advlab.papers.convergence.experiments import corollary_end_to_end
from advlab.papers.convergence.experiments._parts import corollary_runs
from advlab.papers.convergence.experiments._parts.corollary_runs import Case, _built, _fits, _sized
from advlab.papers.convergence.experiments._parts.corollary_runs import _when as when
from advlab.papers.convergence.experiments._parts.regret_audit_runs import descent
from advlab.papers.convergence.theory.descent import two_layer_bound

CASE = Case(eps=0.4, n=4, replicates=2, searched=5, samples=6, share=0.05)


def test_sizes_of_the_theorem_keep_the_promise_and_half_the_width_does_not():
    whole = CASE.model_copy(update={"share": 1.0})
    fit = (corollary_runs.FIT + corollary_runs.BUILD) * whole.eps
    assert fit == pytest.approx(whole.eps / 2)
    for R in (0.8, 2.0):
        run = _sized(whole, R, spread=0.0)
        bound = two_layer_bound(descent(run.width, run.rate), run.steps, R, fit)
        assert bound == pytest.approx(whole.eps, rel=0.02)
        half = two_layer_bound(descent(run.width // 2, run.rate), run.steps, R, fit)
        assert half > 1.05 * whole.eps


def test_where_random_features_ask_for_more_the_width_has_room_for_them():
    """At two standard deviations an output is off by what takes the loss from FIT to BUILD more."""
    run = _sized(CASE, 0.5, spread=0.6)
    assert run.width > _sized(CASE, 0.5, spread=0.0).width
    off = 2 * 0.6 / np.sqrt(run.width / 2)
    distance = np.sqrt((1 + corollary_runs.FIT * CASE.eps) ** 2 - 1) + off
    assert np.sqrt(1 + distance**2) - 1 == pytest.approx(CASE.eps / 2, rel=0.01)


def test_the_kernel_function_has_the_loss_that_was_asked_for():
    for fit in _fits(CASE):
        assert fit.status == "fits"
        loss = np.sqrt(1 + fit.sup_error**2) - 1
        assert loss == pytest.approx(corollary_runs.FIT * CASE.eps, rel=0.03)


def test_the_spread_is_that_of_sums_of_random_features():
    g = _fits(CASE)[0].expansion
    x, M, rng = g.centres[:3], 50, np.random.default_rng(0)
    weights = rng.standard_normal((20_000, g.centres.shape[1]))
    spread = theory.feature_spread(g, x, weights)
    sums = [theory.random_features(g, rng.standard_normal((M, 3)))(x) for _ in range(2000)]
    np.testing.assert_allclose(np.std(sums, axis=0), spread / np.sqrt(M), rtol=0.1)
    np.testing.assert_allclose(
        np.mean(sums, axis=0), g(x), atol=4 * spread.max() / np.sqrt(2000 * M)
    )


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


def test_a_run_that_leaves_before_its_loss_was_down_is_told_from_one_that_leaves_after():
    losses = torch.tensor([[1.0, 1.0, 1.0], [0.9, 0.1, 1.0], [0.1, 0.9, 1.0]], dtype=torch.float64)
    moved = torch.tensor([[0, 0, 0], [2, 1, 1], [4, 4, 2], [4, 4, 3]], dtype=torch.float64)
    limit = torch.full((3,), 3.0, dtype=torch.float64)
    found = corollary_runs._leaves(losses, torch.full_like(limit, 0.2), moved, limit)
    # At the third step the first is out, and was never down before; the second was.
    assert found == {"farthest": [4.0, 4.0, 3.0], "early": [1, 0, 0]}


def test_two_points_need_more_the_nearer_they_are_and_it_matters_not_where_they_lie():
    near, far = (CASE.model_copy(update={"pair": True, "separation": s}) for s in (0.6, 1.2))
    rows = [corollary_end_to_end.compute(case) for case in (near, far)]
    assert rows[0]["norm"].item() > 1.5 * rows[1]["norm"].item()
    ratio = rows[0]["wanted"].item() / rows[1]["wanted"].item()
    assert ratio == pytest.approx((rows[0]["norm"].item() / rows[1]["norm"].item()) ** 4, rel=0.05)
    angle = 2 * np.arcsin(0.3)
    x = np.array([[0.0, 0.0, 1.0], [0.0, np.sin(angle), np.cos(angle)]])
    turned = corollary_runs._fit(near, x, np.array([-1.0, 1.0]), 3).norm
    assert turned == pytest.approx(rows[0]["norm"].item(), rel=0.03)
