"""Figures 2, 7, 8 and Tables 1, 2: paired trainings, a xi that must act, two conventions."""

import polars as pl
import pytest
from specimens_generalization_images import surrogate, table

from advlab import lab
from advlab.papers.generalization.experiments import fig2, table1
from advlab.papers.generalization.experiments._parts import wide_resnet_runs as runs

SMALL = {**runs.SMOKE, "n": 16, "tested": 8, "probed": 4, "epochs": 1}


def test_a_vanishing_xi_trains_like_none_and_the_batch_counts_in_the_mean():
    plain = runs.compute(runs.Case(**SMALL))
    tiny = runs.compute(runs.Case(**SMALL, xi=1e-12))
    assert tiny.drop("shrink").equals(plain.drop("shrink"))
    single, mean = (
        runs.compute(runs.Case(**SMALL, xi=0.01, convention=how))["shrink"].item()
        for how in ("per_example", "batch_mean")
    )
    assert plain["shrink"].item() == 1.0
    assert mean < single < 1
    assert (plain["relative"] * 2.0 - plain["difference"]).abs().max() < 1e-6


def test_arms_of_a_seed_see_the_same_images():
    one, other = runs.Case(**SMALL, xi=0.1), runs.Case(**SMALL, radius=0.5)
    assert (runs.images(one)[0].x == runs.images(other)[0].x).all()


@pytest.mark.parametrize(("factor", "outcome"), [(0.7, "supported"), (0.999, "outside")])
def test_where_xi_does_nothing_the_comparison_is_void_and_says_so(factor, outcome):
    good = surrogate((0, 1, 2, 3), ()).table.with_columns(
        shrink=pl.when(pl.col("xi") > 0).then(factor).otherwise(1.0)
    )
    reached = fig2.assumptions(good)
    scope = lab.experiment.Scope(assumptions=reached)
    for one in fig2.verdicts(good):
        whole = lab.experiment.within_scope(one, scope, fig2.ABOUT.claims[one.id].needs)
        assert whole.outcome == outcome
        assert ("void" in whole.note) == (outcome == "outside")


def test_only_the_network_of_the_paper_decides_a_table():
    whole = table().table
    assert {one.outcome for one in table1.verdicts(whole)} == {"supported"}
    small = table1.verdicts(whole.with_columns(depth=10))
    assert {one.outcome for one in small} == {"undecided"}
    assert all("WideResNet34-10" in one.note for one in small)
    paper = table1.recipe("paper")[0]
    assert (paper.depth, paper.widen, paper.n) == (34, 10, 50000)
