"""High dimension without surrogate: losses as before, gradients differ more (Figure 9, A.4.1).

As Figure 3 with xi = 0 (no attack while theta = 0). The losses behave as with xi > 0, while the
gradients of adversarial and standard training differ more: near theta = 0 a positive xi shrinks the
attack to almost nothing. The runs of Figure 3 are here for that comparison.
"""

import altair as alt
import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical, ours
from ._parts import high_dimension_runs
from ._parts.high_dimension_runs import Case as Case
from ._parts.high_dimension_runs import compute as _compute

ABOUT = lab.About(
    paper="generalization",
    item="Figure 9",
    title="High dimension, xi = 0: same losses, larger gradient difference",
    seconds={"smoke": 2, "laptop": 10, "paper": 12},
    looks=1,
    claims={
        "10a": empirical(
            "adversarial training interpolates at d = 1000, xi = 0.0: its training loss ends below "
            "1 % of v^2"
        ),
        "10b": empirical(
            "and the adversarial test risk is that of the zero model at d = 1000, xi = 0.0, up to "
            "5 % of v^2"
        ),
        "12a": empirical("the gradient difference is smaller with xi = 0.5 than with xi = 0"),
        "13a": ours(
            "the stopping time T of Theorem 5, which asks for xi > 0, is finite for every seed "
            "with xi = 0 (and the residual stays below its level)"
        ),
        "13b": ours(
            "the residual |X theta - y| falls at every step up to T with xi = 0, where Theorem 5 "
            "says nothing"
        ),
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return high_dimension_runs.cases(scale, seeds, [(1000, 0.0), (1000, 0.5)])


def compute(case: Case) -> pl.DataFrame:
    return _compute(case)


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    return high_dimension_runs.panels(table.filter(xi=0.0))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, shown = Claims(ABOUT.claims), table.filter(xi=0.0)
    return [
        *high_dimension_runs.interpolation_verdicts(claims, shown),
        high_dimension_runs.smaller_gap(claims, "12a", table, "xi", 0.5, 0.0),
        *high_dimension_runs.stopping_verdicts(claims, shown),
    ]
