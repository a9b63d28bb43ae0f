"""Table 1: an L1 penalty for WideResNet34-10 on CIFAR-10, l2 attacks of 0.5.

Section 3.3. The paper prints, in per cent and with standard deviations, standard and adversarial
test accuracy of 84.346 (0.355) and 61.760 (0.204) without and 86.568 (0.214) and 63.072 (0.292)
with lambda = 1e-5. It does not print epochs or the number of runs: those of Figure 2 are taken,
and three pairs.

At laptop scale nothing is decided (`_parts/penalty_tables.py` says why). Paper scale expects a GPU,
with about three days of one per pair.
"""

import polars as pl

from .... import lab
from ....report import Verdict
from ....report.charts import AnyChart
from ._parts import penalty_tables
from ._parts.wide_resnet_runs import Case as Case
from ._parts.wide_resnet_runs import compute as compute

ABOUT = penalty_tables.about("Table 1", "l2 attacks of 0.5", (2.222, 1.312))


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    return penalty_tables.recipe(scale, seeds, norm="l2", radius=0.5)


def figure(table: pl.DataFrame) -> AnyChart:
    printed = {"no penalty": (84.346, 61.760), "L1 penalty": (86.568, 63.072)}
    return penalty_tables.figure(table, printed)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return penalty_tables.verdicts(table, ABOUT.claims)
