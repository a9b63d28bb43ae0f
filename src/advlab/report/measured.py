"""What a verdict measured, in words and with its own number: the unit of the claim.

A rule is a sentence, "mean over replicates of X is above 0.5, in each of 2 groups (whole 95 %
interval)": here it is taken apart into X and what is asked of it. A rule about several quantities
measures "what is left to the bound", and its note names the worst of them, "X, above 0.5": the
number of X itself is the bound and what is left.
"""

import math
import re
from dataclasses import dataclass

from .verdict import Verdict

_RULE = re.compile(
    r"(?:(?P<statistic>mean|median) over replicates of )?(?P<what>.+?),? "
    r"(?P<asked>is (?:below|above|between|within) [^,(]+|is reported|"
    r"holds(?: in every replicate, a share of at least [\d.]+ %)?|"
    r"holds in at least [\d.]+ % of replicates)"
    r"(?:, in each of (?P<groups>\d+) groups)?(?P<whole> \(whole \d+ % interval\))?"
)
_LEFT = re.compile(r"(?:, and |, |^)what is left to the bounds?")
_NUMBER = r"(?P<bound>-?[\d.]+|(?:a|one) half|log 2 / 2)"
_ABOVE = re.compile(rf"(?P<what>.+) (?P<side>above|below) {_NUMBER}(?P<rest>, .*)?")
_EXCESS = re.compile(rf"(?P<what>.+) less {_NUMBER}")
_ROOM = re.compile(rf"(?P<where>[^:]+: )?{_NUMBER} less (?P<what>.+)")
_WORDS = {"a half": 0.5, "one half": 0.5, "log 2 / 2": math.log(2) / 2}
_SIGNED = r"([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|inf|nan))"
_ENDS = (
    (rf"is below {_SIGNED}(?![^,(]* holds)", lambda high: (-math.inf, high)),
    (rf"is above {_SIGNED}(?![^,(]* holds)", lambda low: (low, math.inf)),
    (rf"is between {_SIGNED} and {_SIGNED}", lambda low, high: (low, high)),
    (rf"is within {_SIGNED} of {_SIGNED}", lambda off, at: (at - off, at + off)),
    (rf"holds in at least {_SIGNED} % of replicates", lambda share: (share / 100, math.inf)),
    (r"holds in every replicate", lambda: (0.8, math.inf)),
)


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Args:
        what: the quantity.
        value: its number; None where nothing was measured.
        low: the lower end of its interval.
        high: the upper end.
        rule: the verdict's rule, about this quantity.
        region: the ends of the numbers that satisfy it; None if it asks for nothing.
        asked: what the rule asks of it, "above 0.5"; nothing if it cannot be told apart.
        of: of how many replicates `value` is the share; 0 for a number that is no share.
        left: what is left to the bound, where that is what the rule judges.
    """

    what: str
    value: float | None
    low: float | None
    high: float | None
    rule: str
    region: tuple[float, float] | None
    asked: str = ""
    of: int = 0
    left: float | None = None

    @property
    def count(self) -> str:
        """Of a share of replicates how many of how many, "17 of 20"; else nothing."""
        hits = (self.value or 0.0) * self.of
        whole = self.of and math.isclose(hits, round(hits), abs_tol=1e-6)
        return f"{round(hits)} of {self.of}" if whole else ""


def measured(verdict: Verdict) -> Measured:
    """The quantity of a verdict and its own number.

    Args:
        verdict: with a rule and a note as `Claims` words them.

    Example:
        from advlab.report.measured import measured, shown
        shown(measured(result.verdicts[0]))  # "0.6 [0.59, 0.62]"
    """
    found = _RULE.fullmatch(verdict.rule)
    ends = (verdict.measured, verdict.low, verdict.high)
    rule = (verdict.rule, allowed(verdict.rule))
    if found is None:
        return Measured("" if verdict.measured is None else verdict.rule, *ends, *rule)
    what, asked = found["what"], found["asked"].removeprefix("is ")
    if _LEFT.search(what) and verdict.measured is not None:
        return _own(found, verdict)
    group = re.match(r"(.+), the worst of \d+;", verdict.note)
    of = _replicates(verdict) if asked.startswith("holds in") else 0
    if what == "the claim":
        what = "replicates in which it holds"
    return Measured(f"{what} ({group[1]})" if group else what, *ends, *rule, asked, of)


def allowed(rule: str) -> tuple[float, float] | None:
    """The ends of what satisfies a rule, as `Claims` words it; None if it asks for nothing.

    Args:
        rule: the words of a verdict's rule. Of several bounds in them the last is the rule's own.

    Example:
        from advlab.report.measured import allowed
        allowed("mean over replicates of the risk is below 0.2")  # (-inf, 0.2)
    """
    found: list[tuple[int, tuple[float, float]]] = []
    for pattern, ends in _ENDS:
        matches = re.finditer(pattern, rule)
        found += [(one.start(), ends(*map(float, one.groups()))) for one in matches]
    if not found:
        return None
    return max(found)[1]


def _own(rule: re.Match[str], verdict: Verdict) -> Measured:
    """Of what is left to a bound, the quantity that the bound is for.

    Args:
        rule: taken apart; its `what` may say something beside "what is left to the bound".
        verdict: its note begins with the name of the worst group.
    """
    what = _LEFT.sub("", rule["what"]).strip()
    ends = (verdict.measured, verdict.low, verdict.high)
    group = re.split(r", the worst of \d+|; ", verdict.note)[0]
    found = _ABOVE.fullmatch(group) or _EXCESS.fullmatch(group) or _ROOM.fullmatch(group)
    if found is None:
        name = _joined(what, f"what is left to the bound of: {group}")
        return Measured(name, *ends, verdict.rule, (0.0, math.inf), "above 0")
    parts = found.groupdict()
    bound = _WORDS.get(parts["bound"]) or float(parts["bound"])
    below = parts.get("side") == "below" or found.re is _ROOM
    group = f"{parts.get('where') or ''}{parts['what'].rstrip(',')}{parts.get('rest') or ''}"
    value, low, high = (
        None if one is None else bound - one if below else bound + one
        for one in ((ends[0], ends[2], ends[1]) if below else ends)
    )
    asked = f"{'below' if below else 'above'} {parts['bound']}"
    name = _joined(what, group)
    statistic = f"{rule['statistic']} over replicates of " if rule["statistic"] else ""
    among = f", the worst of {rule['groups']} such bounds" if rule["groups"] else ""
    words = f"{statistic}{name} is {asked}{among}{rule['whole'] or ''}"
    region = (-math.inf, bound) if below else (bound, math.inf)
    return Measured(name, value, low, high, words, region, asked, left=verdict.measured)


def _joined(what: str, name: str) -> str:
    """The name of a group, and what the rule says of all groups if the name is one word."""
    if what.startswith("at "):
        return f"{name} {what}"
    return f"{what}: {name}" if what and " " not in name else name


def _replicates(verdict: Verdict) -> int:
    found = re.search(r"(\d+) replicates?", verdict.note)
    return int(found[1]) if found else 0


def shown(found: Measured) -> str:
    """The number and its interval in plain letters; of a share of replicates how many of them."""
    if found.value is None:
        return "-"
    value = found.count or short(found.value)
    if found.low is None or found.high is None or found.low == found.high:
        return value
    return f"{value} [{short(found.low)}, {short(found.high)}]"


def short(value: float) -> str:
    """Four digits; 4e-7 and not 4e-07."""
    return re.sub(r"e([-+])0+", r"e\1", f"{value:.4g}")
