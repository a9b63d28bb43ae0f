"""Figure 5: on MNIST, does a larger dimension need a smaller attack for the same robust accuracy?

Robust accuracy over d from 25 to 784 pixels and ratio alpha/||mu|| from 0.05 to 0.45, at
||mu|| = 5, averages of five runs. The paper: "We see a similar trend as in Figure 3", where the
ratio falls along each contour as d rises (Appendix A). Lines: measured contours.

There the noise of the mixture grows with d. Here more pixels show the same image, at the same
length, so nothing says that it must become harder.

At laptop scale the width is 200 and training stops after 250 of 1000 steps, on a coarser grid,
which favours the claim: the largest images learn slowest. The smallest contour taken, 0.7, is well
above 0.537, the share of ones, which a constant answer has.

At smoke scale, without the MNIST files, a stand-in is drawn: two classes of smooth blobs, left and
right.
"""

import polars as pl

from .... import lab
from ....data import zeros_and_ones
from ....report import Assumption, Claims, Verdict, empirical
from ....report.charts import AnyChart, heat
from ._parts import mnist_runs
from ._parts.contours import LEVEL, crossings, drawn, first_colour, ranks
from ._parts.mnist_runs import SIDES
from ._parts.mnist_runs import Case as Case
from ._parts.mnist_runs import compute as compute

ABOUT = lab.About(
    paper="benign",
    item="Figure 5",
    title="Robust accuracy on MNIST over dimension and attack",
    seconds={"smoke": 4, "laptop": 80, "paper": 5300},
    data=("mnist",),
    looks=2,
    reduced={
        "laptop": "width 200 of 1000, 250 of 1000 steps and a coarser grid; it says nothing about "
        "the paper's width and steps"
    },
    claims={
        "18": empirical(
            "Along the contours of robust accuracy 0.7, 0.8 and 0.9 on MNIST the ratio falls as d "
            "rises, as in Figure 3: rank correlations below -0.8"
        ),
    },
)
MU = 5.0
LEVELS = (0.7, 0.8, 0.9)
RATIOS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    sides, ratios, usual, block, more = {
        "smoke": ((5, 10, 28), (0.05, 0.25, 0.45), 3, 3, _SMOKE),
        "laptop": ((5, 7, 10, 17, 28), _LAPTOP, 5, 5, {"width": 200, "steps": 250}),
        "paper": (SIDES, RATIOS, 5, 1, {}),
    }[scale]
    settings = [(MU, side, ratio) for side in sides for ratio in ratios]
    return mnist_runs.recipe(scale, settings, seeds or usual, block, **more)


_SMOKE = {"n": 20, "width": 20, "steps": 20, "tested": 100}
_LAPTOP = (0.05, 0.2, 0.3, 0.35, 0.4, 0.45)


def figure(table: pl.DataFrame) -> AnyChart:
    mean = table.group_by("d", "ratio").agg(pl.col("robust_accuracy").mean()).with_columns(seed=0)
    lines = [
        crossings(mean, "ratio", "d", "robust_accuracy", level)
        .sort("d")
        .with_columns(line=pl.lit(f"measured, at {level:g}"))
        # 0.8 first: it has the colour that it has in the other figures.
        for level in sorted(LEVELS, key=lambda level: abs(level - LEVEL))
    ]
    return heat(
        table,
        "d",
        "ratio",
        "robust_accuracy",
        domain=(first_colour(table, "d", "ratio", "robust_accuracy"), 1.0),
        lines=drawn(pl.concat(lines)),
        title=f"{zeros_and_ones.TITLES[table['source'][0]]}: robust accuracy "
        f"under PGD (upper bound), ||mu|| = {MU:g}",
        y_title="alpha/||mu||",
        value_title="accuracy",
        log_x=True,
    )


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return mnist_runs.reached(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    correlations = {
        f"accuracy {level:g}": ranks(table, "ratio", "d", "robust_accuracy", level)
        for level in LEVELS
    }
    what = "Spearman correlation of d and the ratio on the contour"
    found = Claims(ABOUT.claims).below("18", correlations, -0.8, what=what)
    return mnist_runs.with_note(table, [found])
