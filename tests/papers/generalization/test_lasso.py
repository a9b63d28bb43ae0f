"""The adversarial LASSO at smoke scale, its estimate against cvxpy, each verdict both ways."""

from itertools import product

import cvxpy as cp
import numpy as np
import polars as pl
import pytest

from advlab import lab, linear
from advlab.core.randomness import generator
from advlab.papers.generalization.experiments import lasso

SIZES = (50, 100, 200, 400)


def table(risk=(8.0, 6.0, 4.0, 3.5), l1=(9.0, 6.0, 4.0, 2.0), nonzero=0.1) -> pl.DataFrame:
    """Two penalties, the second worse, and no penalty with risk 11; a little noise a seed."""
    noise = 0.01 * np.random.default_rng(0).standard_normal(6)
    rows = []
    for i, n in enumerate(SIZES):
        for constant, purpose in product((0.0, 0.2, 0.4), ("judged", "choice")):
            for seed in range(6):
                base = 11.0 if constant == 0 else risk[i] + 5 * (constant - 0.2)
                rows.append(
                    {
                        "n": n,
                        "purpose": purpose,
                        "constant": constant,
                        "seed": seed,
                        "risk": base + noise[seed],
                        "least": 3.25,
                        "zero": 11.0,
                        "l1_error": (50.0 if constant == 0 else l1[i]) + noise[seed],
                        "nonzero": 1.0 if constant == 0 else nonzero + 0.01 * noise[seed],
                    }
                )
    return pl.DataFrame(rows)


def outcomes(rows: pl.DataFrame) -> dict[str, str]:
    found = {verdict.id: verdict.outcome for verdict in lasso.verdicts(rows)}
    assert list(found) == list(lasso.ABOUT.claims)
    return found


def test_verdicts_support_a_table_in_which_the_claims_hold():
    assert set(outcomes(table()).values()) == {"supported"}


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("14a", {"risk": (12.0, 9.0, 4.0, 3.5)}),
        ("14b", {"risk": (8.0, 6.0, 4.0, 4.5)}),
        ("14c", {"nonzero": 0.25}),
    ],
)
def test_each_verdict_refutes_a_table_in_which_its_claim_is_false(part, changes):
    found = outcomes(table(**changes))
    assert found.pop(part) == "refuted"
    assert set(found.values()) == {"supported"}


def test_a_rising_l1_error_is_refuted_under_both_choices_of_the_penalty():
    found = outcomes(table(l1=(9.0, 6.0, 2.0, 4.0)))
    assert [part for part, outcome in found.items() if outcome == "refuted"] == ["14d", "14e"]


def test_claim_14e_keeps_the_constant_that_is_best_at_the_largest_n():
    # At n = 50 the larger constant is best and has a small error: only claim 14d sees it.
    other = (pl.col("n") == 50) & (pl.col("constant") == 0.4)
    rows = table().with_columns(
        risk=pl.when(other).then(pl.col("risk") - 4).otherwise("risk"),
        l1_error=pl.when(other).then(pl.col("l1_error") - 8).otherwise("l1_error"),
    )
    found = outcomes(rows)
    assert (found["14d"], found["14e"]) == ("refuted", "supported")


@pytest.mark.parametrize(("purpose", "chosen"), [("choice", 0.4), ("judged", 0.2)])
def test_the_best_penalty_is_chosen_by_mean_risk_on_draws_of_its_own(purpose, chosen):
    low = (pl.col("n") == 50) & (pl.col("constant") == 0.4) & (pl.col("purpose") == purpose)
    rows = table().with_columns(risk=pl.when(low).then(1.0).otherwise("risk"))
    best = lasso._best(rows)
    assert best["purpose"].unique().to_list() == ["judged"]
    assert best.filter(n=50)["constant"].unique().to_list() == [chosen]
    assert best.filter(n=400)["constant"].unique().to_list() == [0.2]
    assert best.height == 6 * len(SIZES)


def test_few_samples_may_have_a_small_ratio_without_a_verdict_on_them():
    # 50 samples are outside claim 14a, whatever their ratio.
    assert outcomes(table(risk=(10.9, 6.0, 4.0, 3.5)))["14a"] == "supported"


def test_an_estimate_is_the_minimiser_that_cvxpy_finds():
    """Independent of the solver: min mean (|r| + eps a)^2 + lambda |theta|_1, the limit xi = 0."""
    case = lasso.Case(n=30, d=40, k=3, constant=0.1, xi=1e-3)
    x, y = (part.numpy() for part in case.law.sample(generator("cvxpy")))
    theta, level = cp.Variable(40), cp.Variable(30)
    loss = cp.sum_squares(level) / 30 + case.penalty * cp.norm1(theta)
    rule = [level >= cp.abs(x @ theta - y) + case.radius * cp.norm2(theta)]
    cp.Problem(cp.Minimize(loss), rule).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(lasso._estimate(case, x, y).theta, theta.value, atol=5e-3)


def test_the_penalty_is_the_theorems_rate():
    case = lasso.Case(n=200, constant=0.2)
    assert case.penalty == pytest.approx(0.2 * np.sqrt(11 * 10 * np.log(1000) / 200))
    assert lasso.Case(n=200, constant=0.0).penalty == 0


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return lab.run(
        "generalization/lasso", scale="smoke", jobs=1, out=tmp_path_factory.mktemp("runs")
    )


def test_smoke_runs_end_to_end(result):
    assert result.failed == []
    assert [verdict.id for verdict in result.verdicts] == list(lasso.ABOUT.claims)
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert len(result.chart["concat"]) == 3


def test_measures_of_theorem_9():
    case = lasso.Case(n=100, d=200, constant=0.2, replicates=2)
    rows = lasso.compute(case)
    assert rows["seed"].to_list() == [0, 1]
    ratio = rows["l1_error"] / rows["penalty"]
    np.testing.assert_allclose(rows["l1_error_over_penalty"], ratio)
    least = linear.optimal(case.law.theta0_vector(), 1.0, lasso.Ball(norm="l2", radius=0.3)).risk
    assert rows["least"].unique().to_list() == [pytest.approx(least)]
    assert (rows["risk"] > least).all()
    assert (rows["k_inf"] > 0).all()
    assert (rows["gap"] <= lasso.GAP).all()
    other = lasso.compute(case.model_copy(update={"purpose": "choice"}))
    assert (other["risk"] != rows["risk"]).all()
    # More replicates change none of the earlier ones.
    assert lasso.compute(case.model_copy(update={"replicates": 1})).equals(rows[:1])
