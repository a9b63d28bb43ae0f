"""Figures 12 and 13 run end to end, and each of their verdicts can come out refuted."""

import numpy as np
import polars as pl
import pytest

from advlab import lab
from advlab.papers.generalization.experiments import fig12, fig13
from advlab.papers.generalization.experiments._parts.lazy_runs import (
    NETS,
    UNIT,
    HighDimensionCase,
    LazyProblem,
)


def table(where=lambda row: False, **what) -> pl.DataFrame:
    """A table in which every claim is true; rows of `where` get `what` instead."""
    noise = np.random.default_rng(0)
    rows = []
    for seed in range(6):
        wobble = 1 + 1e-3 * noise.standard_normal()
        for d, entry, v2 in ((1000, UNIT, 1.1), (1000, 1.0, 10.1), (5000, UNIT, 1.1)):
            for net in NETS:
                for radius in (0.0, 0.1):
                    for step, loss in ((0, 1.1), (50, 0.3), (100, 4 / d)):
                        row = {"seed": seed, "d": d, "entry": entry, "v2": v2, "activation": net}
                        row |= {"radius": radius, "step": step, "steps": 100}
                        row |= {"loss": loss * wobble, "risk": v2 * (1 + 10 * wobble / d)}
                        rows.append(row | what if where(row) else row)
    return pl.DataFrame(rows)


def rows_of(figure, where=lambda row: False, **what) -> pl.DataFrame:
    rows = table(where, **what)
    return rows.filter(pl.col("d") == 1000) if figure is fig12 else rows


def outcomes(figure, rows: pl.DataFrame) -> dict[str, str]:
    return {verdict.id: verdict.outcome for verdict in figure.verdicts(rows)}


def at(**where):
    return lambda row: all(row[key] == value for key, value in where.items())


FALSE_12 = {
    "a": (at(d=1000, entry=UNIT, activation="relu", radius=0.1, step=50), {"loss": 0.45}),
    "b": (at(d=1000, entry=UNIT, activation="linear", step=100), {"loss": 0.02}),
    "c": (at(entry=1.0, activation="sigmoid", step=100), {"loss": 4.1}),
}
FALSE_13 = {
    "a": (at(d=1000, entry=UNIT, activation="relu", step=100), {"risk": 1.3}),
    "c": (at(entry=1.0, activation="sigmoid", step=100), {"risk": 8.0}),
    "d": (at(d=5000, activation="linear", step=100), {"risk": 1.2}),
}


@pytest.mark.parametrize(("figure", "false"), [(fig12, FALSE_12), (fig13, FALSE_13)])
def test_claims_are_supported_where_true_and_refuted_where_false(figure, false):
    rows = rows_of(figure)
    assert outcomes(figure, rows) == dict.fromkeys(false, "supported")
    assert [verdict.id for verdict in figure.verdicts(rows)] == list(figure.ABOUT.claims)
    for part, (where, what) in false.items():
        expected = dict.fromkeys(false, "supported") | {part: "refuted"}
        assert outcomes(figure, rows_of(figure, where, **what)) == expected


@pytest.mark.parametrize("figure", [fig12, fig13])
def test_smoke_runs_and_decides_nothing(figure, tmp_path):
    result = lab.run(f"generalization/{figure.__name__[-5:]}", scale="smoke", out=tmp_path, jobs=1)
    assert not result.failed
    assert [verdict.id for verdict in result.verdicts] == list(figure.ABOUT.claims)
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert len(result.chart["concat"]) == 6


def test_a_problem_in_a_thousand_dimensions_has_71():
    case = HighDimensionCase(activation="sigmoid", replicates=2, tests=3)
    problem = LazyProblem.draw("test", case.law, case, case.delta)
    assert problem.train.x.shape == (2, 20, 71)
    assert case.width**case.delta == pytest.approx(1000**0.6)
    # Lengths are those of the whole space: |x|^2 is near d, |theta0| is 1.
    np.testing.assert_allclose((problem.train.x**2).sum(2) / 1000, 1, atol=0.25)
    np.testing.assert_allclose(problem.theta0.norm(dim=1), 1, rtol=1e-6)


def test_a_sigmoid_network_cannot_reach_the_answers_of_ten_ones():
    """|f| <= sum |a_j| / (2 sqrt(h)), so 100 steps leave it far from them."""
    case = HighDimensionCase(
        activation="sigmoid", radius=0.0, entry=1.0, lr=0.16, replicates=3, tests=0
    )
    losses = fig12.compute(case).filter(pl.col("step") == 100)["loss"]
    assert losses.min() > 1
    linear = case.model_copy(update={"activation": "linear"})
    assert fig12.compute(linear).filter(pl.col("step") == 100)["loss"].max() < 1e-3
