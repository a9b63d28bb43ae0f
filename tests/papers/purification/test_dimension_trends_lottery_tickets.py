"""Trends over d and lottery tickets: scaled presets, and tables where claims are false or true."""

from math import log

import polars as pl
import pytest
from specimens_purification_others import tickets

from advlab.papers.purification.experiments import dimension_trends, lottery_tickets
from advlab.papers.purification.experiments._parts.presets import (
    PRESETS,
    scaled,
)
from advlab.papers.purification.theory import regime


def outcomes(found) -> dict[str, str]:
    return {verdict.id: verdict.outcome for verdict in found}


def falling(power: float) -> pl.DataFrame:
    """Every quantity is d^power, times a factor of each seed; the gap to the oracle falls too."""
    names = (*dimension_trends.POWERS.values(), "G7 of directions")
    rows = [
        {"d": d, "seed": seed, "robust": 0.7, "oracle": 0.7 + 0.3 / log(d)}
        | dict.fromkeys(names, (1 + 0.01 * seed) * d**power)
        for d in (64, 128, 256, 512)
        for seed in range(5)
    ]  # fmt: skip
    return pl.DataFrame(rows).with_columns(
        (pl.col("oracle") - pl.col("robust")).alias("oracle gap")
    )


@pytest.mark.parametrize(("power", "falls"), [(-0.3, "supported"), (0.4, "refuted")])
def test_trends_report_the_limit_and_decide_the_direction(power, falls):
    found = dimension_trends.verdicts(falling(power))
    by_id = {verdict.id: verdict for verdict in found}
    assert set(by_id) == set(dimension_trends.ABOUT.claims)
    for id in dimension_trends.POWERS:
        assert by_id[id].outcome == "undecided"
        assert by_id[id].measured == pytest.approx(power)
        assert "not decided at finite sizes" in by_id[id].note
    for id in dimension_trends.FALLING:
        assert by_id[f"{id}/falls"].outcome == falls
    assert by_id["6"].outcome == "supported"
    assert dimension_trends.figure(falling(power)).to_dict()


@pytest.mark.parametrize(("power", "outcome"), [(0.0, "supported"), (0.4, "refuted")])
def test_the_average_dense_part_must_stay_near_a_constant_times_its_order(power, outcome):
    beta = 0.1 * (pl.col("d") / 64) ** power
    table = falling(-0.3).with_columns((beta * (1 + 0.01 * pl.col("seed"))).alias("beta d/k"))
    assert outcomes(dimension_trends.verdicts(table))["7/level"] == outcome


def test_the_scaled_preset_is_the_random_one_at_its_own_size():
    assert scaled(256) == PRESETS["random"]


def test_scaled_presets_follow_the_powers_of_the_theorems():
    small, large = scaled(128), scaled(512)
    assert large.data.k / small.data.k == pytest.approx(4**0.4, rel=0.05)
    assert large.tau**2 * large.data.k == pytest.approx(small.tau**2 * small.data.k)
    assert large.clean.steps == 4 * small.clean.steps
    assert large.clean.penalty * 4 == pytest.approx(small.clean.penalty)
    assert large.bias.end == pytest.approx(0.85 / large.data.k**0.5)


def test_theory_is_silent_at_the_sizes_of_the_presets():
    """k = 30 at d = 256 is outside the window: the result must say so, not pass for a theorem."""
    assert regime(256, 30).says(0.22, "l2").silent


def smoke(module) -> pl.DataFrame:
    frames = [
        module.compute(case).with_columns(d=pl.lit(case.d)) for case in module.recipe("smoke")
    ]
    return pl.concat(frames, how="diagonal")


@pytest.mark.parametrize("module", [dimension_trends, lottery_tickets])
def test_smoke_runs_and_draws(module):
    table = smoke(module)
    assert module.figure(table).to_dict()
    assert {verdict.id for verdict in module.verdicts(table)} == set(module.ABOUT.claims)


def test_tickets_claims_can_be_true():
    found = outcomes(lottery_tickets.verdicts(tickets()))
    assert found.pop("cover") == "undecided"
    assert set(found.values()) == {"supported"}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"pot": 1.09}, {"pot"}),
        ({"sure": 0.95}, {"sure"}),
        ({"kept": 0.3}, {"early"}),
        ({"won": 0.2}, {"kept"}),
        ({"end": 0.6}, {"early", "kept"}),
    ],
)
def test_tickets_claims_can_be_false(changes, wrong):
    found = outcomes(lottery_tickets.verdicts(tickets(**changes)))
    assert {id for id, outcome in found.items() if outcome == "refuted"} == wrong


def test_the_plateau_ends_at_the_first_loss_below_its_level():
    assert lottery_tickets.plateau_end(tickets())["step"].to_list() == [10] * 5
