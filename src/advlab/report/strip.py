"""A verdict as a strip: the numbers that satisfy the rule, and where the interval lies."""

import math
from dataclasses import dataclass

from markupsafe import Markup

from .formatting import interval, number
from .measured import Measured, measured
from .verdict import Verdict

WIDTH, HEIGHT = 200, 30
_EDGE = 8
_LOG_FROM = 30.0
"""Where numbers differ by more than this factor, the strip is logarithmic."""


def strip(verdict: Verdict, printed: float | None = None) -> Markup:
    """The picture; empty where nothing was measured or the rule has no number.

    Args:
        verdict: with a rule as `Claims` words it.
        printed: what the paper prints, in the unit of the claim; drawn as a triangle.
    """
    found = measured(verdict)
    ends = found.region
    if found.value is None or ends is None or not math.isfinite(found.value):
        return Markup("")
    low = found.value if found.low is None else found.low
    high = found.value if found.high is None else found.high
    bounds = [end for end in ends if math.isfinite(end)]
    if not all(map(math.isfinite, (low, high))) or not bounds:
        return Markup("")
    seen = [low, found.value, high, *bounds, *([] if printed is None else [printed])]
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
    inner += Markup('<circle cx="{:.1f}" cy="15" r="4"/>').format(axis.at(found.value))
    if printed is not None:
        inner += Markup('<path class="printed" d="M{:.1f} 8l-4 -7h8z"/>').format(axis.at(printed))
    return Markup(
        '<svg class="strip {}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<rect class="track" x="0" y="9" width="{}" height="12" rx="2"/>{}</svg>'
    ).format(verdict.outcome, WIDTH, HEIGHT, spoken(found, bounds, printed), WIDTH, inner)


def spoken(found: Measured, bounds: list[float], printed: float | None = None) -> str:
    """What the strip shows, for those who hear it."""
    between = interval(found.low, found.high)
    between = f", interval {between}" if between else ""
    ends = " and ".join(number(bound) for bound in bounds)
    paper = "" if printed is None else f", the paper prints {number(printed)}"
    return f"measured {number(found.value)}{between}, threshold {ends}{paper}"


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
