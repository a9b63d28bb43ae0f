"""In high dimension lazy networks that interpolate predict no better than zero (Theorems 6 and 7).

Section A.4.2, Figure 13: "the adversarial testing loss are as higher than 1". The runs are those of
Figure 12. The risk of the zero model is v^2 = 1.1 with theta0 of length one, and 10.1 with the ten
ones that the text refers to.

Nearer to v^2 at d = 5000 (claim d) is true of the loss without attack. With eps = 0.1 two effects
of order n/d and eps sqrt(n/d) have opposite signs and nearly cancel at d = 1000, less so at 5000.
"""

import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical
from ....report.samples import changes, ends, groups
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
    item="Figure 13",
    title="Lazy networks in high dimension: test loss",
    seconds={"smoke": 4, "laptop": 30, "paper": 300},
    looks=2,
    claims={
        "a": empirical("the adversarial test loss ends within 5 % of v^2 = 1.1, so above 1"),
        "c": empirical("the adversarial test loss ends within 5 % of v^2 = 10.1"),
        "d": empirical(
            "the adversarial test loss is nearer to v^2 at d = 5000 than at d = 1000, for each "
            "network and eps"
        ),
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    tests = {"smoke": 500, "laptop": 2000, "paper": 10_000}[scale]
    replicates = seeds or {"smoke": 2, "laptop": 50, "paper": 100}[scale]
    settings = ((1000, UNIT), (1000, 1.0), (5000, UNIT))
    return high_dimension_recipe(scale, replicates, block=10, tests=tests, settings=settings)


def compute(case: Case) -> pl.DataFrame:
    return high_dimension_compute(case)


def figure(table: pl.DataFrame):
    return high_dimension_panels(table, "risk", "adversarial test loss", level="v2")


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return [conditions.high_dimension(int(table["n"][0]), int(table["d"].to_numpy().min()))]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = ends(table).with_columns(share=pl.col("risk") / pl.col("v2"))
    rows = rows.with_columns(apart=(pl.col("share") - 1).abs())
    unit, ones = (
        rows.filter(pl.col("d") == 1000, pl.col("entry") == entry) for entry in (UNIT, 1.0)
    )
    nearer = changes(rows.filter(pl.col("entry") == UNIT), "d", "apart", "activation", "radius")
    claims, by = Claims(ABOUT.claims), ("activation", "radius")
    share = "final test loss over v^2"
    return [
        claims.equal("a", groups(unit, "share", *by), 1.0, 0.05, what=share),
        claims.equal("c", groups(ones, "share", *by), 1.0, 0.05, what=share),
        claims.below("d", nearer, 0, what=f"change of the distance of {share} from 1"),
    ]
