"""Figure 4: an L1 penalty on the weights helps adversarial training of a network on few samples.

MNIST 0 against 1, l2 attacks of radius 3 on pixels in [0, 1], surrogate with xi = 1e-4. The paper
shows box plots of standard (upper) and adversarial (lower) test accuracy over 30 runs and n from 10
to 1000: the penalty of lambda = 0.001 raises the adversarial one, both have about 99 % standard
accuracy, and all training accuracies, clean and attacked, reach 100 % (section 3.3).

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

ABOUT = penalty_runs.about("Figure 4", "L1 penalty in adversarial training on few samples", "l2")


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    return penalty_runs.recipe(scale, seeds, norm="l2", radius=3.0, xi=1e-4)


def figure(table: pl.DataFrame) -> AnyChart:
    return penalty_runs.figure(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return penalty_runs.verdicts(table, ABOUT.claims)
