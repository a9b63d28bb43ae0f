"""The patch experiments: each verdict both ways, clocks by hand, smoke runs end to end."""

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
import specimens_cgro
import torch

from advlab import lab
from advlab.core.randomness import generators
from advlab.papers.cgro import theory
from advlab.papers.cgro.data import Patches
from advlab.papers.cgro.experiments import (
    adversarial_weight,
    growth_lemmas,
    lemma_hypotheses,
    phase_times,
    phases,
    race,
)
from advlab.papers.cgro.experiments._parts import patch_runs
from advlab.papers.cgro.experiments._parts.remainder import FastestProducts
from advlab.papers.cgro.reductions import patch_law
from advlab.papers.cgro.reductions.patch_dynamics import trajectory
from advlab.report.charts import AnyChart


def outcomes(module, rows: pl.DataFrame) -> dict[str, str]:
    found = {verdict.id: verdict.outcome for verdict in module.verdicts(rows)}
    assert list(found) == list(module.ABOUT.claims)
    return found


def refuted(module, rows: pl.DataFrame) -> list[str]:
    """The refuted claims, when all others are supported."""
    found = outcomes(module, rows)
    assert set(found.values()) <= {"supported", "refuted"}
    return [id for id, outcome in found.items() if outcome == "refuted"]


ONE = pl.col("seed") == 7
PHASES_FALSE = {
    "4a": {"T0 paper": pl.col("T0") - 1},
    "4b": {"T0 sharp": pl.col("T0") / 2.5},
    "5b": {"alpha u": pl.col("alpha u") * 2},
    "6a": {"smallest V": pl.when(ONE).then(0.5).otherwise("smallest V")},
    "6b": {"T1 ratio": pl.col("T1 ratio") * 1.5},
    "7a": {"clean test": pl.when(ONE).then(0.02).otherwise(0.0)},
    "7b": {"GTA train": pl.when(ONE, pl.col("lam") > 0).then(0.05).otherwise("GTA train")},
    "10a": {"loss": pl.col("loss") * 1000},
    "10b": {"loss": pl.lit(0.001) * pl.col("loss").pow(0.5)},
    "11a": {"variance ratio": pl.col("variance ratio") * 1.2},
    "11b": {"GTA of d-vectors": pl.col("GTA of d-vectors") + 0.05},
}


@pytest.mark.parametrize("claim", PHASES_FALSE)
def test_phases_a_false_claim_is_refuted_and_no_other(claim):
    table = specimens_cgro.phases_table().with_columns(**PHASES_FALSE[claim])
    assert refuted(phases, table) == [claim]


def test_phases_the_control_fails_where_gta_training_is_judged():
    """lambda = 0 in place of lambda > 0: a stall and a coin's toss that need no GTA do not pass."""
    found = outcomes(phases, specimens_cgro.phases().controls["lambda = 0"].table)
    assert {found[claim] for claim in ("5a", "6a", "7b", "7c")} == {"refuted"}


def test_phases_runs_that_never_memorise_leave_claim_10_undecided():
    table = specimens_cgro.phases_table().with_columns(pl.lit(np.inf).alias("T1 last"))
    found = outcomes(phases, table)
    assert (found["10a"], found["10b"]) == ("undecided", "undecided")


def test_the_crossover_is_found_and_missing_where_there_is_none():
    rho = np.geomspace(0.01, 10, 30)
    for middle in (0.2, 0.7):
        accuracy = 0.5 + 0.5 / (1 + (middle / rho) ** 5)
        assert race.crossover(rho, accuracy) == pytest.approx(middle, rel=1e-3)
        share = 1 / (1 + (middle / rho) ** 5)
        assert race.passes_half(rho[::-1], share[::-1]) == pytest.approx(middle, rel=0.02)
    falling = 1 - 0.5 / (1 + (0.5 / rho) ** 5)
    assert not 0.1 < race.crossover(rho, falling) < 3
    assert np.isnan(race.passes_half(rho, 0.4 + 0 * rho))


def test_race_a_problem_without_a_crossover_decides_no_exponent():
    table = specimens_cgro.race_table()
    first = (pl.col("n") == 5) & (pl.col("seed") == 0)
    flat = table.with_columns(share=pl.when(first).then(0.1).otherwise("share"))
    found = outcomes(race, flat)
    assert (found["8c"], found["8e"]) == ("undecided", "undecided")


def test_race_polylogs_reach_their_targets_and_twins_are_one_problem():
    law = Patches.scaled(n=10, d=500, polylog=race.polylog_of(10, 500, 0.35))
    rho = theory.race_number(10, 500, law.alpha, law.sigma, law.gamma, sigma0=500**-0.5)
    assert rho == pytest.approx(0.35)
    case = race.Case(n=4, dims=(80,), targets=(0.3, 1.0), polylogs=(None,), steps=600, tested=50)
    rows = race.compute(case)
    assert len(rows) == 3
    assert rows["own rho"].n_unique() == 3
    assert rows["twin T1"].n_unique() == 1
    # own rho and the race number differ by the plateau, and by what the sharp T_1 misses.
    ratio = (rows["race"] / (rows["own rho"] * rows["twin c"])).to_numpy()
    assert np.ptp(ratio) < 1e-9
    assert 0.5 < ratio[0] < 1.5


def test_adversarial_weight_a_time_that_was_not_seen_decides_nothing():
    never = pl.when((pl.col("lam") == 0.5) & ONE).then(np.inf).otherwise(pl.col("T1"))
    table = specimens_cgro.adversarial_weight().table.with_columns(T1=never)
    assert outcomes(adversarial_weight, table)["9d"] == "undecided"


def test_phase_times_a_time_that_was_not_seen_decides_no_slope_and_no_ratio():
    never = pl.when(ONE & (pl.col("d") == 500)).then(np.inf).otherwise(pl.col("observed"))
    found = outcomes(phase_times, specimens_cgro.phase_times().table.with_columns(observed=never))
    assert {found[claim] for claim in ("a", "b", "c", "d")} == {"undecided"}


def test_phase_times_lemma_a2_is_outside_where_its_hypothesis_is_never_met():
    table = specimens_cgro.phase_times().table
    met, none = (
        next(v for v in phase_times.verdicts(rows) if v.id == "6")
        for rows in (table, table.with_columns(met=0.0))
    )
    assert (met.outcome, met.scope.assumptions[0].reached) == ("supported", pytest.approx(0.6))
    assert (none.outcome, none.scope.assumptions[0].holds) == ("outside", False)


def test_the_remainder_is_what_the_other_patches_add_until_the_example_is_memorised():
    law = Patches.scaled(n=4, d=150)
    problem = patch_law.draw_stack(law, 8, law.d**-0.5, generators("clock", seeds=range(2)))
    seen, largest = FastestProducts(problem), torch.zeros_like(problem.y)
    for state in trajectory(problem, 0.5, 0.1, range(0, 1200, 10)):
        waiting = seen.memorised.isinf()
        torch.testing.assert_close(seen.note(state), state.cross_talk())
        rows = state.cross_talk().reshape(2, 4, -1).abs()
        own = rows.gather(2, problem.v.reshape(2, 4, -1).argmax(2, keepdim=True))[..., 0]
        largest = torch.where(waiting, torch.maximum(largest, own), largest)
    assert bool(seen.memorised.isfinite().all())
    torch.testing.assert_close(seen.noise, largest)
    assert torch.equal(seen.met, largest <= problem.largest / 2)


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


SMOKE = [phases, race, adversarial_weight, phase_times, growth_lemmas]


@pytest.mark.parametrize("module", SMOKE)
def test_smoke_runs_end_to_end(module, tmp_path):
    name = "cgro/" + module.__name__.rpartition(".")[2]
    result = lab.run(name, scale="smoke", jobs=1, out=tmp_path)
    assert result.failed == []
    assert {verdict.outcome for verdict in result.verdicts} <= {"undecided", "outside"}
    assert [verdict.id for verdict in result.verdicts] == list(module.ABOUT.claims)
    panels = {phases: 4, race: 4, adversarial_weight: 3, phase_times: 2, growth_lemmas: 8}
    # Few runs may have no crossover to draw.
    least = 2 if module is race else panels[module]
    assert least <= len(result.chart["concat"]) <= panels[module]


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
    off = pl.col("GTA of d-vectors") - pl.col("GTA by formula")
    assert float(rows.select(off.abs().max()).item()) < 0.12
    assert rows["variance ratio"].is_between(0.6, 1.6).all()
    end = rows.filter(step=3000)
    assert end["lam"].to_list() == [0.5] * 3 + [0.0] * 3
    assert (end["clean test"] == 0).all()
    # The same problems, whatever lambda.
    first = rows.filter(step=0).drop(
        "lam", cs.starts_with("T"), "loss", cs.contains("variance", "d-vectors", "formula")
    )
    assert first[:3].equals(first[3:])
    shown = rows.with_columns(pl.lit(3.0).alias("T0 sharp"), part=pl.lit("phases"))
    chart: AnyChart = phases.figure(shown)
    words = str(chart.to_dict())
    assert "T_0" in words
    assert "T_1" in words


def test_a_run_whose_filters_all_start_across_the_signal_decides_nothing(monkeypatch):
    """Lemma C.3 excepts it; the other runs of its case are kept."""
    draw = lemma_hypotheses.patch_law.draw_stack

    def across(*settings):
        problem = draw(*settings)
        problem.u[1] = -problem.u[1].abs()
        return problem

    monkeypatch.setattr(lemma_hypotheses.patch_law, "draw_stack", across)
    cases = [
        lemma_hypotheses.Case(part="signal", d=60, n=4, eta=0.002, steps=600, replicates=3),
        lemma_hypotheses.Case(part="decay", d=60, n=4, eta=0.05, steps=400, replicates=3),
        lemma_hypotheses.Case(part="decay", d=60, n=6, eta=0.05, steps=400, replicates=3),
    ]
    table = pl.concat(
        [
            lemma_hypotheses.compute(case).with_columns(
                pl.lit(value).alias(name)
                for name, value in case.model_dump(exclude={"seed", "replicates"}).items()
            )
            for case in cases
        ],
        how="diagonal",
    )
    assert table.filter(~pl.col("begun"))["seed"].unique().to_list() == [1]
    start = lemma_hypotheses.assumptions(table)[-1]
    assert start.reached == pytest.approx(2 / 3)
    found = {one.id: one for one in lemma_hypotheses.verdicts(table)}
    assert found["A.1"].measured == 1.0
    assert found["C.3"].measured is not None
