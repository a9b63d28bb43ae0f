"""High dimension without surrogate: same losses, larger gradient difference (Figure 9, A.4.1).

As Figure 3 with xi = 0 (no attack while theta = 0). The losses behave as with xi > 0, while the
gradients of adversarial and standard training differ more: near theta = 0 a positive xi shrinks the
attack to almost nothing. The runs of Figure 3 are here for that comparison.
"""

import altair as alt
import polars as pl

from .... import lab
from ....report import Verdict
from ._parts import high_dimension_runs
from ._parts.high_dimension_runs import Case as Case
from ._parts.high_dimension_runs import compute as _compute

ABOUT = lab.About(
    paper="generalization",
    item="Figure 9",
    title="High dimension, xi = 0: same losses, larger gradient difference",
    seconds={"smoke": 2, "laptop": 10, "paper": 12},
    claims={
        "generalization/10a/fig9": "adversarial training interpolates at xi = 0 too",
        "generalization/10b/fig9": "and its test risk is that of the zero model",
        "generalization/12a": "the gradient difference is smaller with xi = 0.5 than with xi = 0",
        "generalization/13a/fig9": "the stopping time is finite for every seed at xi = 0",
        "generalization/13b/fig9": "the residual falls at every step up to T at xi = 0",
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return high_dimension_runs.cases(scale, seeds, [(1000, 0.0), (1000, 0.5)])


def compute(case: Case) -> pl.DataFrame:
    return _compute(case)


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    return high_dimension_runs.panels(table.filter(xi=0.0))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    shown = table.filter(xi=0.0)
    id = "generalization/12a"
    return [
        *high_dimension_runs.interpolation_verdicts(shown, "/fig9"),
        high_dimension_runs.smaller_gap(id, ABOUT.claims[id], table, "xi", 0.5, 0.0),
        *high_dimension_runs.stopping_verdicts(shown, "/fig9"),
    ]
