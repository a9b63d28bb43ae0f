"""Higher dimension: adversarial gets closer to standard training (Figure 10, Appendix A.4.1).

As Figure 3 with d = 5000 and eta = 0.0002. Interpolation is tighter than at d = 1000, and the
gradients of adversarial and standard training differ less. The d = 1000 runs are here to compare.

That the test risk is nearer to v^2 at d = 5000 is true at eps = 0 and 0.01. At eps = 0.1 the gain
from fitting (of order n/d) and the cost of the attack (eps sqrt(n/d)) have opposite signs.
"""

import altair as alt
import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical
from ._parts import high_dimension_runs
from ._parts.high_dimension_runs import Case as Case
from ._parts.high_dimension_runs import compute as _compute

ABOUT = lab.About(
    paper="generalization",
    item="Figure 10",
    title="d = 5000, xi = 0.5: closer to standard training",
    seconds={"smoke": 4, "laptop": 10, "paper": 40},
    looks=1,
    claims={
        "10a": empirical(
            "adversarial training interpolates at d = 5000, xi = 0.5: its training loss ends below "
            "1 % of v^2"
        ),
        "10b": empirical(
            "and the adversarial test risk is that of the zero model at d = 5000, xi = 0.5, up to "
            "5 % of v^2"
        ),
        "10c": empirical("the training loss is smaller at d = 5000 than at d = 1000, at each eps"),
        "10d": empirical(
            "the test risk is nearer to v^2 at d = 5000 than at d = 1000, at each eps"
        ),
        "12b": empirical("the gradient difference is smaller at d = 5000 than at d = 1000"),
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return high_dimension_runs.cases(scale, seeds, [(1000, 0.5), (5000, 0.5)])


def compute(case: Case) -> pl.DataFrame:
    return _compute(case)


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    return high_dimension_runs.panels(table.filter(d=5000))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    return [
        *high_dimension_runs.interpolation_verdicts(claims, table.filter(d=5000)),
        *high_dimension_runs.dimension_verdicts(claims, table),
        high_dimension_runs.smaller_gap(claims, "12b", table, "d", 5000, 1000),
    ]
