"""The scaling law runs end to end; its settings are what its words say."""

import math

import numpy as np
import polars as pl
import pytest
import torch
from scipy.special import log_ndtr
from specimens_benign_scaling import table

from advlab import lab
from advlab.attacks import PGD
from advlab.core.randomness import generator, generators
from advlab.losses import ModelLoss, margin
from advlab.models import Stack, TwoLayer
from advlab.papers.benign.experiments import scaling_law
from advlab.papers.benign.experiments._parts import scaling_settings
from advlab.papers.benign.experiments._parts.scaling_runs import (
    LipschitzBound,
    strengths,
    together,
    trusted,
)
from advlab.papers.benign.experiments._parts.scaling_thresholds import crossing, drifts
from advlab.papers.benign.measures import RareErrors
from advlab.papers.benign.theory import averaging_accuracy, robust_upper_bound
from advlab.threats import Ball


def test_the_experiment_runs_end_to_end(tmp_path):
    result = lab.run("benign/scaling_law", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert [one.id for one in result.verdicts] == list(scaling_law.ABOUT.claims)
    assert {one.outcome for one in result.verdicts} == {"undecided"}
    assert result.chart


def test_the_routes_reach_the_same_strengths():
    runs = strengths(table())
    for route in ("n", "d", "mu"):
        for alpha, levels in {
            0.5: [1.0, 1.414, 2.828, 4.0], 2.0: [1.581, 2.236, 2.646, 3.162, 4.0], 3.5: [4.0],
        }.items():  # fmt: skip
            found = runs.filter(route=route, alpha=alpha)
            assert found["level"].unique().sort().to_list() == levels
    assert runs.filter(route="base")["level"].unique().to_list() == [2.0]
    grid = runs.filter(route="grid").select("level", "alpha").unique().sort("level", "alpha")
    assert grid.rows() == [(S, a) for S in (2, 2.5, 3, 4) for a in scaling_settings.GRID["alpha"]]
    for route, ratios in {
        "ratio": scaling_settings.RATIOS,
        "order": scaling_settings.ORDER,
    }.items():
        assert runs.filter(route=route)["level"].unique().sort().to_list() == list(ratios)
    for route in ("inside_n", "inside_d", "inside_mu"):
        assert runs.filter(route=route)["level"].unique().sort().to_list() == [50.0, 100.0]
    assert runs.filter(route="inside_alpha")["level"].unique().to_list() == [100.0]


def test_the_exponent_of_the_bound_is_that_of_the_theorem():
    """With C = S/m of the clean margin, by `theory`; where exp does not underflow."""
    runs = (
        strengths(table()).filter(route="ratio", beta=0.1, steps=60).filter(pl.col("ratio") < 0.2)
    )
    row = runs.row(0, named=True)
    sizes = {name: row[name] for name in ("n", "d", "mu_norm", "beta")}
    C = row["S"] / 6.0
    one = strengths(pl.DataFrame([row | {"clean_margin": 6.0}]))
    excess = robust_upper_bound(**sizes, alpha=row["alpha"], C=C) - row["beta"]
    below = log_ndtr(row["alpha"] - row["mu_norm"]) + math.log((1 - 0.2) / 2)
    assert one["bound"][0] == pytest.approx(math.log(excess) / below, rel=1e-6)
    q = averaging_accuracy(**{**sizes, "alpha": 0.0}).q
    error = log_ndtr(row["alpha"] - q) + math.log(0.8)
    assert one["averaging"][0] == pytest.approx(error / below)


def test_errors_of_few_effective_draws_are_missing():
    rows = strengths(table()).head(3)
    few = trusted(rows.with_columns(clean_draws=pl.Series([9.9, 10.0, 200.0])))
    assert few["clean_margin"].is_null().to_list() == [True, False, False]
    assert few["robust_margin"].null_count() == 0


def test_batches_are_one_sample():
    logs = torch.tensor([[-3.0, -5.0], [-3.5, -4.0]]).double()
    weights = torch.rand(2, 2, 50, generator=generator("w"), dtype=torch.float64) + 0.1
    logs = weights.mean(2).log()
    each = [
        RareErrors(log, w.sum(1) ** 2 / (w**2).sum(1)) for log, w in zip(logs, weights, strict=True)
    ]
    found = together(each)
    both = torch.cat([*weights], 1)
    torch.testing.assert_close(found.log_error, both.mean(1).log())
    torch.testing.assert_close(found.effective, both.sum(1) ** 2 / (both**2).sum(1))


def test_no_attack_finds_more_than_the_lipschitz_bound():
    """Of x_1 by two ReLUs, one of which is off, the bound is twice what an attack finds."""
    shape = "smoothed_leaky_relu"
    nets = [TwoLayer.draw(20, 10, shape, generator("net", k), omega=0.5) for k in range(2)]
    with torch.no_grad():
        for net in nets:
            net.weight[:, 0] += net.top
    stack, ball = Stack(nets), Ball(norm="l2", radius=0.7)
    x = torch.randn(2, 30, 20, generator=generator("x"), dtype=torch.float64).flatten(0, 1)
    loss = ModelLoss(stack, torch.ones(60, dtype=torch.float64), margin)
    rngs = generators("any", seeds=range(2))
    attack = PGD(steps=30, step_size=0.2, random_start=False)
    bound, found = (one(loss, x, ball, rng=rngs).loss for one in (LipschitzBound(), attack))
    assert (bound > found).all()
    assert (found > loss(x)).all()
    v = torch.zeros(1, 20, dtype=torch.float64)
    v[0, 0] = 1.0
    linear = Stack([TwoLayer(torch.cat([v, -v]), torch.tensor([1.0, -1.0]).double(), "relu")])
    loss = ModelLoss(linear, torch.ones(60, dtype=torch.float64), margin)
    bound, found = (one(loss, x, ball, rng=rngs[:1]).loss for one in (LipschitzBound(), attack))
    clean = loss(x)
    torch.testing.assert_close(bound - clean, 2 * (found - clean), rtol=0, atol=1e-9)


def test_a_crossing_is_between_the_settings_or_nowhere():
    x = np.array([3.0, 1.0, 2.0])
    assert crossing(x, 5 - 2 * x) == pytest.approx(2.5)
    assert crossing(x, 2 * x - 3) == pytest.approx(1.5)
    for beyond in (7 - 2 * x, np.array([1.0, np.nan, -1.0])):
        assert np.isnan(crossing(x, beyond))


def test_margins_of_a_law_drift_by_what_its_constant_says():
    """m = S/C - alpha moves by 1/C - 1 per unit of S at equal S - alpha, and not at S/C - alpha."""
    rows = [
        {"activation": "relu", "seed": seed, "S": S, "level": S, "alpha": alpha,
         "clean_margin": S / 1.25, "robust_margin": S / 1.25 - alpha}
        for seed in range(2) for S in (2.0, 3.0, 4.0) for alpha in np.arange(0.25, 4.1, 0.25)
    ]  # fmt: skip
    plain, scaled = (drifts(pl.DataFrame(rows), one) for one in (False, True))
    assert len(plain) == len(scaled) == 6
    assert np.array(list(plain.values())) == pytest.approx(-0.2)
    assert np.array(list(scaled.values())) == pytest.approx(0.0)


def test_one_setting_meets_every_line_of_assumption_1_but_the_step_size():
    found = {one.name: one for one in scaling_law.assumptions(table())}
    assert found["Assumption 1"].holds
    assert found["Assumption 1"].reached == pytest.approx(10)
    assert not found["step size"].holds
    others = {
        name.partition("claims: ")[2]: one for name, one in found.items() if "claims: " in name
    }
    reached = {name: one.reached for name, one in others.items()}
    assert reached == pytest.approx({
        "base, n swept, alpha = ||mu||, S and alpha swept": 0.05,
        "d swept, ||mu|| swept": 0.0125,
        "n ||mu||^2/d swept": 0.1,
    })  # fmt: skip
    assert not any(one.holds for one in others.values())
