"""Verdicts: each can come out all three ways, and noise rarely passes for a decision."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advlab.core.errors import AdvlabError
from advlab.report import Claims, Scope, empirical, sample, theorem, undecide

CLAIM = Claims({"id": "claim"})
above, below, within, equal = CLAIM.above, CLAIM.below, CLAIM.within, CLAIM.equal
every, share = CLAIM.every, CLAIM.share
NEAR = [0.9, 1.0, 1.1, 1.2]  # mean 1.05, t interval 0.8446 to 1.2554


def judge(rule, values, *bounds, **more):
    return rule("id", values, *bounds, what="gap", **more)


def numbers(verdict):
    return verdict.measured, verdict.low, verdict.high


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        (judge(below, NEAR, 1.26), "supported"),
        (judge(below, NEAR, 1.25), "undecided"),
        (judge(below, NEAR, 0.85), "undecided"),
        (judge(below, NEAR, 0.84), "refuted"),
        (judge(above, NEAR, 0.84), "supported"),
        (judge(above, NEAR, 0.85), "undecided"),
        (judge(above, NEAR, 1.26), "refuted"),
        (judge(within, NEAR, 0.84, 1.26), "supported"),
        (judge(within, NEAR, 0.84, 1.2), "undecided"),
        (judge(within, NEAR, 0, 0.84), "refuted"),
        (judge(within, NEAR, 1.26, 2), "refuted"),
        (judge(every, [True] * 17), "supported"),
        (judge(every, [True] * 16), "undecided"),
        (judge(every, [True] * 99 + [False]), "refuted"),
        (judge(share, [True] * 99 + [False], 0.8), "supported"),
        (judge(share, [True] * 17, 0.8), "supported"),
        (judge(share, [True] * 16 + [False], 0.8), "undecided"),
        (judge(share, [True] * 5 + [False] * 12, 0.8), "refuted"),
        (judge(equal, NEAR, 1.0, 0.3), "supported"),
        (judge(equal, NEAR, 1.0, 0.2), "undecided"),
        (judge(equal, NEAR, 2.0, 0.5), "refuted"),
        (judge(every, True), "supported"),
        (judge(every, False), "refuted"),
    ],
)
def test_a_claim_is_decided_only_by_the_whole_interval(verdict, outcome):
    assert verdict.outcome == outcome


def test_the_mean_has_the_t_interval_of_the_textbook():
    # t(0.975, 3) = 3.182446; the standard error of NEAR is sqrt(0.05 / 3 / 4).
    half = 3.182446305284263 * math.sqrt(0.05 / 3 / 4)
    verdict = judge(below, NEAR, 2)
    assert (verdict.measured, verdict.low, verdict.high) == pytest.approx(
        (1.05, 1.05 - half, 1.05 + half)
    )


def test_a_share_has_the_interval_of_clopper_and_pearson():
    # For n of n the lower end solves p^n = 0.025; the printed table gives 0.6915 for 10.
    verdict = judge(every, [True] * 10)
    assert (verdict.low, verdict.high) == pytest.approx((0.025**0.1, 1.0))
    verdict = judge(every, [True] * 8 + [False] * 2)
    assert (verdict.measured, verdict.low, verdict.high) == pytest.approx(
        (0.8, 0.4439, 0.9748), abs=1e-4
    )


def test_the_median_has_the_interval_of_order_statistics():
    # The printed table for n = 10: the second and the ninth value.
    verdict = judge(below, list(range(10)), 8.5, statistic="median")
    assert numbers(verdict) == (4.5, 1, 8)
    assert verdict.outcome == "supported"
    assert judge(below, [1, 2, 3, 4, 5], 9, statistic="median").outcome == "undecided"


@pytest.mark.parametrize("rule", [below, above])
def test_an_exact_value_is_its_own_interval_and_equality_is_not_enough(rule):
    assert judge(rule, 1.0, 1.0).outcome == "refuted"
    side = 0.5 if rule is below else 1.5
    verdict = judge(rule, side, 1.0)
    assert (verdict.outcome, verdict.low, verdict.high) == ("supported", side, side)


def test_the_ends_of_within_belong_to_it():
    assert judge(within, 0, 0, 0).outcome == "supported"
    with pytest.raises(AdvlabError, match="lower end"):
        judge(within, 0, 1, 0)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (None, "missing"),
        (math.nan, "missing"),
        ([], "0 replicates"),
        ([0.1, 0.2, math.nan, 0.1], "1 of 4"),
        ([0.1, 0.2, math.inf, None], "2 of 4"),
        (pl.Series([0.1, None, 0.2, 0.3]), "1 of 4"),
        ([1e308, 1e308, -1e308, 1e308], "no finite"),
        ({}, "no values"),
        ({"a": None, "b": [0.1, None, 0.1]}, "a, the worst of 2; the value is missing"),
    ],
)
def test_what_is_missing_is_never_a_number(values, note):
    for verdict in (judge(below, values, 1), judge(above, values, 1), judge(within, values, 0, 1)):
        assert verdict.outcome == "undecided"
        assert verdict.measured is verdict.low is verdict.high is None
        assert note in verdict.note


@pytest.mark.parametrize(("values", "note"), [([0.1], "1 replicate:"), ([0.1, 0.3], "at least 3")])
def test_too_few_replicates_are_measured_and_decide_nothing(values, note):
    verdict = judge(below, values, 1)
    assert verdict.outcome == "undecided"
    assert verdict.measured == pytest.approx(sum(values) / len(values))
    assert verdict.low is verdict.high is None
    assert note in verdict.note


def test_one_bad_group_refutes_a_claim_about_each():
    groups = {"eps = 0": [0.1, 0.11, 0.12], "eps = 1": [2.1, 2.2, 2.0], "eps = 2": [None]}
    verdict = judge(below, groups, 1)
    assert verdict.outcome == "refuted"
    assert verdict.measured == pytest.approx(2.1)
    assert verdict.note.startswith("eps = 1, the worst of 3")


def test_a_missing_group_keeps_a_claim_about_each_open():
    verdict = judge(below, {"eps = 0": [0.1, 0.11, 0.12], "eps = 1": [0.1, None, 0.1]}, 1)
    assert (verdict.outcome, verdict.measured) == ("undecided", None)
    assert verdict.note == "eps = 1, the worst of 2; 1 of 3 values are missing or not finite"


def test_intervals_of_groups_hold_together():
    # t(1 - 0.025 / 2, 3) = 4.176535 by a printed table: 0.95 for two groups at once.
    half = 4.176535 * math.sqrt(0.05 / 3 / 4)
    verdict = judge(below, {"a": NEAR, "b": [value - 1 for value in NEAR]}, 2)
    assert verdict.high == pytest.approx(1.05 + half, abs=1e-5)


@given(
    st.lists(st.floats(-10, 10), min_size=1, max_size=8),
    st.floats(-10, 10),
    st.sampled_from(["mean", "median"]),
)
def test_below_and_above_mirror_each_other(values, bound, statistic):
    low = judge(below, values, bound, statistic=statistic)
    high = judge(above, [-value for value in values], -bound, statistic=statistic)
    assert low.outcome == high.outcome
    opposite = judge(above, values, bound, statistic=statistic)
    swapped = {"supported": "refuted", "refuted": "supported", "undecided": "undecided"}
    assert opposite.outcome == swapped[low.outcome] or bound in (low.low, low.high)


def test_noise_around_the_bound_is_seldom_decided():
    rng = np.random.default_rng(0)
    outcomes = [judge(below, draw, 0).outcome for draw in rng.normal(size=(400, 5))]
    # At most 2.5 % each way are expected, 10 of 400; 20 would be three standard errors more.
    assert outcomes.count("supported") < 20
    assert outcomes.count("refuted") < 20
    outcomes = [judge(share, draw, 0.5).outcome for draw in rng.random((400, 20)) < 0.5]
    assert outcomes.count("supported") < 20
    assert outcomes.count("refuted") < 20


def test_the_rule_is_a_sentence():
    assert judge(below, 0.5, 1).rule == "gap is below 1"
    assert judge(within, NEAR, 0, 2).rule == (
        "mean over replicates of gap is between 0 and 2 (whole 95 % interval)"
    )
    assert judge(above, {"a": NEAR, "b": NEAR}, 0.01, statistic="median").rule == (
        "median over replicates of gap is above 0.01, in each of 2 groups (whole 95 % interval)"
    )
    assert judge(share, [True] * 4, 0.8).rule == (
        "gap holds in at least 80 % of replicates (whole 95 % interval)"
    )
    assert judge(every, [True] * 4).rule == (
        "gap holds in every replicate, a share of at least 80 % (whole 95 % interval)"
    )
    assert judge(equal, NEAR, 1, 0.1).rule == (
        "mean over replicates of gap is within 0.1 of 1 (whole 95 % interval)"
    )


def trend(*levels, seeds=6, noise=0.1):
    rng = np.random.default_rng(3)
    rows = [
        {"n": 10**place, "seed": seed, "risk": level + noise * rng.normal()}
        for place, level in enumerate(levels)
        for seed in range(seeds)
    ]
    return pl.DataFrame(rows).sample(fraction=1, shuffle=True, seed=0)


def test_a_trend_must_hold_at_every_step():
    assert CLAIM.decreasing("id", trend(5, 3, 1), "n", "risk").outcome == "supported"
    broken = CLAIM.decreasing("id", trend(5, 1, 3), "n", "risk")
    assert broken.outcome == "refuted"
    assert broken.measured == pytest.approx(2, abs=0.3)
    assert "n from 10 to 100, the worst of 2" in broken.note
    assert CLAIM.decreasing("id", trend(5, 3, 3), "n", "risk").outcome == "undecided"
    assert CLAIM.increasing("id", trend(1, 3, 5), "n", "risk").outcome == "supported"
    assert CLAIM.increasing("id", trend(5, 3, 1), "n", "risk").outcome == "refuted"


def test_a_constant_is_no_trend_unless_slack_forgives_it():
    flat = trend(1, 1, noise=0)
    for rule in (CLAIM.decreasing, CLAIM.increasing):
        assert rule("id", flat, "n", "risk").outcome == "refuted"
        assert rule("id", flat, "n", "risk", slack=0.1).outcome == "supported"


def test_a_trend_without_replicates_is_exact():
    table = pl.DataFrame({"n": [1, 2, 3], "risk": [3.0, 2.0, 2.5]})
    verdict = CLAIM.decreasing("id", table, "n", "risk", replicate=None)
    assert (verdict.outcome, verdict.measured) == ("refuted", 0.5)
    gap = table.with_columns(risk=pl.Series([3.0, None, 1.0]))
    assert CLAIM.decreasing("id", gap, "n", "risk", replicate=None).outcome == "undecided"
    assert CLAIM.decreasing("id", table[:1], "n", "risk", replicate=None).outcome == "undecided"


def test_repeated_rows_are_not_evidence():
    table = pl.DataFrame({"seed": [0, 0, 1], "n": [1, 1, 1], "risk": [1.0, 1.0, 2.0]})
    with pytest.raises(AdvlabError, match="3 rows for 2 replicates"):
        sample(table, "risk")
    with pytest.raises(AdvlabError, match="one row for each n and seed"):
        CLAIM.decreasing("id", table, "n", "risk")
    with pytest.raises(AdvlabError, match="one value per replicate"):
        judge(below, np.ones((3, 3)), 2)
    with pytest.raises(AdvlabError, match="true or false"):
        judge(every, [0.5, 1, 1, 1])


def test_a_sample_is_in_the_order_of_its_replicates():
    table = pl.DataFrame({"seed": [2, 0, 1], "eps": [0.5, 0.0, 0.5], "risk": [3.0, 1.0, 2.0]})
    assert sample(table, "risk").to_list() == [1, 2, 3]
    groups = sample(table, "risk", by="eps")
    assert {name: values.to_list() for name, values in groups.items()} == {
        "eps = 0.5": [2, 3],
        "eps = 0": [1],
    }


def test_replicates_that_all_agree_are_said_to():
    verdict = judge(below, [0, 0, 0, 0], 1)
    assert (verdict.outcome, verdict.note) == ("supported", "4 replicates, all equal")


def test_undecide_keeps_the_measurement_and_says_why():
    before = judge(below, NEAR, 2)
    after = undecide(before, "smoke scale decides nothing")
    assert (after.outcome, after.measured) == ("undecided", before.measured)
    assert after.note == "4 replicates; smoke scale decides nothing"
    assert before.outcome == "supported"


def test_a_label_that_is_no_claim_is_named():
    with pytest.raises(AdvlabError, match="the label of a claim: id; got 'di'"):
        CLAIM.below("di", 1, 2, what="gap")


def test_more_data_cannot_make_a_wrong_formula_pass_for_the_right_one():
    rng = np.random.default_rng(1)
    for replicates in (3, 30, 3000):
        draws = 1.2 + rng.normal(size=replicates)
        assert judge(equal, draws, 1.0, 0.1).outcome != "supported"
    assert judge(equal, 1.2 + rng.normal(size=3000), 1.2, 0.1).outcome == "supported"


def test_a_verdict_has_the_kind_of_its_claim_and_bare_words_are_ours():
    claims = Claims({"a": theorem("proved"), "b": "asked"})
    assert claims.below("a", 0, 1, what="gap").kind == "theorem"
    assert claims.below("b", 0, 1, what="gap").kind == "ours"


def test_what_no_run_meets_is_outside():
    found = Claims({"a": theorem("proved", "width")}).outside("a", "width needs m >= 10")
    assert (found.outcome, found.measured, found.note) == ("outside", None, "width needs m >= 10")


def test_reduced_runs_decide_at_their_size_and_only_what_could_go_either_way():
    small = Scope(reduced="250 of 1000 steps")
    found = [
        Claims({"a": make("so")}).below("a", 0, 1, what="gap").model_copy(update={"scope": small})
        for make in (empirical, theorem)
    ]
    assert [one.words for one in found] == ["supported at this size", "supported"]
