"""Appendix C.2: quadratic ReLU, its random features (Theorem C.1) and training (Corollary C.1).

First weights are uniform on the sphere of radius sqrt(d), sigma(z) = max(z, 0)^2. Theorem C.1 (from
Lemma C.2): M = Omega(eps^-(d+1) log(...)) random features are within eps of a function h of the
RKHS, with sum ||c_r||^2 = O(1/M). Corollary C.1: under Assumption C.1, that no cap or mirrored
cap of one label meets one of the other, descent on the examples of any attack reaches a loss of
eps. The proof says that the RKHS holds the even functions. It holds the odd ones and quadratic
forms, and so does every network of quadratic ReLU, near its start or not: max(z, 0)^2 +
max(-z, 0)^2 = z^2 makes f(x) + f(-x) a quadratic form. So Assumption C.1 allows what cannot be
learnt, equal labels at many antipodes, and forbids what can, opposite labels.

Left to right: sup |h - h^| of M features in d = 3, 5 and 8, dashed M^(-1/2), where the theorem has
M^(-1/(d+1)); the mean square error times M/||h||^2 (both: medians between quartiles, as single
draws of h are far from the others); sum ||c_r||^2 times M/||h||^2. Below: min_t L_A of eight
trainings on three kinds of data, dashed eps = 0.1; min_t L_A against PGD by width, without
antipodes, with the corollary's T = sqrt(m)/alpha at alpha = eps and with the same T at every width;
and the constant of its m = C eps^-(d+1) log(1/eps) that the former implies.

h interpolates six points with alternating labels. Networks of m = 512, 500 steps of rate 0.5, ten
lines of R^3 whose points are at least 0.45 apart: one point of each ("no antipodes"), or both.
Caps of radius 0.05, labels alternate from line to line, the loss sqrt(1 + (f - y)^2) - 1. float64.
Theorem 5.1 asks for a bounded sigma', which this is not (footnote 13); its bound holds with C1 =
2 max_t ||W_t||/sqrt(m), operator norms.
"""

import math

import numpy as np
import polars as pl

from .... import lab
from ....core.intervals import Sample
from ....report import Assumption, Claims, Verdict, empirical, identity, ours, theorem
from ....report.charts import AnyChart, curves, panels, points, stacked
from ....report.samples import changes, groups, slopes
from .. import theory
from ._parts.attack_names import SHOWN_AS
from ._parts.quadratic_relu_runs import (
    DELTA,
    SEPARATION,
    feature_rows,
    trained_rows,
    width_rows,
)
from ._parts.quadratic_relu_runs import Case as Case

EPS = 0.1
ABOUT = lab.About(
    paper="convergence",
    item="Theorem C.1 and Corollary C.1",
    title="Quadratic ReLU: random features, training, and which labels it cannot learn",
    seconds={"smoke": 4, "laptop": 65},
    claims={
        "C1": empirical(
            "The sup error of M random features falls at least like M^(-1/(d+1)) in d = 3, 5 and 8"
        ),
        "rate": ours("It falls like M^(-1/2) in each of them: the exponent is within 0.08"),
        "C2a": empirical(
            "The squared error falls at least like 1/M up to the logarithm: exponent below -0.9"
        ),
        "C2b": ours("The constant of Lemma C.2, exp(Omega(d)) there, falls from d = 3 to 5 to 8"),
        "21": ours("M sum ||c_r||^2 is the squared RKHS norm, within 5 % on average, at all M"),
        "apart": empirical(
            "Without antipodes every attack's loss falls below eps = 0.1: the largest over the "
            "attacks, on average over draws",
            "caps",
        ),
        "equal": empirical(
            "So it does with equal labels at antipodes, which Assumption C.1 allows", "caps"
        ),
        "opposite": ours(
            "So it does with opposite labels at antipodes, which Assumption C.1 forbids", "caps"
        ),
        "floor": theorem(
            "With equal labels at antipodes the worst-case loss of every trained network is above "
            "the best quadratic form's loss"
        ),
        "bound": theorem(
            "Without antipodes the least loss is below Theorem 5.1's bound, with C1 as the run had "
            "it, in every run",
            "caps",
            "proved bound",
        ),
        "Cw": ours(
            "With alpha = eps = 0.1 and T = sqrt(m)/alpha PGD's least loss falls from m = 64 to "
            "4096 at least like m^(-1/(d+1)), so that m of the order eps^-(d+1) is enough",
            "caps",
        ),
        "Ct": ours(
            "and that is T's doing: with the same 500 steps of rate 0.5 at every width the "
            "exponent is larger by more than 0.2",
            "caps",
        ),
        "even": identity("f(x) + f(-x) is a quadratic form in every trained network"),
    },
)
DIMENSIONS, WIDTHS = (3, 5, 8), (64, 256, 1024, 4096)
KINDS = {
    "apart": "no antipodes",
    "equal": "equal labels at antipodes",
    "opposite": "opposite labels at antipodes",
}

SCHEDULES = {"theorem": "T = sqrt(m)/alpha", "same": "T = 500, rate 0.5"}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, few, dimensions, settings = {
        "smoke": (2, 3, (3, 5), {"width": 32, "steps": 5, "features": (16, 64), "searched": 5}),
        "laptop": (20, 60, DIMENSIONS, {}),
    }[scale]
    smoke = scale == "smoke"
    schedules = [
        Case(kind="theorem", width=m, steps=math.ceil(math.sqrt(m) / EPS), rate=EPS, **block)
        for m in ((16, 64) if smoke else WIDTHS)
        for block in lab.blocks(seeds or usual, 10)
    ]
    same = {"steps": 5} if smoke else {}
    schedules += [
        case.model_copy(update={"kind": "same", "steps": 500, "rate": 0.5, **same})
        for case in schedules
    ]
    return [
        *schedules,
        *(
            Case(kind="features", d=d, **settings, **block)
            for d in dimensions
            for block in lab.blocks(seeds or few, 10)
        ),
        *(
            Case(kind=kind, **settings, **block)
            for kind in ("apart", "equal", "opposite")
            for block in lab.blocks(seeds or usual, 10)
        ),
    ]


def compute(case: Case) -> pl.DataFrame:
    if case.kind == "features":
        return pl.DataFrame(feature_rows(case))
    return width_rows(case) if case.kind in SCHEDULES else trained_rows(case)


def figure(table: pl.DataFrame) -> AnyChart:
    rows = _features(table)
    wide = {"color": "dimension", "x_title": "features M", "log_x": True}
    trained = table.filter(pl.col("kind").is_in(list(KINDS))).with_columns(
        data=pl.col("kind").replace_strict(KINDS), attack=pl.col("attack").replace(SHOWN_AS)
    )
    features = [
        curves(rows, "M", "sup", theory=_half(rows), log_y=True, y_title="sup |h - h^|",
               title="error of random features", band="quartiles", **wide),
        curves(rows, "M", "constant", y_title="M E(h - h^)^2 / ||h||^2",
               title="the constant of Lemma C.2", band="quartiles", **wide),
        curves(rows, "M", "ratio", theory=pl.DataFrame({"ratio": [1.0]}),
               y_title="M sum ||c_r||^2 / ||h||^2", title="coefficients", **wide),
    ]  # fmt: skip
    training = points(
        trained, "attack", "least", "data", theory=pl.DataFrame({"least": [EPS]}),
        x_title="trained against", y_title="min L_A", title="training",
    )  # fmt: skip
    return stacked(panels(features), panels([training, *_widths(table)]))


def _features(table: pl.DataFrame) -> pl.DataFrame:
    """One row per dimension, M and seed."""
    square = pl.col("norm") ** 2
    return (
        table.filter(kind="features")
        .with_columns(
            dimension=pl.format("d = {}", "d"),
            constant=pl.col("M") * pl.col("l2") / square,
            ratio=pl.col("coefficients") / square,
        )
        .sort("d", "M", "seed")
    )


def _widths(table: pl.DataFrame) -> list[AnyChart]:
    """The least loss by width, and the constant of m = C eps^-(d+1) log(1/eps) that it implies."""
    rows, eps = table.filter(pl.col("kind").is_in(list(SCHEDULES))), pl.col("least")
    if rows.is_empty():
        return []
    rows = rows.with_columns(
        schedule=pl.col("kind").replace_strict(SCHEDULES),
        constant=pl.col("width") * eps ** (pl.col("d") + 1) / (1 / eps).log(),
    ).sort("schedule", "width")
    wide = {"x_title": "width m", "log_x": True, "log_y": True}
    level = pl.DataFrame({"least": [EPS]})
    return [
        curves(rows, "width", "least", "schedule", theory=level, title="PGD; dashed: eps",
               y_title="min L_A", **wide),
        curves(rows.filter(kind="theorem"), "width", "constant", "schedule",
               title="C of m = C eps^-(d+1) log(1/eps)", y_title="C at eps = min L_A", **wide),
    ]  # fmt: skip


def _half(rows: pl.DataFrame) -> pl.DataFrame:
    """A line of slope -1/2 through the median at the least M of each dimension."""
    narrow = pl.col("M") == pl.col("M").min()
    start = rows.filter(narrow).group_by("dimension", maintain_order=True).agg(
        start=pl.col("sup").median(), first=pl.col("M").first()
    )  # fmt: skip
    return start.join(rows.select("M").unique().sort("M"), how="cross").with_columns(
        sup=pl.col("start") * (pl.col("first") / pl.col("M")).sqrt()
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, rows = Claims(ABOUT.claims), _features(table)
    in_M = "slope of its logarithm in log M"
    sup = _slopes(rows, "sup")
    excess = {f"d {d}": [slope + 1 / (d + 1) for slope in values] for d, values in sup.items()}
    # One constant per draw: its mean over M.
    constants = rows.group_by("d", "seed", maintain_order=True).agg(pl.col("constant").mean())
    equal, apart = table.filter(kind="equal"), table.filter(kind="apart")
    above = _least(equal, pl.col("worst") - pl.col("floor"))
    below = _least(apart, pl.col("proved") - pl.col("least"))
    even = table.filter(pl.col("kind").is_in(list(KINDS)))["even"].to_numpy().max()
    widths = {
        kind: slopes(table.filter(kind=kind).sort("width"), "width", "least") for kind in SCHEDULES
    }
    return [
        claims.below("C1", excess, 0, what=f"{in_M}, plus 1/(d + 1),"),
        # -1/3 and -2/3 are outside.
        claims.equal("rate", {f"d {d}": v for d, v in sup.items()}, -0.5, 0.08, what=in_M),
        claims.below("C2a", {f"d {d}": v for d, v in _slopes(rows, "l2").items()}, -0.9,
            what=in_M),
        claims.below("C2b", changes(constants.with_columns(group=pl.lit("all")), "d", "constant",
            "group"), 0, what="change of M E(h - h^)^2/||h||^2"),
        # With sigma' = max(z, 0), as printed in Theorem C.1, it would be four times that.
        claims.equal("21", groups(rows, "ratio", "d", "M"), 1, 0.05,
            what="M sum ||c_r||^2 over the squared RKHS norm"),
        *(
            claims.below(kind, _largest(table.filter(kind=kind)), EPS,
                what="min L_A, the largest over attacks,")
            for kind in KINDS
        ),
        claims.above("floor", above, 0, what=f"smallest excess of {equal.height} runs"),
        claims.above("bound", below, 0,
            what=f"smallest bound less least loss of {apart.height} runs"),
        claims.below("Cw", widths["theorem"], -1 / 4, what="slope of log min L_A in log m"),
        claims.above("Ct", np.subtract(widths["same"], widths["theorem"]), 0.2,
            what="slope of log min L_A in log m, T the same, less that for T = sqrt(m)/alpha"),
        claims.below("even", even, 1e-9, what="largest distance from the form"),
    ]  # fmt: skip


def _slopes(rows: pl.DataFrame, name: str) -> dict[int, list[float]]:
    parts = rows.partition_by("d", as_dict=True, maintain_order=True)
    return {int(d): slopes(part, "M", name) for (d,), part in parts.items()}


def _largest(rows: pl.DataFrame) -> Sample:
    """Of each draw the largest least loss over attacks; a run that diverged counts as infinite."""
    finite = pl.when(pl.col("least").is_finite()).then("least").otherwise(float("inf"))
    return rows.group_by("seed").agg(value=finite.max()).sort("seed")["value"]


def _least(rows: pl.DataFrame, value: pl.Expr) -> float:
    return float(rows.select(value=value)["value"].to_numpy().min())


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Section 3.3 of the paper; Assumption C.1 tells the kinds of data apart. And whether Theorem
    5.1's bound says something."""
    apart = table.filter(kind="apart")
    share = float((apart["proved"] / apart["first"]).to_numpy().max(initial=0.0))
    return [
        theory.compatible_caps(SEPARATION, DELTA),
        Assumption(
            name="proved bound",
            condition="Theorem 5.1's bound over the loss at the start, below 1 in every run",
            reached=share,
            holds=share < 1,
        ),
    ]
