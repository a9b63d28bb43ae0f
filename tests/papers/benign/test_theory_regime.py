"""Runs inside Assumption 1: they are inside, and what leaves it decides nothing."""

import polars as pl
import pytest
from specimens_benign_lemmas import regime_table

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.papers.benign.experiments import theory_regime
from advlab.papers.benign.experiments._parts import conditions
from advlab.papers.benign.experiments._parts.regime_runs import regime_run
from advlab.papers.benign.theory import check_assumptions, smallest_inside


@pytest.mark.parametrize("ratio", [0.1, 1.0])
@pytest.mark.parametrize(("C", "n"), [(0.1, 76), (1, 76), (10, 76), (30, 260)])
def test_the_smallest_setting_is_inside_and_a_tenth_less_is_not(C, n, ratio):
    length, d = smallest_inside(C, n, n, ratio, 0.05)

    def reached(scale: float) -> float:
        found = check_assumptions(
            n=n, d=round(scale * d), mu_norm=length, alpha=ratio * length, beta=min(0.4, 1 / C),
            omega=0.0, eta=1 / (C * d**2), width=n, delta=0.05,
        )  # fmt: skip
        return min(found.smooth, found.non_smooth)

    assert reached(1.0) >= C * (1 - 1e-9)
    assert reached(0.9) < C


def test_the_deciding_runs_meet_every_line_and_the_slow_ones_line_4_too():
    table = regime_table()
    found = {one.name: one for one in theory_regime.assumptions(table)}
    assert found["Assumption 1"].holds
    assert found["Assumption 1"].reached == pytest.approx(10)
    assert found["good run"].reached >= 0.95
    slow = table.filter(pl.col("pace") == "assumed", pl.col("C") >= 10)
    step = {one.name: one for one in theory_regime.assumptions(slow)}["step size"]
    assert step.holds
    assert not found["step size"].holds


def test_without_a_run_inside_all_is_outside():
    low = regime_table().filter(pl.col("C") < 10)
    assert {one.outcome for one in theory_regime.verdicts(low)} == {"outside"}
    assert not theory_regime.assumptions(low)[0].holds


def test_the_experiment_runs_end_to_end(tmp_path):
    result = lab.run("benign/theory_regime", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert [one.id for one in result.verdicts] == list(theory_regime.ABOUT.claims)
    assert {one.outcome for one in result.verdicts} == {"undecided"}
    assert result.chart


def test_the_cost_of_a_run_does_not_know_its_dimension_and_its_numbers_are_finite():
    case = theory_regime.Case(C=10, n=20, width=20, d=10**13, mu_norm=1e4, alpha=20.0, steps=3,
                              tests=50, replicates=2)  # fmt: skip
    rows = regime_run(case)
    assert rows["good"].all()
    assert (rows["cosine"] > 0.99).all()
    assert (rows["training error"] == 0).all()
    numbers = rows.select(pl.selectors.float())
    assert numbers.select(pl.all().is_finite().all()).row(0) == (True,) * numbers.width


@pytest.mark.parametrize("wrong", [{"alpha": 10.5}, {"width": 51}, {"d": 19}, {"beta": 0.5}])
def test_settings_outside_the_theorems_are_refused(wrong):
    sizes = {"C": 1.0, "n": 20, "d": 3000, "mu_norm": 10.0, "alpha": 1.0, "width": 50}
    with pytest.raises(AdvlabError):
        theory_regime.Case(**(sizes | wrong))


def test_the_worst_setting_is_reported():
    one = conditions.Setting(100, 1000, 5.0, 0.5, 0.1, 0.0, 0.1, 1000)
    two = conditions.Setting(100, 10**6, 5.0, 0.5, 0.1, 0.0, 0.1, 1000)
    found = conditions.reached([one, two])[0]
    assert found.reached == min(one.C, two.C)
