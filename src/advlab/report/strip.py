"""A verdict as a strip: the numbers that satisfy the rule, and where the interval lies."""

import math
import re
from dataclasses import dataclass

from markupsafe import Markup

from .formatting import number
from .verdict import Verdict

WIDTH, HEIGHT = 200, 30
_EDGE = 8
_NUMBER = r"([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|inf|nan))"
_LOG_FROM = 30.0
"""Where numbers differ by more than this factor, the strip is logarithmic."""


def allowed(rule: str) -> tuple[float, float] | None:
    """The ends of what satisfies a rule, as `Claims` words it; None if it asks for nothing.

    Args:
        rule: the words of a verdict's rule. Of several bounds in them the last is the rule's own.

    Example:
        allowed("mean over replicates of the risk is below 0.2")  # (-inf, 0.2)
    """
    found: list[tuple[int, tuple[float, float]]] = []
    for pattern, ends in _ENDS:
        matches = re.finditer(pattern, rule)
        found += [(one.start(), ends(*map(float, one.groups()))) for one in matches]
    if not found:
        return None
    return max(found)[1]


_ENDS = (
    (rf"is below {_NUMBER}(?![^,(]* holds)", lambda high: (-math.inf, high)),
    (rf"is above {_NUMBER}(?![^,(]* holds)", lambda low: (low, math.inf)),
    (rf"is between {_NUMBER} and {_NUMBER}", lambda low, high: (low, high)),
    (rf"is within {_NUMBER} of {_NUMBER}", lambda off, at: (at - off, at + off)),
    (rf"holds in at least {_NUMBER} % of replicates", lambda share: (share / 100, math.inf)),
    (r"holds in every replicate", lambda: (0.8, math.inf)),
)


def strip(verdict: Verdict, printed: float | None = None) -> Markup:
    """The picture; empty where nothing was measured or the rule has no number.

    Args:
        verdict: with a rule as `Claims` words it.
        printed: what the paper prints, in the unit of the verdict; drawn as a triangle.
    """
    ends = allowed(verdict.rule)
    if verdict.measured is None or ends is None or not math.isfinite(verdict.measured):
        return Markup("")
    low = verdict.measured if verdict.low is None else verdict.low
    high = verdict.measured if verdict.high is None else verdict.high
    bounds = [end for end in ends if math.isfinite(end)]
    if not all(map(math.isfinite, (low, high))) or not bounds:
        return Markup("")
    seen = [low, verdict.measured, high, *bounds, *([] if printed is None else [printed])]
    axis = _Axis.around(seen, share="holds in" in verdict.rule)
    shade = [axis.at(end) for end in ends]
    inner = Markup('<rect class="yes" x="{:.1f}" y="9" width="{:.1f}" height="12" rx="2"/>').format(
        shade[0], max(shade[1] - shade[0], 1.5)
    )
    inner += Markup("").join(
        Markup('<path class="bound" d="M{0:.1f} 5v20"/>').format(axis.at(bound)) for bound in bounds
    )
    line = axis.at(low), axis.at(high)
    inner += Markup('<path class="interval" d="M{:.1f} 15H{:.1f}"/>').format(*line)
    inner += Markup('<circle cx="{:.1f}" cy="15" r="4"/>').format(axis.at(verdict.measured))
    if printed is not None:
        inner += Markup('<path class="printed" d="M{:.1f} 8l-4 -7h8z"/>').format(axis.at(printed))
    return Markup(
        '<svg class="strip {}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<rect class="track" x="0" y="9" width="{}" height="12" rx="2"/>{}</svg>'
    ).format(verdict.outcome, WIDTH, HEIGHT, spoken(verdict, bounds, printed), WIDTH, inner)


def spoken(verdict: Verdict, bounds: list[float], printed: float | None = None) -> str:
    """What the strip shows, for those who hear it."""
    interval = ""
    if verdict.low is not None and verdict.high is not None and verdict.low != verdict.high:
        interval = f", interval {number(verdict.low)} to {number(verdict.high)}"
    ends = " and ".join(number(bound) for bound in bounds)
    paper = "" if printed is None else f", the paper prints {number(printed)}"
    return f"measured {number(verdict.measured)}{interval}, threshold {ends}{paper}"


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    log: bool

    @classmethod
    def around(cls, values: list[float], share: bool) -> "_Axis":
        if share:
            return cls(0.0, 1.0, False)
        positive = min(values) > 0
        log = positive and max(values) > _LOG_FROM * min(values)
        seen = [math.log(value) for value in values] if log else values
        room = 0.25 * (max(seen) - min(seen)) or 0.25 * abs(seen[0]) or 1.0
        # The strip starts at zero where zero is near: there the quantity often ends.
        low = min(seen) - room
        if not log and min(values) >= 0 and low < 0.5 * min(seen):
            low = 0.0
        return cls(low, max(seen) + room, log)

    def at(self, value: float) -> float:
        """Pixels from the left; what lies beyond an end is drawn at it."""
        if math.isinf(value):
            return 0.0 if value < 0 else float(WIDTH)
        seen = (math.log(value) if value > 0 else -math.inf) if self.log else value
        share = (seen - self.low) / (self.high - self.low)
        return _EDGE + min(max(share, 0.0), 1.0) * (WIDTH - 2 * _EDGE)
