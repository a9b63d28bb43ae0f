"""Theorem 5.3 with networks that are trained: what width CGRO takes, and what robustness.

Theorem 5.3: on the points (x, h phi(x)), x in a 2 delta-packing of a slice, n = exp(Omega(D)) of
them, and phi arbitrary, networks with fewer than M_D = exp(Omega(D)) parameters have a robust error
of Omega(1), though x_D is right on all points; and section 5 puts a CGRO classifier, at
poly(D) + O~(N D) parameters, far below. `exponential_lower_bound` computes M_D, and nothing is
trained there. Here two-layer ReLU networks are, by Adam (rate 0.02, 1000 steps) against PGD with 5
steps; x runs over the n = 2^(D-1) corners of a cube, phi is a fair coin, delta = 0.3, h = 0.28.

- One width, 2D, that is 2D (D + 2) + 1 parameters, for D = 8, 9, 10, and two training sets: N = 8D
  of the points, or all n. Is a sample solved, clean and attacked, where all points are not? The
  robust error of a distribution is that of all its points: training on all of them asks whether the
  width is enough, and not whether the sample is. Half of the balls whose coins were not seen are
  lost by any function, on average, at the point of the slice; robust overfitting is the gap to
  those of the sample.
- The least width that keeps 90 % of all balls (mu = 0.1), for D = 5 to 8, between widths that are
  powers of two, by interpolation in the logarithm. The theorem's order, (n/log n)^(1/4), asks for
  a factor of 2^(1/4) per dimension.

Broken balls are a LOWER bound of those that can be: PGD with 30 steps and 3 restarts, a step of
delta against x_D, and the point of the slice. So an error that is found is there, and a least width
is a lower bound of that for this training. No training proves that a narrower network cannot
do it: widths are what training finds, not what exists. At these D the proved M_D is 2, which any
network has: it is drawn, dashed, beside the parameters that training took, and decides nothing.
"""

from typing import Literal

import numpy as np
import polars as pl
from pydantic import PositiveFloat, PositiveInt

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, empirical, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import groups
from ....threats import Ball
from .. import theory
from ._parts.packing_runs import Rngs, broken, lifted_packings, trained, wrong

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 5.3, trained",
    title="The width that CGRO takes, and that robustness takes",
    seconds={"smoke": 4, "laptop": 60, "paper": 1500},
    looks=1,
    claims={
        "train": empirical("At width 2D, fewer than 2 % of the balls of a sample of 8D points are "
                           "broken by the attacks tried", "height"),
        "clean": empirical("its clean error on unseen points is below 10 %", "height"),
        "gap": empirical("and of their balls the share that is broken is larger than of the "
                         "sample's, by more than 1/2", "height"),
        "test": theorem("At least half of the unseen balls are broken, on average, as by a step to "
                        "the slice of any function that has not seen their coins", "height"),
        "all": empirical("Trained on all points, the same width loses at least 10 % more of "
                         "their balls than of a sample's, at D = 9 and 10", "height"),
        "more": empirical("and more with each further dimension", "height"),
        "order": ours("The least width that keeps 90 % of all balls grows by at least 2^(1/4) per "
                      "dimension, the order of M_D", "height"),
        "points": ours("and by at least 2^(1/2): faster than the square root of the number of "
                       "points"),
    },
)  # fmt: skip
NAME, LADDER_NAME = "cgro/trained lower bound, new draws", "cgro/trained lower bound decisive"
DELTA, HEIGHT, MU = 0.3, 0.28, 0.1
LADDER = {5: (1, 2, 4, 8), 6: (2, 4, 8, 16), 7: (4, 8, 16, 32), 8: (8, 16, 32, 64)}
BALL = Ball(norm="l2", radius=DELTA)


class Case(lab.Case):
    part: Literal["sample", "all", "ladder"]
    """Whether N of the points are trained on, or all of them at width 2D or at another."""
    d: PositiveInt
    width: PositiveInt
    steps: PositiveInt = 1000
    lr: PositiveFloat = 0.02

    @property
    def points(self) -> int:
        """How many points are trained on."""
        return 8 * self.d if self.part == "sample" else theory.packing_size(self.d, DELTA)

    @property
    def cost(self) -> float:
        return self.steps * self.replicates * (1 + self.points * self.width / 2000) / 6000


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    usual, few, dims, ladder, steps = {
        "smoke": (3, 3, (7,), {4: (1, 2), 5: (1, 2)}, 10),
        "laptop": (12, 6, (8, 9, 10), LADDER, 1000),
        "paper": (24, 24, (8, 9, 10, 11), LADDER, 3000),
    }[scale]
    parts: tuple[Literal["sample", "all"], ...] = ("sample", "all")
    wanted = [(part, d, 2 * d) for d in dims[::-1] for part in parts]
    rungs = [("ladder", d, width) for d in reversed(ladder) for width in ladder[d]]
    return [
        Case(part=part, d=d, width=width, steps=steps, **block)  # type: ignore[arg-type]
        for part, d, width in (*wanted, *rungs)
        for block in lab.blocks(seeds or (few if part == "ladder" else usual), 6)
    ]


def compute(case: Case) -> pl.DataFrame:
    """Errors per seed; those of unseen points are empty where there are none."""
    whole = lifted_packings(case.d, DELTA, HEIGHT, _rngs(case, "data"))
    seen, unseen = whole.some(0, case.points), whole.some(case.points)
    net = trained(seen, BALL, case.width, case.steps, case.lr, _rngs(case, "train", case.width))
    found: dict[str, object] = {
        "seed": list(case.seeds),
        "points": case.points,
        "parameters": case.width * (case.d + 2) + 1,
        "clean train": wrong(net, seen).double().mean(1).numpy(),
        "robust train": broken(net, seen, BALL, _rngs(case, "seen")).double().mean(1).numpy(),
    }
    empty = [None] * case.replicates
    if unseen.y.numel():
        clean, robust = wrong(net, unseen), broken(net, unseen, BALL, _rngs(case, "unseen"))
        found |= {"clean test": clean.double().mean(1).numpy(),
                  "robust test": robust.double().mean(1).numpy()}  # fmt: skip
    else:
        found |= {"clean test": empty, "robust test": empty}
    floats = {"clean test": pl.Float64, "robust test": pl.Float64}
    return pl.DataFrame(found, schema_overrides=floats)


def _rngs(case: Case, *name: object) -> Rngs:
    part = "sample" if case.part == "sample" else "all"
    stream = LADDER_NAME if case.part == "ladder" else NAME
    return generators(stream, *name, part, case.d, seeds=case.seeds)


def least_widths(table: pl.DataFrame, mu: float = MU) -> pl.DataFrame:
    """For each D and seed, the width at which the robust error of all points passes mu.

    Between two widths of the ladder the error is taken as linear in the logarithm of the width.
    The first passage counts; without one the width is missing.

    Args:
        table: rows of the part "ladder".
        mu: the share of balls that may be lost.
    """
    rows = []
    for (d, seed), runs in (
        table.filter(part="ladder").partition_by("d", "seed", as_dict=True).items()
    ):
        runs = runs.sort("width")
        width, error = np.log2(runs["width"].to_numpy()), runs["robust train"].to_numpy()
        below = np.flatnonzero(error <= mu)
        if not below.size:
            at = np.nan
        elif below[0] == 0:
            at = 2.0 ** width[0]
        else:
            i = below[0]
            share = (error[i - 1] - mu) / (error[i - 1] - error[i])
            at = 2.0 ** (width[i - 1] + share * (width[i] - width[i - 1]))
        rows.append((d, seed, at, at * (int(d) + 2) + 1))  # type: ignore[call-overload]
    schema = {"d": pl.Int64, "seed": pl.Int64, "width": pl.Float64, "parameters": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("d", "seed")


def doublings(least: pl.DataFrame) -> np.ndarray:
    """Of each seed the least-squares slope of log2 of the least width in D."""
    return np.array([
        np.polyfit(rows["d"].to_numpy(), np.log2(rows["width"].to_numpy()), 1)[0]
        for _, rows in sorted(least.partition_by("seed", as_dict=True).items())
    ])  # fmt: skip


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """That the point of the slice is in every ball."""
    return [Assumption(name="height", condition="0 < h < delta, the ratio", reached=HEIGHT / DELTA,
                       holds=0 < HEIGHT < DELTA)]  # fmt: skip


def figure(table: pl.DataFrame) -> AnyChart:
    names = {"robust train": "robust, training points", "clean test": "clean, unseen points",
             "robust test": "robust, unseen points"}  # fmt: skip
    sample = table.filter(part="sample").unpivot(list(names), index=["d", "seed"],
                                                 variable_name="line")  # fmt: skip
    sample = sample.with_columns(pl.col("line").replace_strict(names))
    every = table.filter(part="all").select(
        "d", "seed", line=pl.lit("robust, trained on all points"), value="robust train"
    )
    rungs = table.filter(part="ladder").with_columns(dimension=pl.format("D = {}", "d")).sort("d")
    least = least_widths(table).filter(pl.col("width").is_finite())
    proved = pl.DataFrame({"d": least["d"].unique().sort()}).with_columns(
        parameters=pl.col("d").map_elements(
            lambda d: float(theory.least_parameters(d, DELTA, MU)), return_dtype=pl.Float64
        )
    )
    sizes = _named(pl.concat([sample.select(every.columns), every]))
    least, proved = _named(least), _named(proved)
    return panels(
        [
            curves(sizes, "D", "value", "line",
                   title="Width 2D", x_title="D", y_title="error (found)"),
            curves(rungs, "width", "robust train", "dimension", log_x=True,
                   theory=pl.DataFrame({"robust train": [MU]}),
                   title="Trained on all 2^(D-1) points", x_title="width",
                   y_title="robust error (found)"),
            curves(least, "D", "parameters", theory=proved, log_y=True, x_title="D",
                   title="Parameters for 90 % of balls, and M_D", y_title="parameters"),
        ],
        columns=3,
    )  # fmt: skip


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    """D as a name, as an axis of numbers would have halves between them."""
    return rows.sort("d").with_columns(D=pl.col("d").cast(pl.String))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, least = Claims(ABOUT.claims), least_widths(table)
    sample, every = (table.filter(part=part).sort("d", "seed") for part in ("sample", "all"))
    lost = every.join(sample, on=["d", "seed"], suffix=" of sample").with_columns(
        lost=pl.col("robust train") - pl.col("robust train of sample")
    )
    sample = sample.with_columns(gap=pl.col("robust test") - pl.col("robust train"))
    slopes = doublings(least)
    return [
        claims.below("train", groups(sample, "robust train", "d"), 0.02, what="share broken"),
        claims.below("clean", groups(sample, "clean test", "d"), 0.1, what="error"),
        claims.above("gap", groups(sample, "gap", "d"), 0.5,
            what="share broken of the unseen balls less that of the sample's"),
        claims.above("test", groups(sample, "robust test", "d"), 0.5,
            what="share broken of the unseen balls"),
        claims.above("all", groups(lost.filter(pl.col("d") > 8), "lost", "d"), MU,
            what="share broken of all balls less that of a sample's"),
        claims.increasing("more", every, "d", "robust train", what="the share broken"),
        claims.above("order", slopes, 0.25, what="slope of log2 of the least width in D"),
        claims.above("points", slopes, 0.5, what="slope of log2 of the least width in D"),
    ]  # fmt: skip
