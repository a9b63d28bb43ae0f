"""The scaling law runs end to end; its settings are what its words say."""

import pytest
from specimens_benign_scaling import table

from advlab import lab
from advlab.papers.benign.experiments import scaling_law
from advlab.papers.benign.experiments._parts.scaling_runs import strengths


def test_the_experiment_runs_end_to_end(tmp_path):
    result = lab.run("benign/scaling_law", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert [one.id for one in result.verdicts] == list(scaling_law.ABOUT.claims)
    assert {one.outcome for one in result.verdicts} == {"undecided"}
    assert result.chart


def test_the_routes_reach_the_same_strengths():
    runs = strengths(table())
    for route in ("n", "d", "mu"):
        levels = runs.filter(route=route)["level"].unique().sort().to_list()
        assert levels == [1.0, 1.414, 2.828, 4.0]
    assert runs.filter(route="base")["level"].unique().to_list() == [2.0]
    assert runs.filter(route="ratio")["level"].unique().sort().to_list() == list(scaling_law.RATIOS)


def test_one_setting_meets_every_line_of_assumption_1_but_the_step_size():
    found = {one.name: one for one in scaling_law.assumptions(table())}
    assert found["Assumption 1"].holds
    assert found["Assumption 1"].reached == pytest.approx(10)
    assert not found["step size"].holds
