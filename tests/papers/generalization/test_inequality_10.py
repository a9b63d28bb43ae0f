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
    assert ten.sharp[0] == pytest.approx([0.05 * 0.15**2, 0.05 * 0.45**2])
    assert ten.holds_sharply().tolist() == [False]
    assert ten.largest_sharp_share() == pytest.approx(0.45**2 / 4)


def test_the_slack_is_the_printed_one():
    """xi^2 B_2^2/(L B_3) + xi delta B_2/(2L) with L = xi/(2 eta) and gap = (xi/B_3) B_2."""
    xi, b_2, b_3, delta, eta = 0.2, 3.0, 0.7, 0.05, 0.01
    rows = pl.DataFrame(
        {"seed": [0, 0], "step": [0, 1], "lr": eta, "potential": [1.0, 1.0], "gradient": b_2,
         "frozen": b_2, "gap": xi / b_3 * b_2, "deviation": delta}
    )  # fmt: skip
    smooth = xi / (2 * eta)
    printed = xi**2 * b_2**2 / (smooth * b_3) + xi * delta * b_2 / (2 * smooth)
    assert inequality_10(rows).slack[0] == pytest.approx([printed])
    assert inequality_10(rows).fall[0] == pytest.approx([xi / (4 * smooth) * b_2**2])


@pytest.fixture(scope="module")
def run() -> pl.DataFrame:
    case = next(
        one for one in descent_schedule.recipe("laptop", 2)
        if one.schedule == "theorem" and one.n == 30_000 and one.eps == 1.5
    )  # fmt: skip
    return descent_schedule.compute(case).with_columns(lr=case.lr)


def test_it_holds_on_a_run_and_its_sharp_form_says_something_there(run):
    ten = inequality_10(run)
    assert ten.holds().all()
    assert ten.holds_sharply().all()
    assert ten.largest_sharp_share() < 1
    assert (ten.sharp < ten.slack).all()


@pytest.mark.parametrize(
    "other", [pl.col("potential").first(), pl.col("potential").reverse()], ids=["still", "reversed"]
)
def test_potentials_that_stay_or_rise_break_it(run, other):
    changed = run.sort("seed", "step").with_columns(potential=other.over("seed"))
    assert not inequality_10(changed).holds_sharply().any()


def test_a_potential_that_stays_from_a_later_iteration_breaks_the_sharp_form_alone(run):
    rows = run.sort("seed", "step")
    held = pl.col("potential").filter(pl.col("step") == 8).first().over("seed")
    rests = rows.with_columns(
        potential=pl.when(pl.col("step") > 8).then(held).otherwise("potential")
    )
    ten = inequality_10(rests)
    assert ten.holds().all()
    assert not ten.holds_sharply().any()


def test_the_slack_of_a_whole_run_would_allow_everything(run):
    """With one 1/B_3 for a run, as printed, the slack exceeds every fall."""
    ten = inequality_10(run)
    share = (run["gap"] / run["gradient"]).max()
    eta, largest = run["lr"][0], run["gradient"].max()
    assert (2 * eta * share * largest**2 > ten.fall.max(axis=1)).all()
    assert np.isfinite(ten.slack).all()
