"""The harness itself: rules that cannot fail are named, and fair ones are not."""

import numpy as np
import polars as pl
import pytest
from nulls import Null, Specimen, faults, null_tables

from advlab.report import Claims, empirical, identity, sample, theorem
from advlab.report.samples import ends


def table(end: float = 0.1, start: float = 0.5) -> pl.DataFrame:
    """An error that falls, of 20 runs."""
    rng = np.random.default_rng(0)
    rows = [
        {"seed": seed, "step": step, "steps": 10, "error": start + (end - start) * step / 10
         + 0.004 * rng.normal(), "fits": True}
        for seed in range(20) for step in (0, 5, 10)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def specimen(**more) -> Specimen:
    return Specimen(table(), measured=("error", "fits"), chance={"error": 0.5}, **more)


def fair(rows: pl.DataFrame):
    claims = Claims(FAIR)
    return [
        claims.below("low", sample(ends(rows), "error"), 0.2, what="final error"),
        claims.every("fits", sample(ends(rows), "fits")),
    ]


FAIR = {"low": empirical("the error ends below 0.2"), "fits": theorem("every run fits")}


def test_fair_rules_have_no_faults():
    assert faults(specimen(), fair, FAIR) == []


def test_the_nulls_keep_settings_and_types():
    made = null_tables(specimen())
    assert list(made) == ["coin flips", "constant", "perfect", "shuffled", "time reversed"]
    for one in made.values():
        assert one.schema == table().schema
        assert (
            one.select("seed", "step")
            .sort("seed", "step")
            .equals(table().select("seed", "step").sort("seed", "step"))
        )
    assert made["perfect"]["error"].to_list() == [0.0] * 60
    assert made["constant"]["error"].n_unique() == 1
    last = made["time reversed"].filter(step=10).sort("seed")["error"]
    assert last.to_list() == table().filter(step=0).sort("seed")["error"].to_list()
    assert made["coin flips"]["error"].mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("bound", "more", "said"),
    [
        (0.9, {}, "low: coin flips pass"),
        (0.01, {}, "low: refuted by the table in which it holds"),
        (
            0.4,
            {"controls": {"no training": Null(table(0.35), ("low",))}},
            "low: no training passes",
        ),
        (0.2, {"controls": {"other": Null(table(), ("high",))}}, "high: no such claim"),
    ],
)
def test_a_rule_that_cannot_fail_is_named(bound, more, said):
    def weak(rows):
        first = Claims(FAIR).below("low", sample(ends(rows), "error"), bound, what="error")
        return [first, fair(rows)[1]]

    assert said in faults(specimen(**more), weak, FAIR)


def test_a_rule_that_nothing_breaks_and_an_identity_without_a_bug_are_named():
    claims = {"finite": theorem("errors are finite"), "same": identity("error equals error")}

    def blind(rows):
        return [
            Claims(claims).every("finite", rows["error"].is_finite().all()),
            Claims(claims).every("same", (rows["error"] == rows["error"]).all()),
        ]

    found = faults(specimen(), blind, claims)
    assert "finite: nothing breaks it" in found
    assert "same: an identity without a planted bug" in found


def test_a_claim_without_a_verdict_is_named():
    claims = {**FAIR, "more": empirical("and more")}
    assert "more: no verdict" in faults(specimen(), fair, claims)


def test_a_claim_that_contradicts_others_has_a_table_of_its_own():
    def both(rows):
        claims = Claims(BOTH)
        end = sample(ends(rows), "error")
        return [
            claims.below("low", end, 0.2, what="error"),
            claims.above("high", end, 0.3, what=""),
        ]

    assert "high: refuted by the table in which it holds" in faults(specimen(), both, BOTH)
    other = {"high": Null(table(), ("high",))}
    assert faults(specimen(elsewhere={"high": table(0.4)}, controls=other), both, BOTH) == []


BOTH = {"low": theorem("the error ends below 0.2"), "high": theorem("it ends above 0.3")}
