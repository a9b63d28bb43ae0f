"""Figure 15: Figure 4 in linf balls of radius 0.3, with the surrogate, xi = 1e-4.

Section 4 and appendix A.5: the L1 penalty helps against linf attacks too, although the worst case
in linf itself adds an l1 term (Remark 4). The surrogate shrinks each pixel's move by
|g_i| / (|g_i| + xi).

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
    "Figure 15", "L1 penalty on few samples, linf attacks with a surrogate", "linf"
)


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    return penalty_runs.recipe(scale, seeds, norm="linf", radius=0.3, xi=1e-4)


def figure(table: pl.DataFrame) -> AnyChart:
    return penalty_runs.figure(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return penalty_runs.verdicts(table, ABOUT.claims)
