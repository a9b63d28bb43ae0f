"""The one way to decide a claim: `claims.below("4a", values, 0.2, what="...")`."""

from collections.abc import Mapping

import polars as pl

from ..core.errors import AdvlabError
from ..core.intervals import Number
from .rules import Average, Region, Samples, changes, decide, missing, put_outside, undecide
from .verdict import Claim, Verdict, ours


class Claims:
    """The claims of one experiment, by label; each method decides one of them by one rule.

    All methods take the label first, and say in `what` what was measured. Values are an exact
    number, one value per replicate, or a mapping with one such sample per group (see `rules`).

    Args:
        claims: label to claim, as in `ABOUT.claims`; bare words are a claim of our own. A label is
            the claim's name inside its experiment ("4a"); the full id puts the experiment in front
            ("cgro/phases/4a").

    Example:
        from advlab.report import Claims, theorem
        claims = Claims({"4a": theorem("phase I ends before Lemma A.1's time")})
        verdict = claims.every("4a", [True] * 20, what="T_0 <= bound")
    """

    def __init__(self, claims: Mapping[str, Claim | str]):
        self.claims = {
            label: ours(claim) if isinstance(claim, str) else claim
            for label, claim in claims.items()
        }

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

    def equal(
        self,
        label: str,
        values: Samples,
        target: Number,
        tolerance: Number,
        *,
        what: str,
        statistic: Average = "mean",
    ) -> Verdict:
        """That a quantity is a number, up to a tolerance: the whole interval is that near to it.

        More data make it easier to pass if it is true, and impossible if it is not. Choose a
        tolerance that the plausible wrong answers miss.
        """
        words = f"is within {tolerance:.3g} of {target:.6g}"
        low, high = float(target) - float(tolerance), float(target) + float(tolerance)
        region = Region(words, low=low, high=high, closed=True)
        return decide(label, self._claim(label), values, region, what, statistic)

    def every(self, label: str, flags: Samples, *, what: str = "the claim") -> Verdict:
        """That something holds in each replicate: one counterexample refutes it.

        No number of replicates proves "always". If it holds in all of them it is supported where
        they are enough to say that it holds in at least 80 % (17 of one group are), and undecided
        where they are fewer. A bare flag is an exact yes or no.
        """
        region = Region(
            "holds in every replicate, a share of at least 80 %", low=0.8, closed=True, least=1.0
        )
        return decide(label, self._claim(label), flags, region, what, "share")

    def share(
        self, label: str, flags: Samples, at_least: Number, *, what: str = "the claim"
    ) -> Verdict:
        """That something holds in at least a share of the replicates that could be drawn.

        The claim's words must name the share: "in at least 80 % of runs".
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

    def outside(self, label: str, why: str) -> Verdict:
        """A claim about which the runs say nothing, as none meets its assumptions."""
        return put_outside(missing(label, self._claim(label), "no run is inside"), why)

    def _claim(self, label: str) -> Claim:
        if label not in self.claims:
            raise AdvlabError(f"the label of a claim: {', '.join(self.claims)}", repr(label))
        return self.claims[label]
