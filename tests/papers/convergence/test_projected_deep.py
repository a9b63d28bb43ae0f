"""Projected deep networks: runs end to end, and each verdict can come out refuted."""

import math

import numpy as np
import polars as pl
import pytest

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

RADII = (1.0, 3.0, 10.0, math.inf)
LEAST = {1.0: 1.1, 3.0: 0.5, 10.0: 0.02, math.inf: 0.02}
SHORT = list(projected_deep.ABOUT.claims)


def training(seed: int, wobble: float) -> list[dict]:
    """Four steps; displacement would be 5, and is at most R."""
    rows = []
    for width, depth in ((64, 1), (64, 2), (256, 1)):
        for R in RADII:
            for step, (loss, way) in enumerate(((1.5, 0.0), (1.2, 4.0), (0.4, 4.5), (0.0, 5.0))):
                reached = min(way, R)
                rows.append(
                    {"kind": "training", "width": width, "depth": depth, "R": R, "seed": seed}
                    | {"step": step, "loss": max(loss, LEAST[R]) * wobble, "displacement": reached}
                    | {"projected": reached == R}
                )
    return rows


def others(seed: int, wobble: float) -> list[dict]:
    linear = [
        {"kind": "linearity", "width": m, "depth": depth, "R": R, "seed": seed}
        | {"residual": R * depth * (m / 64) ** -0.8 * wobble}
        for m in (64, 128, 256, 512)
        for depth in (1, 2, 3)
        for R in (1.0, 3.0)
    ]
    moved = {"kind": "inputs", "width": 64, "depth": 1, "seed": seed}
    moved |= {"masks": 0.0, "difference": 1e-15, "ratio": 0.5}
    guarded = [
        {"kind": "guard", "seed": seed, "radius": radius, "shared": met, "refused": met}
        for radius, met in ((0.15, False), (0.4, True))
    ]
    return [*linear, moved, *guarded]


def table(where=lambda row: False, what=lambda row: {}) -> pl.DataFrame:
    """A table in which every claim is true; rows of `where` are changed by `what`."""
    noise = np.random.default_rng(0)
    rows = []
    for seed in range(10):
        wobble = 1 + 1e-2 * noise.standard_normal()
        plain = (*training(seed, wobble), *others(seed, wobble))
        rows += [row | what(row) if where(row) else row for row in plain]
    return pl.DataFrame(rows, infer_schema_length=None)


def at(**where):
    return lambda row: all(row.get(key) == value for key, value in where.items())


def to(**what):
    return lambda row: what


def outcomes(rows: pl.DataFrame) -> dict[str, str]:
    found = {v.id: v.outcome for v in projected_deep.verdicts(rows)}
    assert list(found) == SHORT
    return found


FALSE = {
    "6a": (at(seed=3, R=3.0, width=256, step=2), to(displacement=3.0001)),
    "6b": (at(seed=0, R=10.0, width=64, depth=2, step=1), to(displacement=4.0 + 1e-15)),
    "6c": (at(seed=7, R=10.0, width=64, depth=1, step=3), to(projected=True)),
    "6d": (at(R=1.0, width=256, step=2), to(projected=False)),
    "7": (at(kind="training", R=3.0, width=64, depth=2), lambda row: {"loss": row["loss"] + 2.0}),
    "9a": (
        at(kind="linearity", depth=3, R=1.0),
        lambda row: {"residual": row["residual"] * (row["width"] / 64) ** 0.7},
    ),
    "9b": (
        at(kind="linearity", depth=2, R=3.0),
        lambda row: {"residual": row["residual"] * (row["width"] / 64) ** 0.4},
    ),
    "14a": (at(kind="inputs", seed=4), to(masks=1.0)),
    "14b": (at(kind="inputs", seed=4), to(difference=1e-9)),
    "14c": (at(kind="inputs", seed=4), to(ratio=1.01)),
    "19a": (at(kind="guard", seed=2, radius=0.4), to(refused=False)),
}


def test_a_true_table_supports_every_claim():
    assert outcomes(table()) == dict.fromkeys(SHORT, "supported")
    assert list(FALSE) == SHORT


@pytest.mark.parametrize("part", FALSE)
def test_each_claim_is_refuted_where_it_is_false(part):
    found = outcomes(table(*FALSE[part]))
    also = {"9a": {"9b"}}.get(part, set())  # a slope above -1/6 is above -1/2
    assert found == dict.fromkeys(SHORT, "supported") | dict.fromkeys({part, *also}, "refuted")


def test_a_loss_that_differs_is_a_different_run_and_no_idle_run_decides_nothing():
    rows = table(at(seed=0, R=10.0, width=64, depth=2, step=1), lambda row: {"loss": 1.2})
    assert outcomes(rows)["6b"] == "refuted"
    busy = table(at(kind="training", R=math.inf, step=3), to(displacement=50.0))
    assert outcomes(busy)["6b"] == "undecided"


def test_a_guard_that_refuses_too_much_is_wrong_too():
    assert outcomes(table(at(kind="guard", radius=0.15), to(refused=True)))["19a"] == "refuted"


def test_losses_up_to_ten_per_cent_higher_are_forgiven():
    for factor, expected in ((1.07, "supported"), (1.13, "refuted")):

        def higher(row, factor=factor):
            return {"loss": row["loss"] * factor}

        assert outcomes(table(at(kind="training", R=math.inf), higher))["7"] == expected


def test_smoke_runs_and_decides_nothing(tmp_path):
    result = lab.run("convergence/projected_deep", scale="smoke", out=tmp_path, jobs=1)
    assert not result.failed
    assert [verdict.id for verdict in result.verdicts] == list(projected_deep.ABOUT.claims)
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert result.chart is not None
    assert len(result.chart["concat"]) == 2 + 1 + 2


def run(R: float | None, **more) -> pl.DataFrame:
    settings = {"width": 16, "depth": 2, "steps": 60, "replicates": 3} | more
    return train(Case(kind="training", R=R, **settings))


def test_projection_keeps_runs_in_the_ball_and_a_wide_ball_changes_nothing():
    free, wide, tight = run(None), run(50.0), run(1.0)
    assert free["displacement"].to_numpy().max() > 1.5
    for column in ("step", "seed", "loss", "displacement 1", "displacement 2", "displacement"):
        assert free[column].equals(wide[column])
    assert not wide["projected"].any()
    assert tight["displacement"].to_numpy().max() == pytest.approx(1, rel=1e-12)
    assert tight["projected"].any()
    assert tight["projected"].equals((tight["displacement"] > 1 - 1e-9).alias("projected"))
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
