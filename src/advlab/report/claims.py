"""The one way to decide a claim: `claims.below("4a", values, 0.2, what="...")`."""

from collections.abc import Mapping

import polars as pl

from ..core.intervals import Number
from . import rules
from .rules import Average, Samples
from .verdict import Verdict


class Claims:
    """The claims of one experiment, by label; each method decides one of them by one rule.

    Args:
        claims: label to words, as in `ABOUT.claims`. A label is the claim's name inside its
            experiment ("4a"); the full id puts the experiment in front ("cgro/phases/4a").

    Example:
        claims = Claims({"4a": "phase I ends before Lemma A.1's time"})
        verdict = claims.every("4a", [True] * 20, what="T_0 <= bound")
    """

    def __init__(self, claims: Mapping[str, str]):
        self.words = dict(claims)

    def below(
        self, label: str, values: Samples, bound: Number, *, what: str, statistic: Average = "mean"
    ) -> Verdict:
        """That a quantity is less than a bound."""
        return rules.below(label, self.words[label], values, bound, what=what, statistic=statistic)

    def above(
        self, label: str, values: Samples, bound: Number, *, what: str, statistic: Average = "mean"
    ) -> Verdict:
        """That a quantity is more than a bound."""
        return rules.above(label, self.words[label], values, bound, what=what, statistic=statistic)

    def within(
        self,
        label: str,
        values: Samples,
        low: Number,
        high: Number,
        *,
        what: str,
        statistic: Average = "mean",
    ) -> Verdict:
        """That a quantity lies between two numbers, ends included."""
        words = self.words[label]
        return rules.within(label, words, values, low, high, what=what, statistic=statistic)

    def every(
        self, label: str, flags: Samples, *, what: str = "the claim", at_least: Number = 0.8
    ) -> Verdict:
        """That something holds in each replicate, judged by the share in which it does."""
        return rules.every(label, self.words[label], flags, what=what, at_least=at_least)

    def decreasing(
        self,
        label: str,
        table: pl.DataFrame,
        x: str,
        y: str,
        *,
        replicate: str | None = "seed",
        slack: Number = 0,
        what: str = "",
    ) -> Verdict:
        """That y falls from each level of x to the next."""
        words = self.words[label]
        return rules.decreasing(
            label, words, table, x, y, replicate=replicate, slack=slack, what=what
        )

    def increasing(
        self,
        label: str,
        table: pl.DataFrame,
        x: str,
        y: str,
        *,
        replicate: str | None = "seed",
        slack: Number = 0,
        what: str = "",
    ) -> Verdict:
        """That y rises from each level of x to the next."""
        words = self.words[label]
        return rules.increasing(
            label, words, table, x, y, replicate=replicate, slack=slack, what=what
        )

    def trend(self, label: str, slopes: Samples, *, what: str) -> Verdict:
        """An asymptotic claim: its exponent is reported, and no finite size decides it."""
        return rules.trend(label, self.words[label], slopes, what=what)
