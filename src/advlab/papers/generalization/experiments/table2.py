"""Table 2: an L1 penalty for WideResNet34-10 on CIFAR-10, linf attacks of 8/255.

Section 4. The paper prints, in per cent and with standard deviations, standard and adversarial
test accuracy of 82.870 (0.131) and 50.338 (0.315) without and 84.800 (0.282) and 54.260 (0.376)
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

ABOUT = penalty_tables.about("Table 2", "linf attacks of 8/255", (1.93, 3.922))


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    return penalty_tables.recipe(scale, seeds, norm="linf", radius=8 / 255)


def figure(table: pl.DataFrame) -> AnyChart:
    printed = {"no penalty": (82.870, 50.338), "L1 penalty": (84.800, 54.260)}
    return penalty_tables.figure(table, printed)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return penalty_tables.verdicts(table, ABOUT.claims)
