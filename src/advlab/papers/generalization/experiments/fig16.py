"""Figure 16: Figure 4 in linf balls of radius 0.3, with the attack itself, xi = 0.

Section 4 and appendix A.5: the L1 penalty helps against linf attacks without the surrogate's
shrinking too.

At laptop scale width and epochs are those of the paper, with three replicates per setting and n up
to 200: the comparison is paired and asks for a sign, which five n decide; the spread of 30 runs and
the largest n are left to paper scale (a GPU is expected, with a day of one). The setting and what
was chosen here: `_parts/penalty_runs.py`.
"""

import polars as pl

from .... import lab
from ....report import Verdict
from ....report.charts import AnyChart
from ._parts import penalty_runs
from ._parts.penalty_runs import Case as Case
from ._parts.penalty_runs import compute as compute

ABOUT = penalty_runs.about(
    "Figure 16", "L1 penalty on few samples, linf attacks without a surrogate", "linf"
)


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    return penalty_runs.recipe(scale, seeds, norm="linf", radius=0.3, xi=0.0)


def figure(table: pl.DataFrame) -> AnyChart:
    return penalty_runs.figure(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return penalty_runs.verdicts(table, ABOUT.claims)
