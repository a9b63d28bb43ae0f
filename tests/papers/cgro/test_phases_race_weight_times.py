"""The patch experiments: each verdict both ways, clocks by hand, smoke runs end to end."""

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
import torch

from advlab import lab
from advlab.core.randomness import generators
from advlab.papers.cgro.data import Patches
from advlab.papers.cgro.experiments import adversarial_weight, phase_times, phases, race
from advlab.papers.cgro.experiments._parts import patch_runs
from advlab.papers.cgro.reductions import patch_law
from advlab.papers.cgro.reductions.patch_dynamics import trajectory
from advlab.report.charts import AnyChart

SEEDS = range(20)
JITTER = np.random.default_rng(0).uniform(0.98, 1.02, 20)


def outcomes(module, rows: pl.DataFrame) -> dict[str, str]:
    found = {verdict.id: verdict.outcome for verdict in module.verdicts(rows)}
    assert list(found) == list(module.ABOUT.claims)
    return found


def refuted(module, rows: pl.DataFrame) -> list[str]:
    """The refuted claims, when all others are supported."""
    found = outcomes(module, rows)
    assert set(found.values()) <= {"supported", "refuted"}
    return [id for id, outcome in found.items() if outcome == "refuted"]


def phases_row(step: int, seed: int) -> dict[str, float]:
    after = max(step - 450 + 1, 1)
    return {
        "lam": 0.5, "eta": 0.1, "steps": 1000, "step": step, "seed": seed,
        "T0": 10.0, "T0 sharp": 8.0, "T0 paper": 30.0, "T1 sharp": 400.0, "T1 last": 450.0,
        "T1": 380.0, "signal": (10.0 + (step > 200)) * JITTER[seed], "alpha u": 2.4 * JITTER[seed],
        "smallest V": 2.0 if step >= 450 else 0.1, "median V": 3.0, "largest V": 4.0,
        "mean V": 3.0, "T1 ratio": 0.9 * JITTER[seed], "loss": JITTER[seed] * after**-1.1,
        "clean train": 0.0, "GTA train": 0.0, "clean test": 0.0, "GTA test": 0.5,
        "variance off": 1.0, "GTA off": -1.0,
    }  # fmt: skip


def phases_table() -> pl.DataFrame:
    rows = pl.DataFrame([phases_row(step, seed) for seed in SEEDS for step in range(0, 1001, 100)])
    return pl.concat([rows.with_columns(part=pl.lit(part)) for part in ("phases", "decay")])


ONE = pl.col("seed") == 7
PHASES_FALSE = {
    "4a": {"T0 paper": pl.lit(9.0)},
    "4b": {"T0 sharp": pl.lit(4.0)},
    "5a": {"signal": pl.when(pl.col("step") > 200).then(13.0).otherwise(10.0)},
    "5b": {"alpha u": pl.col("alpha u") * 2},
    "6a": {"smallest V": pl.lit(0.5)},
    "6b": {"T1 ratio": pl.col("T1 ratio") * 1.5},
    "7a": {"clean test": pl.when(ONE).then(0.02).otherwise(0.0)},
    "7b": {"GTA train": pl.when(ONE).then(0.05).otherwise(0.0)},
    "7c": {"GTA test": pl.when(ONE).then(0.41).otherwise(0.5)},
    "10a": {"loss": pl.col("loss") * 1000},
    "10b": {"loss": pl.lit(0.01) * pl.col("loss").pow(0.5)},
    "11a": {"variance off": pl.when(ONE).then(-5.5).otherwise(1.0)},
    "11b": {"GTA off": pl.when(ONE).then(5.5).otherwise(1.0)},
}


def test_phases_claims_hold_where_they_do_and_the_control_decides_nothing():
    control = (
        phases_table()
        .filter(part="phases")
        .with_columns(pl.lit(0.0).alias("lam"), pl.lit(0.9).alias("GTA train"))
    )
    assert refuted(phases, pl.concat([phases_table(), control])) == []


@pytest.mark.parametrize("claim", PHASES_FALSE)
def test_phases_a_false_claim_is_refuted_and_no_other(claim):
    assert refuted(phases, phases_table().with_columns(**PHASES_FALSE[claim])) == [claim]


def test_phases_runs_that_never_memorise_leave_claim_10_undecided():
    found = outcomes(phases, phases_table().with_columns(pl.lit(np.inf).alias("T1 last")))
    assert (found["10a"], found["10b"]) == ("undecided", "undecided")


def race_table(**changes: pl.Expr) -> pl.DataFrame:
    """Five seeds in twelve cells, accuracies on a logistic curve that passes 3/4 at rho = 0.6."""
    rows = []
    for n in (5, 10, 20, 40):
        for polylog, factor in ((1.0, 1.0), (1.5, 0.3), (6.0, 0.01)):
            rho = n / 20 * 1.2 * factor
            for seed in range(5):
                lift = 1 / (1 + np.exp(-8 * np.log(rho / (0.6 * JITTER[seed]))))
                rows.append(
                    {"n": n, "d": 1000, "polylog": polylog, "seed": seed, "rho": rho,
                     "own rho": rho * 0.8 * JITTER[seed], "accuracy": 0.5 + 0.5 * lift,
                     "clean test": 0.0, "GTA train": 0.0}
                )  # fmt: skip
    return pl.DataFrame(rows).with_columns(**changes)


SMALL_CELL = (pl.col("n") == 5) & (pl.col("polylog") == 6) & (pl.col("seed") == 1)


@pytest.mark.parametrize(
    ("changes", "false"),
    [
        ({}, []),
        ({"accuracy": pl.col("accuracy").clip(0, 0.93)}, ["8a"]),
        ({"rho": pl.col("rho") * 4}, ["8a", "8b"]),
        ({"own rho": pl.col("own rho") / 5}, ["8c"]),
        ({"GTA train": pl.when(SMALL_CELL).then(0.2).otherwise(0.0)}, ["7"]),
        ({"clean test": pl.when(SMALL_CELL).then(0.2).otherwise(0.0)}, ["7"]),
        (
            {"accuracy": pl.when(SMALL_CELL).then(0.59).otherwise(pl.col("accuracy"))},
            ["7"],
        ),
    ],
)
def test_race_verdicts_both_ways(changes, false):
    assert refuted(race, race_table(**changes)) == false


def test_the_crossover_is_found_and_missing_where_there_is_none():
    rho = np.geomspace(0.01, 10, 30)
    for middle in (0.2, 0.7):
        accuracy = 0.5 + 0.5 / (1 + (middle / rho) ** 5)
        assert race.crossover(rho, accuracy) == pytest.approx(middle, rel=1e-3)
    falling = 1 - 0.5 / (1 + (0.5 / rho) ** 5)
    assert not 0.1 < race.crossover(rho, falling) < 3


def adversarial_weight_table(**changes: pl.Expr) -> pl.DataFrame:
    rows = [
        {"lam": lam, "seed": seed, "step": 100, "steps": 100,
         "T1": 100 * JITTER[seed] / lam if lam else np.inf,
         "GTA train": 0.5 * JITTER[seed] if lam == 0 else 0.0, "mean V": -1e-3 * JITTER[seed],
         "clean test": 0.0}
        for lam in (0.0, 0.1, 0.5, 0.9)
        for seed in SEEDS
    ]  # fmt: skip
    return pl.DataFrame(rows).with_columns(**changes)


@pytest.mark.parametrize(
    ("changes", "false"),
    [
        ({}, []),
        ({"GTA train": pl.col("GTA train") / 2}, ["9a"]),
        ({"mean V": pl.col("mean V") * 100}, ["9b"]),
        ({"clean test": pl.lit(0.02)}, ["9c"]),
        ({"T1": pl.when(pl.col("lam") == 0.9).then(200.0).otherwise(pl.col("T1"))}, ["9d"]),
        ({"T1": pl.lit(100.0)}, ["9d"]),
    ],
)
def test_adversarial_weight_verdicts_both_ways(changes, false):
    assert refuted(adversarial_weight, adversarial_weight_table(**changes)) == false


def test_adversarial_weight_a_time_that_was_not_seen_decides_nothing():
    never = pl.when((pl.col("lam") == 0.5) & ONE).then(np.inf).otherwise(pl.col("T1"))
    assert outcomes(adversarial_weight, adversarial_weight_table(T1=never))["9d"] == "undecided"


def phase_times_table(**changes: pl.Expr) -> pl.DataFrame:
    rows = [
        {"part": part, "n": 5, "d": d, "eta": 0.01, "seed": seed, "sharp": d / 2 * JITTER[seed],
         "observed": 0.55 * d * JITTER[seed] ** 2, "paper": 10.0 * d}
        for part in ("T0", "T1")
        for d in (200, 500, 1000)
        for seed in SEEDS
    ]  # fmt: skip
    return pl.DataFrame(rows).with_columns(**changes)


@pytest.mark.parametrize("part", ["T0", "T1"])
def test_phase_times_verdicts_both_ways(part):
    slope, ratio, paper = {
        "T0": ("a", "b", "4"), "T1": ("c", "d", "6")
    }[part]  # fmt: skip
    here = pl.col("part") == part
    observed, sharp = pl.col("observed"), pl.col("sharp")
    flat = pl.when(here).then(sharp * (sharp / 220) ** -0.3).otherwise(observed)
    slow = pl.when(here).then(observed * 1.6).otherwise(observed)
    assert refuted(phase_times, phase_times_table()) == []
    assert refuted(phase_times, phase_times_table(observed=flat)) == [slope]
    assert refuted(phase_times, phase_times_table(observed=slow)) == [ratio]
    assert refuted(
        phase_times, phase_times_table(paper=pl.when(here).then(1.0).otherwise("paper"))
    ) == [paper]


def test_phase_times_a_time_that_was_not_seen_decides_no_slope_and_no_ratio():
    never = pl.when(ONE & (pl.col("d") == 500)).then(np.inf).otherwise(pl.col("observed"))
    found = outcomes(phase_times, phase_times_table(observed=never))
    assert {found[claim] for claim in ("a", "b", "c", "d")} == {"undecided"}


def test_the_clock_reads_what_a_run_watched_at_every_step_shows():
    law = Patches.scaled(n=4, d=150)
    problem = patch_law.draw_stack(law, 8, law.d**-0.5, generators("clock", seeds=range(2)))
    events, seen = patch_runs.run(problem, 0.5, 0.05, 90, patch_runs.phases, {0, 90})
    states = list(trajectory(problem, 0.5, 0.05, range(91)))
    for r in range(2):
        strong = [float(law.alpha * s.u[r].max()) >= 1 for s in states]
        assert float(events.signal[r]) == (strong.index(True) if any(strong) else np.inf)
    assert [step for step, _ in seen] == [0, 90]
    assert torch.equal(seen[1][1]["signal"], states[-1].signal)


def test_each_example_is_noted_at_the_first_recorded_step():
    law = Patches.scaled(n=4, d=150)
    problem = patch_law.draw_stack(law, 8, law.d**-0.5, generators("clock", seeds=range(2)))
    events, _ = patch_runs.run(problem, 0.5, 0.1, 1200, patch_runs.phases, ())
    V = torch.stack([state.V for state in trajectory(problem, 0.5, 0.1, range(1201))])
    exact = (V >= 1).double().argmax(0).double()
    assert bool((V[-1] >= 1).all())
    # The grid is one percent wide.
    assert bool(((events.memorised >= exact) & (events.memorised <= 1.011 * exact + 1)).all())


def test_ratios_and_medians_survive_events_that_were_not_seen():
    seen = torch.tensor([[1.0, 2.0, torch.inf], [torch.inf, torch.inf, 3.0]]).double()
    found = patch_runs.ratios(seen, np.array([[2.0, 2.0, 2.0], [np.inf, 1.0, 1.0]]))
    np.testing.assert_array_equal(found, [[0.5, 1.0, np.inf], [np.inf, np.inf, 3.0]])
    np.testing.assert_array_equal(patch_runs.middle(found), [1.0, np.inf])


@pytest.mark.parametrize("module", [phases, race, adversarial_weight, phase_times])
def test_smoke_runs_end_to_end(module, tmp_path):
    name = "cgro/" + module.__name__.rpartition(".")[2]
    result = lab.run(name, scale="smoke", jobs=1, out=tmp_path)
    assert result.failed == []
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert [verdict.id for verdict in result.verdicts] == list(module.ABOUT.claims)
    panels = {phases: 4, race: 3, adversarial_weight: 3, phase_times: 2}
    assert len(result.chart["concat"]) == panels[module]


def test_phases_closed_forms_agree_with_d_vectors_and_its_picture_has_both_times():
    case = phases.Case(
        part="phases",
        lams=(0.5, 0.0),
        d=150,
        n=5,
        steps=3000,
        tested=500,
        lifted=1500,
        replicates=3,
    )
    rows = phases.compute(case)
    for column in ("variance off", "GTA off"):
        assert float(rows.select(pl.col(column).abs().max()).item()) < 5
    end = rows.filter(step=3000)
    assert end["lam"].to_list() == [0.5] * 3 + [0.0] * 3
    assert (end["clean test"] == 0).all()
    # The same problems, whatever lambda.
    first = rows.filter(step=0).drop("lam", cs.starts_with("T"), "loss", "variance off")
    assert first.drop("variance", "GTA off")[:3].equals(first.drop("variance", "GTA off")[3:])
    shown = rows.with_columns(pl.lit(3.0).alias("T0 sharp"), part=pl.lit("phases"))
    chart: AnyChart = phases.figure(shown)
    words = str(chart.to_dict())
    assert "T_0" in words
    assert "T_1" in words
