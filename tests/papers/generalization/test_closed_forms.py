"""The closed forms pass at a small scale, and each verdict can come out refuted."""

import numpy as np
import polars as pl
import pytest

from advlab import lab
from advlab.papers.generalization.experiments import closed_forms

TRUE = {
    "sampled over closed": 1.0,
    "gap of kappa": 1e-12,
    "zero threshold": 1.0,
    "growth": 1.7,
    "off the support, block-diagonal": 0.0,
    "off the support, correlated": 0.1,
    "midpoint, potential": -1e-3,
    "midpoint, surrogate risk": -1e-3,
}
FALSE = {
    "1": ("sampled over closed", 1.02),
    "2a": ("gap of kappa", 1e-3),
    "2b": ("zero threshold", 0.0),
    "18a": ("growth", 0.9),
    "18b": ("off the support, block-diagonal", 0.2),
    "18c": ("off the support, correlated", 0.0),
    "20a": ("midpoint, potential", 0.05),
    "20b": ("midpoint, surrogate risk", 0.05),
}


def table(**changes: float) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"seed": seed, "quantity": quantity, "norm": "l2", "eps": 0.1, "value": value}
            for seed in range(20)
            for quantity, value in (TRUE | changes).items()
        ]
    )


def outcomes(rows: pl.DataFrame) -> dict[str, str]:
    found = closed_forms.verdicts(rows)
    return {verdict.id: verdict.outcome for verdict in found}


def test_all_claims_hold_on_a_table_in_which_they_do():
    assert outcomes(table()) == dict.fromkeys(FALSE, "supported")
    assert [v.id for v in closed_forms.verdicts(table())] == list(closed_forms.ABOUT.claims)


@pytest.mark.parametrize("part", FALSE)
def test_a_false_claim_is_refuted_and_the_others_are_not(part):
    quantity, value = FALSE[part]
    expected = dict.fromkeys(FALSE, "supported") | {part: "refuted"}
    assert outcomes(table(**{quantity: value})) == expected


@pytest.mark.parametrize("part", sorted(set(FALSE) - {"1"}))
def test_a_single_bad_replicate_is_enough(part):
    quantity, value = FALSE[part]
    one = (pl.col("seed") == 7) & (pl.col("quantity") == quantity)
    rows = table().with_columns(value=pl.when(one).then(value).otherwise("value"))
    assert outcomes(rows)[part] == "refuted"


def test_a_missing_number_decides_nothing():
    one = (pl.col("seed") == 7) & (pl.col("quantity") == "gap of kappa")
    rows = table().with_columns(value=pl.when(one).then(np.nan).otherwise("value"))
    assert outcomes(rows)["2a"] == "undecided"


def test_smoke(tmp_path):
    result = lab.run("generalization/closed_forms", scale="smoke", out=tmp_path, jobs=1)
    assert not result.failed
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert len(result.chart["concat"]) == 3


def test_measured_values_and_the_finding():
    """What is decided does not hang on the scale, but for the replicates behind 1 and 2b."""
    cases = closed_forms.recipe("smoke")
    rows = pl.concat(
        closed_forms.compute(case).with_columns(model=pl.lit(case.model)) for case in cases
    )
    assert outcomes(rows) == dict.fromkeys(FALSE, "supported") | {
        "1": "undecided",
        "2b": "undecided",
        "20b": "refuted",
    }
    sampled = rows.filter(quantity="adversarial risk", eps=0.5)["value"].mean()
    assert sampled == pytest.approx(5.385, rel=0.05)
