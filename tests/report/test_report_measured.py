"""Tables show the number of the quantity that a claim names, with its name."""

import json
import math
from pathlib import Path

import pytest

from advlab.lab.summary import whole_result
from advlab.papers import EXPERIMENTS
from advlab.report import Claims, Verdict
from advlab.report.measured import measured, shown
from advlab.report.verdict import ours

PAPERS = Path(__file__).parents[2] / "src" / "advlab" / "papers"


def left(name, what="what is left to the bound", value=0.1):
    return Verdict(id="a", claim="c", outcome="supported", measured=value, low=value - 0.01,
                   high=value + 0.02, note=f"{name}, the worst of 2; 5 replicates",
                   rule=f"mean over replicates of {what} is above 0, in each of 2 groups "
                        "(whole 95 % interval)")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "what", "value", "low", "asked"),
    [
        ("share, above a half", "share", 0.6, 0.59, "above a half"),
        ("share of pairs with theta below 0.2 above 0.85", "share of pairs with theta below 0.2",
         0.95, 0.94, "above 0.85"),
        ("share, above 0.4, d = 96", "share, d = 96", 0.5, 0.49, "above 0.4"),
        ("gap below 0.12", "gap", 0.02, 0.0, "below 0.12"),
        ("0.12 less the gap", "the gap", 0.02, 0.0, "below 0.12"),
        ("control: 1.2 less its fall", "control: its fall", 1.1, 1.08, "below 1.2"),
        ("still to go, less 0.02", "still to go", 0.12, 0.11, "above 0.02"),
        ("dense/top, below a quarter", "what is left to the bound of: dense/top, below a quarter",
         0.1, 0.09, "above 0"),
    ],
)  # fmt: skip
def test_what_is_left_to_a_bound_is_told_as_the_quantity_itself(name, what, value, low, asked):
    found = measured(left(name))
    assert (found.what, found.asked) == (what, asked)
    assert (found.value, found.low) == pytest.approx((value, low))


def test_a_group_of_one_word_keeps_what_the_rule_says_of_all():
    rule = "worst accuracy gained, and what is left to the bounds"
    assert measured(left("share, above a half", rule)).what == "worst accuracy gained: share"
    assert measured(left("its own gain, above 0.3", rule)).what == "its own gain"
    rule = "what is left to the bound at tau"
    assert measured(left("gap below 0.2", rule)).what == "gap at tau"


@pytest.mark.parametrize("rule", ["above", "below", "within", "equal", "every", "share", "trend"])
def test_every_rule_of_the_claims_is_taken_apart(rule):
    claims, values = Claims({"a": ours("c")}), {"d = 1": [1.0] * 20, "d = 2": [1.0] * 20}
    given = {"above": (0,), "below": (2,), "within": (0, 2), "equal": (1, 0.1), "share": (0.6,)}
    verdict = getattr(claims, rule)("a", values, *given.get(rule, ()), what="the number, of all")
    found = measured(verdict)
    assert found.what == "the number, of all (d = 1)"
    assert found.asked
    assert found.of == (20 if rule in ("every", "share") else 0)
    assert shown(found).startswith("20 of 20 [0.8" if found.of else "1")


def stored() -> list[tuple[str, Verdict]]:
    """All verdicts that come with advlab, with their names."""
    files = sorted(PAPERS.glob("*/verdicts.json"))
    results = [whole_result(one) for file in files for one in json.loads(file.read_text())]
    assert {result.experiment for result in results} <= set(EXPERIMENTS)
    return [(result.name(one), one) for result in results for one in result.verdicts]


def test_every_stored_rule_is_taken_apart():
    for name, verdict in stored():
        assert measured(verdict).asked or verdict.measured is None, name


def test_number_rule_and_region_of_a_stored_verdict_are_of_one_quantity():
    for name, verdict in stored():
        found = measured(verdict)
        if found.left is None or found.asked == "above 0":
            continue
        assert "what is left" not in found.rule, name
        (bound,) = (end for end in found.region if abs(end) < 1e300)
        assert abs(found.value - bound) == pytest.approx(abs(found.left)), name
        inside = found.region[0] < found.value < found.region[1]
        assert inside == (verdict.measured > 0), name
        assert verdict.outcome != "supported" or inside, name


def test_a_rule_about_what_is_left_becomes_one_about_the_quantity():
    found = measured(left("share, above a half"))
    assert found.rule == (
        "mean over replicates of share is above a half, the worst of 2 such bounds "
        "(whole 95 % interval)"
    )
    assert found.region == (0.5, math.inf)
    assert measured(left("0.12 less the gap")).region == (-math.inf, 0.12)
