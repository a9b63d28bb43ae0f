"""What a verdict measured, in words and with its own number, for tables and for prose.

A rule is a sentence, "mean over replicates of X is above 0.5, in each of 2 groups (whole 95 %
interval)": here it is taken apart into X and what is asked of it. A rule about several quantities
measures "what is left to the bound", and its note names the worst of them, "X, above 0.5": the
number of X itself is the bound and what is left.
"""

import math
import re
from dataclasses import dataclass

from advlab.report import Verdict

_RULE = re.compile(
    r"(?:(?P<statistic>mean|median) over replicates of )?(?P<what>.+?),? "
    r"(?P<asked>is (?:below|above|between|within) [^,(]+|is reported|"
    r"holds(?: in every replicate, a share of at least [\d.]+ %)?|"
    r"holds in at least [\d.]+ % of replicates)"
    r"(?P<each>, in each of \d+ groups)?(?P<whole> \(whole \d+ % interval\))?"
)
_LEFT = re.compile(r"(?:, and |, |^)what is left to the bounds?")
_NUMBER = r"(?P<bound>-?[\d.]+|(?:a|one) half|log 2 / 2)"
_ABOVE = re.compile(rf"(?P<what>.+) (?P<side>above|below) {_NUMBER}(?P<rest>, .*)?")
_EXCESS = re.compile(rf"(?P<what>.+) less {_NUMBER}")
_ROOM = re.compile(rf"(?P<where>[^:]+: )?{_NUMBER} less (?P<what>.+)")
_WORDS = {"a half": 0.5, "one half": 0.5, "log 2 / 2": math.log(2) / 2}


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Args:
        what: the quantity.
        value: its number; None where nothing was measured.
        low: the lower end of its interval.
        high: the upper end.
        asked: what the rule asks of it, "above 0.5"; nothing if it cannot be told apart.
        of: of how many replicates `value` is the share; 0 for a number that is no share.
        left: what is left to the bound, where that is what the rule judges.
    """

    what: str
    value: float | None
    low: float | None
    high: float | None
    asked: str = ""
    of: int = 0
    left: float | None = None


def measured(verdict: Verdict) -> Measured:
    """The quantity of a verdict and its own number."""
    found = _RULE.fullmatch(verdict.rule)
    ends = (verdict.measured, verdict.low, verdict.high)
    if found is None:
        return Measured("" if verdict.measured is None else verdict.rule, *ends)
    what, asked = found["what"], found["asked"].removeprefix("is ")
    if _LEFT.search(what) and verdict.measured is not None:
        return _own(_LEFT.sub("", what).strip(), verdict)
    group = re.match(r"(.+), the worst of \d+;", verdict.note)
    of = _replicates(verdict) if asked.startswith("holds in") else 0
    if what == "the claim":
        what = "replicates in which it holds"
    return Measured(f"{what} ({group[1]})" if group else what, *ends, asked, of)


def _own(what: str, verdict: Verdict) -> Measured:
    """Of what is left to a bound, the quantity that the bound is for.

    Args:
        what: what the rule says beside "what is left to the bound".
        verdict: its note begins with the name of the worst group.
    """
    ends = (verdict.measured, verdict.low, verdict.high)
    group = re.split(r", the worst of \d+|; ", verdict.note)[0]
    found = _ABOVE.fullmatch(group) or _EXCESS.fullmatch(group) or _ROOM.fullmatch(group)
    if found is None:
        return Measured(_joined(what, f"what is left to the bound of: {group}"), *ends, "above 0")
    parts = found.groupdict()
    bound = _WORDS.get(parts["bound"]) or float(parts["bound"])
    below = parts.get("side") == "below" or found.re is _ROOM
    name = f"{parts.get('where') or ''}{parts['what'].rstrip(',')}{parts.get('rest') or ''}"
    value, low, high = (
        None if one is None else bound - one if below else bound + one
        for one in ((ends[0], ends[2], ends[1]) if below else ends)
    )
    asked = f"{'below' if below else 'above'} {parts['bound']}"
    return Measured(_joined(what, name), value, low, high, asked, left=verdict.measured)


def _joined(what: str, name: str) -> str:
    """The name of a group, and what the rule says of all groups if the name is one word."""
    if what.startswith("at "):
        return f"{name} {what}"
    return f"{what}: {name}" if what and " " not in name else name


def _replicates(verdict: Verdict) -> int:
    found = re.search(r"(\d+) replicates?", verdict.note)
    return int(found[1]) if found else 0


def shown(found: Measured) -> str:
    """The number and its interval; of a share of replicates how many of how many."""
    if found.value is None:
        return "-"
    hits = found.value * found.of
    count = found.of and math.isclose(hits, round(hits), abs_tol=1e-6)
    value = f"{round(hits)} of {found.of}" if count else short(found.value)
    if found.low is None or found.high is None or found.low == found.high:
        return value
    return f"{value} [{short(found.low)}, {short(found.high)}]"


def short(value: float) -> str:
    """Four digits; 4e-7 and not 4e-07."""
    return re.sub(r"e([-+])0+", r"e\1", f"{value:.4g}")
