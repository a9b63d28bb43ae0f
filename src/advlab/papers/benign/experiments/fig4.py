"""Figure 4: phase transitions of clean and robust accuracy on MNIST.

Clean and robust accuracy over ||mu|| from 0.1 to 2 and d from 25 to 784 pixels, at ratio
alpha/||mu|| = 0.3, averages of ten runs. The paper sees the transition of clean accuracy at d
around ||mu||^4 and that of robust accuracy at d around ||mu||^2 (Appendix A). The exponents are
fitted here to the contour at accuracy 0.8, by the rules of Figure 1.

Vectors of a chosen length are a problem without scale (see `mnist_runs`), so where accuracy rises
can only depend on how far training comes from its start. A rule of thumb, from the tangent kernel
at PyTorch's start: outputs move at a rate proportional to ||mu||^2 (1 + m/d), the first part by the
hidden layer and the second by the top one, whose features have size ||mu||/sqrt(d); until they have
moved enough, the network answers with the more frequent class. Then both contours are ||mu||^2 ~
d/(d + m): with m = 1000 an exponent of 2 for small d, and of 2.4 fitted from d = 25 to 784.

At laptop scale training stops after 250 steps, and the grid is coarser. That moves the contour to
larger ||mu||, by about sqrt(55/25) (rate times steps), and by the rule above not its exponent.

At smoke scale, without the MNIST files, a stand-in is drawn: two classes of smooth blobs, left and
right.
"""

from typing import Any

import numpy as np
import polars as pl

from .... import lab
from ....data import zeros_and_ones
from ....report import Assumption, Claims, Verdict, empirical
from ....report.charts import AnyChart, heat, panels
from ....report.samples import groups
from ._parts import mnist_runs
from ._parts.contours import LEVEL, NEAR, crossings, drawn, exponents, first_colour
from ._parts.mnist_runs import SIDES
from ._parts.mnist_runs import Case as Case
from ._parts.mnist_runs import compute as compute

ABOUT = lab.About(
    paper="benign",
    item="Figure 4",
    title="Phase transitions of clean and robust accuracy on MNIST",
    seconds={"smoke": 4, "laptop": 840, "paper": 23000},
    data=("mnist",),
    looks=2,
    reduced={
        "laptop": "250 of 1000 steps and a coarser grid; it says nothing about the paper's 1000 "
        "steps, which move the contour"
    },
    claims={
        "a": empirical(
            "On MNIST clean accuracy is higher at the largest ||mu|| than at the smallest, at "
            "every dimension"
        ),
        "b": empirical(
            "On MNIST robust accuracy is higher at the largest ||mu|| than at the smallest, at "
            "every dimension"
        ),
        "c": empirical(
            "On MNIST clean accuracy has its transition near d ~ ||mu||^4: an exponent within 0.5 "
            "of 4"
        ),
        "d": empirical(
            "On MNIST robust accuracy has its transition near d ~ ||mu||^2: an exponent within 0.5 "
            "of 2"
        ),
        "e": empirical(
            "On MNIST the transition of robust accuracy has a smaller exponent than that of clean"
        ),
    },
)
RATIO = 0.3
MAPS = {
    "clean_accuracy": "Clean accuracy",
    "robust_accuracy": "Robust accuracy under PGD (upper bound)",
}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    lengths, sides, usual, block, more = {
        "smoke": ((0.5, 1.0, 2.0), (5, 10, 28), 3, 3, _SMOKE),
        "laptop": ((0.1, 0.25, 0.5, 0.8, 1.3, 2.0), (5, 10, 17, 28), 10, 1, {"steps": 250}),
        "paper": (_LENGTHS, SIDES, 10, 1, {}),
    }[scale]
    settings = [(mu, side, RATIO) for mu in lengths for side in sides]
    return mnist_runs.recipe(scale, settings, seeds or usual, block, **more)


_SMOKE = {"n": 20, "width": 20, "steps": 20, "tested": 100}
_LENGTHS = tuple(k / 10 for k in range(1, 21))


def figure(table: pl.DataFrame) -> AnyChart:
    first = first_colour(table, "mu_norm", "d", *MAPS)
    maps = [
        heat(
            table,
            "mu_norm",
            "d",
            value,
            domain=(first, 1.0),
            lines=drawn(_contour(table, value)),
            title=title,
            x_title="||mu||",
            value_title="accuracy",
            log_x=True,
            log_y=True,
        )
        for value, title in MAPS.items()
    ]
    title = f"{zeros_and_ones.TITLES[table['source'][0]]}, alpha = {RATIO:g} ||mu||"
    return panels(maps, title=title, columns=2)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return mnist_runs.reached(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    rises = {value: _rises(table, value) for value in MAPS}
    clean, robust = (_powers(table, value) for value in MAPS)
    rise = "accuracy at the largest ||mu|| less that at the smallest"
    exponent = f"exponent of the contour at accuracy {LEVEL:g}"
    found = [
        claims.above("a", rises["clean_accuracy"], 0, what=f"clean {rise}"),
        claims.above("b", rises["robust_accuracy"], 0, what=f"robust {rise}"),
        claims.equal("c", clean, 4, NEAR, what=f"clean {exponent}"),
        claims.equal("d", robust, 2, NEAR, what=f"robust {exponent}"),
        claims.below("e", robust - clean, 0, what=f"robust less clean {exponent}"),
    ]
    return mnist_runs.with_note(table, found)


def _contour(table: pl.DataFrame, value: str) -> pl.DataFrame:
    mean = table.group_by("mu_norm", "d").agg(pl.col(value).mean()).with_columns(seed=0)
    found = crossings(mean, "mu_norm", "d", value).sort("d")
    return found.with_columns(line=pl.lit(f"measured, at {LEVEL:g}"))


def _rises(table: pl.DataFrame, value: str) -> dict[str, Any]:
    """For each d and seed, from the smallest ||mu|| to the largest."""
    by = table.sort("mu_norm").group_by("d", "seed", maintain_order=True)
    return groups(by.agg(rise=pl.col(value).last() - pl.col(value).first()).sort("d"), "rise", "d")


def _powers(table: pl.DataFrame, value: str) -> np.ndarray:
    """The p of d ~ ||mu||^p along the contour, of each seed."""
    power = exponents(crossings(table, "mu_norm", "d", value), "mu_norm", "d")
    return np.array([power.get(seed, np.nan) for seed in sorted(table["seed"].unique())])
