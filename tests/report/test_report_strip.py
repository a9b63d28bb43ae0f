"""The strip of a verdict: its threshold is the rule's own, and its dot is on the right side."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.report import Claims, Verdict
from advlab.report.measured import allowed
from advlab.report.strip import WIDTH, strip

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: float(f"{x:.5g}"))


def decided(rule: str, values, *more):
    return getattr(Claims({"a": "words"}), rule)("a", values, *more, what="x is below 7 of y")


@settings(deadline=None, max_examples=50)
@given(st.lists(NUMBERS, min_size=3, max_size=5), NUMBERS, NUMBERS)
def test_the_threshold_is_read_back_from_the_rule(values, a, b):
    low, high = sorted((a, b))
    assert allowed(decided("below", values, a).rule) == (-math.inf, a)
    assert allowed(decided("above", values, a).rule) == (a, math.inf)
    assert allowed(decided("within", values, low, high).rule) == (low, high)
    found = allowed(decided("equal", values, a, 0.25).rule)
    assert found == pytest.approx((a - 0.25, a + 0.25))
    assert allowed(decided("trend", values).rule.replace("is below 7 of y", "")) is None


def test_shares_are_shares():
    assert allowed(decided("every", [True] * 20).rule) == (0.8, math.inf)
    assert allowed(decided("share", [True] * 20, 0.35).rule) == (0.35, math.inf)


@settings(deadline=None, max_examples=50)
@given(st.lists(NUMBERS, min_size=3, max_size=5), NUMBERS)
def test_dot_and_threshold_keep_their_order_inside_the_strip(values, bound):
    verdict = decided("below", values, bound)
    drawing = str(strip(verdict))
    dot = float(re.search(r'cx="([\d.]+)"', drawing)[1])
    mark = float(re.search(r'class="bound" d="M([\d.]+)', drawing)[1])
    ends = [float(x) for x in re.search(r'interval" d="M([\d.]+) 15H([\d.]+)', drawing).groups()]
    assert all(0 <= place <= WIDTH for place in (dot, mark, *ends))
    assert ends[0] <= dot + 0.1 <= ends[1] + 0.2
    if verdict.outcome == "supported":
        assert ends[1] <= mark + 0.1
    if verdict.outcome == "refuted":
        assert ends[0] >= mark - 0.1


def test_nothing_measured_has_no_strip():
    assert strip(decided("below", [1.0, None], 2.0)) == ""
    assert strip(Claims({"a": "w"}).trend("a", [1.0, 2.0, 3.0], what="slope")) == ""


def test_a_strip_is_in_the_unit_of_the_claim():
    verdict = Verdict(
        id="a",
        claim="c",
        outcome="supported",
        measured=0.1,
        low=0.05,
        high=0.15,
        rule="mean over replicates of what is left to the bound is above 0 (whole 95 % interval)",
        note="share, above 0.5; 5 replicates",
    )
    said = re.search('aria-label="([^"]*)"', strip(verdict, 0.8))
    assert said
    assert said[1] == ("measured 0.6, interval 0.55 to 0.65, threshold 0.5, the paper prints 0.8")
