"""Inequality (10) along runs: its terms by hand, and on runs of Algorithm 1."""

import numpy as np
import polars as pl
import pytest

from advlab.papers.generalization.experiments import descent_schedule
from advlab.papers.generalization.experiments._parts.inequality_10 import inequality_10


def test_the_terms_are_those_of_the_paper():
    rows = pl.DataFrame(
        {"seed": [0, 0, 0], "step": [0, 1, 2], "lr": 0.1, "potential": [5.0, 4.0, 4.2],
         "gradient": [3.0, 2.0, 1.0], "frozen": [4.0, 1.0, 0.5], "gap": [0.1, 0.2, 0.3],
         "deviation": [0.05, 0.25, 0.15]}
    )  # fmt: skip
    ten = inequality_10(rows)
    assert ten.change[0] == pytest.approx([1.0, -0.2])
    assert ten.fall[0] == pytest.approx([0.05 * 9, 0.05 * 4])
    # B_2 = 4, delta = 0.25.
    assert ten.slack[0] == pytest.approx([0.2 * 0.1 * 4 + 0.1, 0.2 * 0.2 * 4 + 0.1])
    assert ten.holds().tolist() == [False]
    assert ten.largest_share() == pytest.approx(max(0.18 / 0.45, 0.26 / 0.2))


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    case = next(
        one for one in descent_schedule.recipe("laptop", 2)
        if one.schedule == "theorem" and one.n == 30_000
    )  # fmt: skip
    return descent_schedule.compute(case).with_columns(lr=case.lr)


def test_it_holds_on_a_run_and_says_something_there(run):
    ten = inequality_10(run)
    assert ten.holds().all()
    assert ten.largest_share() < 1


@pytest.mark.parametrize(
    "other", [pl.col("potential").first(), pl.col("potential").reverse()], ids=["still", "reversed"]
)
def test_potentials_that_stay_or_rise_break_it(run, other):
    changed = run.sort("seed", "step").with_columns(potential=other.over("seed"))
    assert not inequality_10(changed).holds().any()


def test_the_slack_of_a_whole_run_would_allow_everything(run):
    """With one 1/B_3 for a run, as printed, the slack exceeds every fall."""
    ten = inequality_10(run)
    share = (run["gap"] / run["gradient"]).max()
    eta, largest = run["lr"][0], run["gradient"].max()
    assert (2 * eta * share * largest**2 > ten.fall.max(axis=1)).all()
    assert np.isfinite(ten.slack).all()
