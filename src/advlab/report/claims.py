"""The one way to decide a claim: `claims.below("4a", values, 0.2, what="...")`."""

from collections.abc import Mapping

import polars as pl

from ..core.errors import AdvlabError
from ..core.intervals import Number
from .rules import Average, Region, Samples, changes, decide, undecide
from .verdict import Verdict


class Claims:
    """The claims of one experiment, by label; each method decides one of them by one rule.

    All methods take the label first, and say in `what` what was measured. Values are an exact
    number, one value per replicate, or a mapping with one such sample per group (see `rules`).

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
        region = Region(f"is below {bound:.6g}", high=float(bound))
        return decide(label, self._claim(label), values, region, what, statistic)

    def above(
        self, label: str, values: Samples, bound: Number, *, what: str, statistic: Average = "mean"
    ) -> Verdict:
        """That a quantity is more than a bound."""
        region = Region(f"is above {bound:.6g}", low=float(bound))
        return decide(label, self._claim(label), values, region, what, statistic)

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
        if not low <= high:
            raise AdvlabError("the lower end must not exceed the upper end", f"{low} and {high}")
        words = f"is between {low:.6g} and {high:.6g}"
        region = Region(words, low=float(low), high=float(high), closed=True)
        return decide(label, self._claim(label), values, region, what, statistic)

    def every(
        self, label: str, flags: Samples, *, what: str = "the claim", at_least: Number = 0.8
    ) -> Verdict:
        """That something holds in each replicate, judged by the share in which it does.

        No number of replicates proves "always": the rule is a share of at least `at_least`, for
        which all of 17 replicates are enough by default. A bare flag is an exact yes or no.
        """
        words = f"holds in at least {100 * at_least:.6g} % of replicates"
        region = Region(words, low=float(at_least), closed=True)
        return decide(label, self._claim(label), flags, region, what, "share")

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
        """That y falls from each level of x to the next; rises below `slack` are forgiven.

        Changes are taken within a replicate. `replicate=None` says that y is exact: one row per
        level.
        """
        found = changes(table, x, y, replicate)
        return self.below(
            label, found, slack, what=f"change of {what or y} from one {x} to the next"
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
        """That y rises from each level of x to the next: the mirror of `decreasing`."""
        found = changes(table, x, y, replicate)
        what = f"change of {what or y} from one {x} to the next"
        return self.above(label, found, -slack, what=what)

    def trend(self, label: str, slopes: Samples, *, what: str) -> Verdict:
        """An asymptotic claim: its exponent is reported, and no finite size decides it."""
        found = decide(label, self._claim(label), slopes, Region("is reported"), what, "mean")
        return undecide(found, "a trend: what happens in the limit is not decided at finite sizes")

    def _claim(self, label: str) -> str:
        if label not in self.words:
            raise AdvlabError(f"the label of a claim: {', '.join(self.words)}", repr(label))
        return self.words[label]
