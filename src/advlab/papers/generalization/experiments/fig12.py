"""In high dimension lazy networks interpolate under attack as fast as without (Theorems 6 and 7).

Section A.4.2, Figure 12: "For all three neural networks, the adversarial training loss decreases as
fast as standard loss". n = 20, d = 1000, sigma2 = 0.1, h = 50, h^delta = d^0.6, xi = 0.1.
theta0 has ten entries 1/sqrt(10), so v^2 = 1.1, which fits the printed test loss near 1. With the
ten ones that the text refers to (v^2 = 10.1) a sigmoid network of this width cannot even reach the
answers: |f| <= sum |a_j| / (2 sqrt(h)), about 1.8.

Speed is judged by the area under a loss curve. Step by step the curves part a little in their tail:
at eps = 0.1 and 1 % of v^2 the ReLU networks' losses differ by about a tenth, a seventh of a step.
"""

import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical
from ....report.samples import ends, groups
from ._parts import assumptions as conditions
from ._parts.lazy_runs import (
    UNIT,
    high_dimension_compute,
    high_dimension_panels,
    high_dimension_recipe,
)
from ._parts.lazy_runs import HighDimensionCase as Case

ABOUT = lab.About(
    paper="generalization",
    item="Figure 12",
    title="Lazy networks in high dimension: training loss",
    seconds={"smoke": 3, "laptop": 15, "paper": 20},
    looks=2,
    claims={
        "a": empirical(
            "the adversarial training loss falls as fast as the standard one: the areas under the "
            "curves differ by at most 5 %"
        ),
        "b": empirical(
            "all three networks interpolate in 100 iterations, v^2 = 1.1: less than 1 % of v^2 is "
            "left"
        ),
        "c": empirical(
            "all three networks interpolate in 100 iterations, v^2 = 10.1: less than 1 % of v^2 is "
            "left"
        ),
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    replicates = seeds or {"smoke": 2, "laptop": 100, "paper": 100}[scale]
    return high_dimension_recipe(
        scale, replicates, block=25, tests=0, settings=((1000, UNIT), (1000, 1.0))
    )


def compute(case: Case) -> pl.DataFrame:
    return high_dimension_compute(case)


def figure(table: pl.DataFrame):
    # On a log axis of iterations: most of the fall is in the first ten.
    return high_dimension_panels(
        table.filter(pl.col("step") > 0), "loss", "training loss", log_x=True
    )


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return [conditions.high_dimension(int(table["n"][0]), int(table["d"].to_numpy().min()))]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = table.with_columns(share=pl.col("loss") / pl.col("v2"))
    unit, ones = (rows.filter(pl.col("entry") == entry) for entry in (UNIT, 1.0))
    claims, by = Claims(ABOUT.claims), ("activation", "radius")
    area = "area under the adversarial over that under the standard loss curve"
    share = "final training loss over v^2"
    return [
        claims.equal("a", groups(_areas(unit), "ratio", *by), 1.0, 0.05, what=area),
        claims.below("b", groups(ends(unit), "share", *by), 0.01, what=share),
        claims.below("c", groups(ends(ones), "share", *by), 0.01, what=share),
    ]


def _areas(rows: pl.DataFrame) -> pl.DataFrame:
    """For each attacked run, the area under its loss curve over the standard one of its seed."""
    # A loss that does not fall to half has no speed.
    fell = pl.col("loss").last() < pl.col("loss").first() / 2
    area = (
        rows.sort("step")
        .group_by("activation", "radius", "seed", maintain_order=True)
        .agg(area=pl.when(fell).then(pl.col("loss").sum()))
    )
    standard = area.filter(pl.col("radius") == 0).select("activation", "seed", standard="area")
    attacked = area.filter(pl.col("radius") > 0).join(
        standard, on=["activation", "seed"], maintain_order="left"
    )
    return attacked.with_columns(ratio=pl.col("area") / pl.col("standard"))
