"""Projected deep networks: runs end to end, and each verdict can come out refuted."""

import numpy as np
import polars as pl
import pytest
from specimens_convergence_trained import TRAINED

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.papers.convergence.experiments import projected_deep
from advlab.papers.convergence.experiments._parts import projected_deep_runs
from advlab.papers.convergence.experiments._parts.projected_deep_runs import (
    Case,
    guard,
    inputs,
    linearity,
    train,
)

SHORT = list(projected_deep.ABOUT.claims)


def outcomes(rows: pl.DataFrame) -> dict[str, str]:
    found = {v.id: v.outcome for v in projected_deep.verdicts(rows)}
    assert list(found) == SHORT
    return found


def changed(where: pl.Expr, **values: object) -> pl.DataFrame:
    return TRUE.with_columns(
        pl.when(where).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


SPECIMEN = TRAINED["convergence/projected_deep"]()
TRUE = SPECIMEN.table
TRAINING = pl.col("kind") == "training"


def test_a_true_table_supports_every_claim():
    assert outcomes(TRUE) == dict.fromkeys(SHORT, "supported")


@pytest.mark.parametrize("name", [*SPECIMEN.controls, *SPECIMEN.bugs])
def test_each_claim_is_refuted_where_it_is_false(name):
    null = {**SPECIMEN.controls, **SPECIMEN.bugs}[name]
    found = outcomes(null.table)
    assert {found[label] for label in null.breaks} == {"refuted"}


def test_a_loss_that_differs_is_a_different_run_and_no_idle_run_decides_nothing():
    one = TRAINING & (pl.col("R") == 10.0) & (pl.col("step") == 1) & (pl.col("seed") == 0)
    assert outcomes(changed(one, loss=1.2))["6b"] == "refuted"
    busy = changed(TRAINING & pl.col("R").is_infinite() & (pl.col("step") == 10), displacement=50.0)
    assert outcomes(busy)["6b"] == "undecided"


def test_a_guard_that_refuses_too_much_is_wrong_too():
    assert outcomes(changed(pl.col("kind") == "guard", refused=True))["19a"] == "refuted"


def test_losses_up_to_ten_per_cent_higher_are_forgiven():
    for factor, expected in ((1.07, "supported"), (1.13, "refuted")):
        rows = changed(TRAINING & pl.col("R").is_infinite(), loss=pl.col("loss") * factor)
        assert outcomes(rows)["7"] == expected


def test_smoke_runs_and_decides_nothing(tmp_path):
    result = lab.run("convergence/projected_deep", scale="smoke", out=tmp_path, jobs=1)
    assert not result.failed
    assert [verdict.id for verdict in result.verdicts] == list(projected_deep.ABOUT.claims)
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert result.chart is not None
    assert len(result.chart["concat"]) == 2 + 1 + 1 + 2
    assert result.verdicts[0].scope.assumptions[0].holds


def run(R: float | None, **more) -> pl.DataFrame:
    settings = {"width": 16, "depth": 2, "steps": 60, "replicates": 3} | more
    return train(Case(kind="training", R=R, **settings))


def test_projection_keeps_runs_in_the_ball_and_a_wide_ball_changes_nothing():
    free, wide, tight = run(None), run(50.0), run(0.5)
    assert free["displacement"].to_numpy().max() > 1.2
    for column in ("step", "seed", "loss", "displacement 1", "displacement 2", "displacement"):
        assert free[column].equals(wide[column])
    assert not wide["projected"].any()
    assert tight["displacement"].to_numpy().max() == pytest.approx(0.5, rel=1e-12)
    assert tight["projected"].any()
    assert tight["projected"].equals((tight["displacement"] > 0.5 - 1e-9).alias("projected"))
    assert tight.filter(pl.col("step") == 0)["displacement"].to_list() == [0, 0, 0]
    # From the same start and the same attack, the smaller ball ends higher.
    least = [rows.group_by("seed").agg(pl.col("loss").min()).sort("seed") for rows in (tight, free)]
    assert (least[0]["loss"] > least[1]["loss"]).all()
    assert np.array_equal(tight["loss"][:3].to_numpy(), free["loss"][:3].to_numpy())


def test_a_seed_is_the_same_alone_and_in_company():
    alone, together = run(3.0, seed=1, replicates=1, steps=10), run(3.0, steps=10)
    np.testing.assert_allclose(
        alone["loss"].to_numpy(), together.filter(pl.col("seed") == 1)["loss"].to_numpy()
    )


def test_training_refuses_data_and_caps_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(projected_deep_runs, "DELTA", 1.2)
    with pytest.raises(AdvlabError, match=r"threat sets .* must not meet.*use a radius below"):
        run(None, steps=1)


def test_linearity_inputs_and_guard_measure_what_they_say():
    narrow, wide = (linearity(Case(kind="linearity", width=m, replicates=3)) for m in (32, 1024))
    assert narrow["R"].to_list() == [1.0, 3.0] * 3
    assert (narrow["residual"] > wide["residual"]).all()
    found = inputs(Case(kind="inputs", width=32, depth=2, replicates=2))
    assert found["masks"].to_list() == [0, 0]
    assert found["difference"].to_numpy().max() < 1e-13
    assert 0.1 < found["ratio"].to_numpy().max() < 1
    decided = guard(Case(kind="guard", replicates=5))
    assert decided["shared"].to_list() == [False, False, True, True] * 5
    assert decided["refused"].equals(decided["shared"].alias("refused"))


def test_a_guard_that_never_refuses_is_seen(monkeypatch):
    monkeypatch.setattr(projected_deep_runs, "_refused", lambda data, cap: False)
    decided = guard(Case(kind="guard", replicates=2))
    assert int((decided["refused"] != decided["shared"]).sum()) == 4


@pytest.mark.parametrize("bad", [{"R": 0.0}, {"R": -1.0}, {"depth": 0}, {"width": 0}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(AdvlabError, match=next(iter(bad))):
        Case(kind="training", **bad)
