"""Two models on the same examples, row by row: which is more robust, and is it more than chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.display import html_table
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..core.intervals import CONFIDENCE, clopper_pearson
from .evaluation import Evaluation
from .outcomes import CERTIFIED, STANDING

States = Sequence[str]
"""Per row "clean", the attack that broke it, "certified", or "" where neither is known."""


@dataclass(frozen=True)
class Comparison:
    """What became of each example under two models, A and B.

    Rows that only one of the two loses tell them apart. `difference` is the robust error of A less
    that of B by the same attacks: each of the two is a LOWER bound, so the difference of lower
    bounds is no bound itself; `bracket` is where the true difference on these examples must lie.
    """

    n: int
    both: int
    """Rows broken under both models."""
    only_a: tuple[int, ...]
    """Rows broken under A alone."""
    only_b: tuple[int, ...]
    neither: int
    difference: float
    interval: tuple[float, float]
    """Of the difference, at least at 95 %, for the population that the rows were drawn from."""
    bracket: tuple[float, float]
    """From (A at least - B at most) to (A at most - B at least)."""
    p_value: float
    """McNemar's exact test that rows are lost by A alone and by B alone equally often."""

    def numbers(self) -> dict[str, Any]:
        """Everything as plain numbers and lists, for JSON."""
        return {**vars(self), "only_a": list(self.only_a), "only_b": list(self.only_b)}

    def __str__(self) -> str:
        low, high = self.interval
        return "\n".join(
            [
                f"{self.n} examples under both models",
                f"broken: both {self.both}, only A {len(self.only_a)}, only B {len(self.only_b)}, "
                f"neither {self.neither}",
                f"robust error by attack, A less B: {self.difference:+.4f} ({low:+.4f} to "
                f"{high:+.4f}), p = {self.p_value:.3g}",
                f"true difference on these examples: between {self.bracket[0]:+.4f} and "
                f"{self.bracket[1]:+.4f}",
                self.verdict,
            ]
        )

    @property
    def verdict(self) -> str:
        """One sentence: proved, likely, or open."""
        more, less = ("B", "A") if self.difference > 0 else ("A", "B")
        if self.bracket[0] > 0 or self.bracket[1] < 0:
            more, less = ("B", "A") if self.bracket[0] > 0 else ("A", "B")
            return f"{more} is more robust than {less} on these examples: proved"
        if self.p_value < 1 - CONFIDENCE:
            return f"the attacks break {less} more often than {more}, beyond chance"
        return "these examples do not tell the two apart"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows = {
            "broken under both": self.both,
            "only under A": len(self.only_a),
            "only under B": len(self.only_b),
            "under neither": self.neither,
            "A less B, by attack": f"{self.difference:+.4f} ({self.interval[0]:+.4f} to "
            f"{self.interval[1]:+.4f})",
            "A less B, true": f"{self.bracket[0]:+.4f} to {self.bracket[1]:+.4f}",
        }
        return html_table(f"Comparison, {self.n} examples", rows, (self.verdict,))


def compare(a: Given[Evaluation], b: Given[Evaluation]) -> Comparison:
    """Two evaluations of the same examples in the same threat set, row by row.

    Args:
        a: the evaluation of model A, by `advlab.evaluate`.
        b: that of model B, on the same rows in the same order, with the same threat set.

    Returns:
        A `Comparison`: which rows only one of them loses, the difference of robust errors with its
        interval, and where the true difference must lie.

    Example:
        import advlab
        a, b = (advlab.evaluate(model, x, y, ball) for model in (first, second))
        print(advlab.compare(a, b))
    """
    for one in (a, b):
        if not isinstance(one, Evaluation):
            advice = "for example compare(evaluate(a, x, y, ball), evaluate(b, x, y, ball))"
            raise AdvlabError("two evaluations", f"{one!r:.60}", advice)
    if a.threat != b.threat:
        raise AdvlabError("evaluations in one threat set", f"{a.threat} and {b.threat}")
    return compare_states(a.broken_by, b.broken_by)


def compare_states(a: States, b: States) -> Comparison:
    """The comparison of what became of the same rows under two models.

    Args:
        a: per row of A, as `Evaluation.broken_by`.
        b: the same of B.
    """
    if len(a) != len(b) or len(a) == 0:
        raise AdvlabError("evaluations of the same examples", f"{len(a)} and {len(b)} rows")
    lost_a, lost_b = _broken(a), _broken(b)
    pairs = list(zip(lost_a, lost_b, strict=True))
    only_a = tuple(row for row, (one, other) in enumerate(pairs) if one and not other)
    only_b = tuple(row for row, (one, other) in enumerate(pairs) if other and not one)
    both, n = sum(one and other for one, other in pairs), len(pairs)
    at_most = [sum(state != CERTIFIED for state in one) / n for one in (a, b)]
    at_least = [sum(lost_a) / n, sum(lost_b) / n]
    return Comparison(
        n=n,
        both=both,
        only_a=only_a,
        only_b=only_b,
        neither=n - both - len(only_a) - len(only_b),
        difference=(len(only_a) - len(only_b)) / n,
        interval=_interval(len(only_a), len(only_b), n),
        bracket=(at_least[0] - at_most[1], at_most[0] - at_least[1]),
        p_value=_mcnemar(len(only_a), len(only_b)),
    )


def _broken(states: States) -> list[bool]:
    return [state not in (CERTIFIED, STANDING) for state in states]


def _mcnemar(only_a: int, only_b: int) -> float:
    from scipy.stats import binomtest

    apart = only_a + only_b
    return 1.0 if apart == 0 else float(binomtest(only_a, apart, 0.5).pvalue)


def _interval(only_a: int, only_b: int, n: int) -> tuple[float, float]:
    """An interval of p_A - p_B from exact ones for the two shares, each at 97.5 %, so that both
    hold together at 95 % (Bonferroni)."""
    level = 1 - (1 - CONFIDENCE) / 2
    (low_a, high_a), (low_b, high_b) = (clopper_pearson(k, n, level) for k in (only_a, only_b))
    return low_a - high_b, high_a - low_b
