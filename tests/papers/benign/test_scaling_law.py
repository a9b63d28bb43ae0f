"""The scaling law runs end to end; its settings are what its words say."""

import numpy as np
import polars as pl
import pytest
from specimens_benign_scaling import table

from advlab import lab
from advlab.papers.benign.experiments import scaling_law
from advlab.papers.benign.experiments._parts.scaling_runs import strengths
from advlab.papers.benign.experiments._parts.scaling_thresholds import crossing, drifts


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
    assert grid.rows() == [(S, a) for S in (2, 2.5, 3, 4) for a in scaling_law.GRID["alpha"]]
    assert runs.filter(route="ratio")["level"].unique().sort().to_list() == list(scaling_law.RATIOS)


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
    others = {name.partition(": ")[2]: one for name, one in found.items() if ": " in name}
    reached = {name: one.reached for name, one in others.items()}
    assert reached == pytest.approx({
        "base, n swept, alpha = ||mu||, S and alpha swept": 0.05,
        "d swept, ||mu|| swept": 0.0125,
        "n ||mu||^2/d swept": 0.1,
    })  # fmt: skip
    assert not any(one.holds for one in others.values())
