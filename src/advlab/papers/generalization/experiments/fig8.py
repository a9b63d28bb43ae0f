"""Figure 8: how far apart two attacks from random starts end, at a small and at a large eps.

Appendix A.3: during adversarial training of WideResNet34-1 on CIFAR-10 in l2 balls, the distance of
two PGD-5 answers (steps of 2 eps/5) from random starts. At eps = 0.5 it is about 0.16 to 0.17; at
eps = 3 it grows to 1.5. Both the distance and the distance over eps are larger at the larger eps,
which the paper reads as a loss that is harder to differentiate there.

At laptop scale the larger eps is 2 and the network small (`_parts/wide_resnet_runs.py`); runs with
xi = 0 at eps = 2 are those of Figure 2. The comparison of two radii needs networks that learned
something at both: otherwise it is outside. Beside the attacks' distance stands that of two random
points of the ball, which an attack that does nothing would have. Paper scale is the paper's (a GPU
is expected, with about a day of one for three runs).
"""

import math
from typing import Any

import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, ours, sample
from ....report.charts import AnyChart, curves, panels
from ._parts import wide_resnet_runs as runs
from ._parts.wide_resnet_runs import Case as Case
from ._parts.wide_resnet_runs import compute as compute

ABOUT = lab.About(
    paper="generalization",
    item="Figure 8",
    title="The distance of two attacks from random starts",
    seconds={"smoke": 5, "laptop": 320, "paper": 100000},
    looks=1,
    data=("cifar10",),
    reduced={"laptop": runs.REDUCED.format(9, 100)},
    claims={
        "a": empirical("over eps, the distance at the end is larger at the larger eps", "learned"),
        "b": empirical("at the larger eps the distance grows over training", "learned"),
        "c": empirical("at eps = 0.5 the distance at the end is between 0.16 and 0.17", "learned"),
        "d": ours("attacks from two starts end nearer to each other than two random points of "
                  "the ball, at each eps: they share a direction", "learned"),
    },
)  # fmt: skip
SMALL = 0.5


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    usual, large, settings = {
        "smoke": (2, 2.0, runs.SMOKE),
        "laptop": (5, 2.0, {}),
        "paper": (3, 3.0, runs.PAPER),
    }[scale]
    return runs.cases(seeds or usual, [{"radius": SMALL}, {"radius": large}], **settings)


def figure(table: pl.DataFrame) -> AnyChart:
    shown = table.with_columns(
        eps=pl.col("radius").map_elements(lambda one: f"{one:g}", return_dtype=pl.String)
    )
    x: dict[str, Any] = {"x_title": "epoch", "apart": True}
    top = {
        name: math.ceil(2 * table.select(pl.col(name).max()).item()) / 2
        for name in ("difference", "relative", "random")
    }
    # In units of eps: one axis, up to the distance of random points.
    ends = 0.0, max(top["relative"], top["random"])
    charts = [
        curves(shown, "step", "difference", "eps", title="attack difference",
               y_title="||A_1 - A_2||", y_domain=(0.0, top["difference"]), **x),
        curves(shown, "step", "relative", "eps", title="relative attack difference",
               y_title="||A_1 - A_2|| / eps", y_domain=ends, **x),
        curves(shown, "step", "random", "eps", title="two random points of the ball",
               y_title="distance / eps", y_domain=ends, **x),
    ]  # fmt: skip
    return panels(charts)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Whether every network learned something."""
    return [runs.learned(table)]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    small = pl.col("radius") == SMALL
    last = table.filter(pl.col("step") == pl.col("steps"))
    pairs = last.filter(~small).join(last.filter(small), on="seed", suffix=" small")
    larger = pairs.select("seed", more=pl.col("relative") - pl.col("relative small"))
    grown = (
        table.filter(~small).sort("step").group_by("seed")
        .agg(growth=pl.col("difference").last() - pl.col("difference").first())
    )  # fmt: skip
    nearer = last.with_columns(nearer=pl.col("random") - pl.col("relative"))
    found = [
        claims.above("a", sample(larger, "more"), 0,
            what="distance over eps at the end, less that at eps = 0.5, in pairs,"),
        claims.above("b", sample(grown, "growth"), 0,
            what="distance at the last snapshot less that at the first"),
        claims.within("c", sample(last.filter(small), "difference"), 0.16, 0.17,
            what="distance at the end"),
        claims.above("d", sample(nearer, "nearer", by="radius"), 0,
            what="distance of two random points over eps, less that of two attacks, at the end,"),
    ]  # fmt: skip
    return runs.with_note(table, found)
