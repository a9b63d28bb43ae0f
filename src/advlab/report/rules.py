"""Verdicts from replicates: a claim is decided only if its whole 95 % interval is on one side.

A number is an exact value and its own interval. A list is one value per replicate. A mapping is a
claim about each of its groups: their intervals hold together (Bonferroni), and the verdict shows
the worst group. A value that is missing or not finite leaves the claim undecided. A claim about
every replicate is refuted by one counterexample.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl

from ..core.errors import AdvlabError
from ..core.intervals import CONFIDENCE, Estimate, Sample, estimate
from .aggregate import label
from .verdict import Claim, Outcome, Verdict

Samples = Sample | Mapping
"""One sample, or a mapping with one sample per group."""

Average = Literal["mean", "median"]

_GRAVITY: dict[Outcome, int] = {"refuted": 0, "undecided": 1, "outside": 1, "supported": 2}


def undecide(verdict: Verdict, note: str) -> Verdict:
    """The same measurement, which now decides nothing, and why."""
    return _with_outcome(verdict, "undecided", note)


def put_outside(verdict: Verdict, note: str) -> Verdict:
    """The same measurement, of runs that do not meet the claim's assumptions, and which."""
    return _with_outcome(verdict, "outside", note)


def _with_outcome(verdict: Verdict, outcome: Outcome, note: str) -> Verdict:
    notes = [part for part in (verdict.note, note) if part]
    return verdict.model_copy(update={"outcome": outcome, "note": "; ".join(notes)})


def sample(
    table: pl.DataFrame, value: str, *, by: str | None = None, replicate: str = "seed"
) -> pl.Series | dict[str, pl.Series]:
    """A column as one value per replicate, in their order; with `by`, one such sample per group.

    Rows that repeat a replicate are refused: they would pass for independent evidence.
    """
    if by is None:
        return _one_per_replicate(table, value, replicate)
    groups = table.partition_by(by, as_dict=True, maintain_order=True)
    return {
        f"{by} = {label(level)}": _one_per_replicate(rows, value, replicate)
        for (level,), rows in groups.items()
    }


def _one_per_replicate(table: pl.DataFrame, value: str, replicate: str) -> pl.Series:
    if table[replicate].is_duplicated().any():
        raise AdvlabError(
            f"{value} must have one row per replicate",
            f"{table.height} rows for {table[replicate].n_unique()} replicates",
            "choose the rows first, for example the last step of each run",
        )
    return table.sort(replicate)[value]


@dataclass(frozen=True)
class Region:
    """The numbers that satisfy a rule: low < number < high, or also the ends if closed.

    `least` is the least value itself: below it a counterexample has been seen, whatever the
    interval.
    """

    words: str
    low: float = -math.inf
    high: float = math.inf
    closed: bool = False
    least: float = -math.inf

    def outcome(self, found: Estimate) -> Outcome:
        if found.value is None or found.low is None or found.high is None:
            return "undecided"
        if found.value < self.least:
            return "refuted"
        if self.closed:
            inside = self.low <= found.low and found.high <= self.high
            outside = found.high < self.low or self.high < found.low
        else:
            inside = self.low < found.low and found.high < self.high
            outside = found.high <= self.low or self.high <= found.low
        return "supported" if inside else "refuted" if outside else "undecided"

    def badness(self, found: Estimate) -> tuple[int, float]:
        """Sorts groups from the worst: by outcome, then by how little the value is inside."""
        margin = -math.inf
        if found.value is not None:
            margin = min(found.value - self.low, self.high - found.value)
        return _GRAVITY[self.outcome(found)], margin


def decide(
    id: str, claim: Claim, values: Samples, region: Region, what: str, statistic: str
) -> Verdict:
    """The verdict on one claim: where the intervals of its groups lie, the worst group shown.

    Args:
        id: the label of the claim.
        claim: its words and kind.
        values: one sample, or one per group.
        region: the numbers that satisfy the rule.
        what: what was measured, in words.
        statistic: "mean", "median" or "share", over replicates.
    """
    groups = dict(values) if isinstance(values, Mapping) else {"": values}
    level = 1 - (1 - CONFIDENCE) / max(len(groups), 1)
    found = {str(name): estimate(one, statistic, level) for name, one in groups.items()}
    rule = _rule(what, statistic, region, groups)
    if not found:
        return missing(id, claim, rule, "there are no values")
    name, worst = min(found.items(), key=lambda pair: region.badness(pair[1]))
    among = f", the worst of {len(found)}" if len(found) > 1 else ""
    return Verdict(
        id=id,
        claim=claim.words,
        kind=claim.kind,
        outcome=region.outcome(worst),
        measured=worst.value,
        low=worst.low,
        high=worst.high,
        rule=rule,
        note=f"{name}{among}; {worst.note}" if name else worst.note,
    )


def missing(id: str, claim: Claim, rule: str, note: str = "") -> Verdict:
    """The verdict on a claim for which nothing was measured."""
    return Verdict(
        id=id,
        claim=claim.words,
        kind=claim.kind,
        outcome="undecided",
        measured=None,
        rule=rule,
        note=note,
    )


def _rule(what: str, statistic: str, region: Region, groups: Mapping) -> str:
    exact = all(one is not None and np.ndim(one) == 0 for one in groups.values())
    prefix = "" if exact or statistic == "share" else f"{statistic} over replicates of "
    words = "holds" if exact and statistic == "share" else region.words
    each = f", in each of {len(groups)} groups" if len(groups) > 1 else ""
    interval = "" if exact else f" (whole {100 * CONFIDENCE:.0f} % interval)"
    return f"{prefix}{what} {words}{each}{interval}"


def changes(table: pl.DataFrame, x: str, y: str, replicate: str | None) -> dict[str, Sample]:
    """The change of y from each level of x to the next, over the replicates that have both."""
    keys = [x] if replicate is None else [x, replicate]
    if table.select(keys).is_duplicated().any():
        raise AdvlabError(f"{y} must have one row for each {' and '.join(keys)}", "repeated rows")
    rows = table.select(*keys, y)
    levels = rows[x].unique().sort().to_list()
    changes: dict[str, Sample] = {}
    for first, second in pairwise(levels):
        name = f"{x} from {label(first)} to {label(second)}"
        before, after = (rows.filter(pl.col(x) == level) for level in (first, second))
        if replicate is None:
            changes[name] = (after[y] - before[y]).item()
        else:
            pairs = before.join(after, on=replicate, suffix=" after")
            changes[name] = pairs[f"{y} after"] - pairs[y]
    return changes
