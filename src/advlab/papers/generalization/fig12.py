"""In high dimension lazy networks interpolate under attack as fast as without (Theorems 6 and 7).

Section A.4.2, Figure 12: "For all three neural networks, the adversarial training loss decreases as
fast as standard loss". n = 20, d = 1000, sigma2 = 0.1, h = 50, h^delta = d^0.6, xi = 0.1.
theta0 has ten entries 1/sqrt(10), so v^2 = 1.1, which fits the printed test loss near 1. With the
ten ones that the text refers to (v^2 = 10.1) a sigmoid network of this width cannot even reach the
answers: |f| <= sum |a_j| / (2 sqrt(h)), about 1.8.
"""

import polars as pl

from ... import lab
from ...report import Verdict, below
from .lazy_nets import UNIT, changes, ends, groups, high_compute, high_panels, high_recipe
from .lazy_nets import HighCase as Case

ABOUT = lab.About(
    paper="generalization",
    item="Figure 12",
    title="Lazy networks in high dimension: training loss",
    seconds={"smoke": 3, "laptop": 15, "paper": 40},
    claims={
        "generalization/fig12a": "the adversarial training loss falls as fast as the standard one",
        "generalization/fig12b": "all three networks interpolate in 100 iterations, v^2 = 1.1",
        "generalization/fig12c": "all three networks interpolate in 100 iterations, v^2 = 10.1",
        "generalization/fig12d": "the sigmoid network is nearer to interpolation at d = 5000",
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return high_recipe(scale, seeds or {"smoke": 2, "laptop": 20, "paper": 100}[scale], tests=0)


def compute(case: Case) -> pl.DataFrame:
    return high_compute(case)


def figure(table: pl.DataFrame):
    return high_panels(table, "loss", "adversarial training loss")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = table.with_columns(share=pl.col("loss") / pl.col("v2"))
    unit, ones = (
        rows.filter(pl.col("d") == 1000, pl.col("entry") == entry) for entry in (UNIT, 1.0)
    )
    sigmoid = ends(rows).filter(pl.col("entry") == UNIT, pl.col("activation") == "sigmoid")
    say, by = list(ABOUT.claims.items()), ("activation", "radius")
    share = "final training loss over v^2"
    return [
        below(*say[0], groups(_slower(unit), "slower", *by), 0.1, what="largest relative "
              "difference of the two loss curves, while the standard one is above 1 % of v^2,"),
        below(*say[1], groups(ends(unit), "share", *by), 0.01, what=share),
        below(*say[2], groups(ends(ones), "share", *by), 0.01, what=share),
        below(*say[3], changes(sigmoid, "d", "share", "radius"), 0, what=f"change of {share}"),
    ]  # fmt: skip


def _slower(rows: pl.DataFrame) -> pl.DataFrame:
    """For each attacked run, how far its loss curve is from the standard one of its seed."""
    keys = ["activation", "seed", "step"]
    standard = rows.filter(pl.col("radius") == 0, pl.col("share") > 0.01)
    pairs = rows.filter(pl.col("radius") > 0).join(
        standard.select(*keys, standard="loss"), on=keys, maintain_order="left"
    )
    apart = (pl.col("loss") / pl.col("standard") - 1).abs().max()
    return pairs.group_by("activation", "radius", "seed", maintain_order=True).agg(slower=apart)
