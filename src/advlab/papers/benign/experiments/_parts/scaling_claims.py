"""Claims of the scaling law inside Assumption 1, and over n ||mu||^2/d inside and outside of it."""

import math
from itertools import pairwise

import numpy as np
import polars as pl

from .....report import Claims, Verdict
from .....report.samples import groups, sample
from .conditions import ASKED
from .scaling_runs import INSIDE
from .scaling_settings import SMOOTH

NEAR, NEARBY = 0.1, 0.05
"""How near margins over S, exponents and E must be."""
POWERS = {"inside_n": ("n", 0.5), "inside_d": ("d", -0.5), "inside_mu": ("mu_norm", 2.0)}
"""What is swept inside Assumption 1, its column and the power of the law."""
NEEDED = ("inside", "law", "inside_powers", "inside_collapse", "inside_alpha", "exponent",
          "implied")  # fmt: skip


def lines(rows: pl.DataFrame) -> list[float]:
    """Slopes of y against x, by seed."""
    return [
        float(np.polyfit(one["x"].to_numpy(), one["y"].to_numpy(), 1)[0])
        if one["x"].n_unique() > 1 and not one["y"].has_nulls()
        else math.nan
        for _, one in sorted(rows.partition_by("seed", as_dict=True).items())
    ]


def theorem(claims: Claims, runs: pl.DataFrame, usual: pl.DataFrame) -> list[Verdict]:
    """The bounds, the constant and the collapse inside Assumption 1.

    Args:
        claims: of the experiment.
        runs: all runs with their strengths.
        usual: the runs of the base outside of it.
    """
    inside = runs.filter(pl.col("route").is_in(INSIDE))
    if inside.is_empty():
        return [claims.outside(label, "no run is inside") for label in NEEDED]
    base = usual.filter(pl.col("activation") == SMOOTH)
    base = base.select("seed", usual=pl.col("clean_margin") / pl.col("S"))
    deep = inside.filter(pl.col("route").is_in([*POWERS, "inside"]))
    gaps = deep.join(base, on="seed").with_columns(
        gap=pl.col("clean_margin") / pl.col("S") - pl.col("usual")
    )
    return [
        claims.every("inside", _bounded(inside), what="both bounds"),
        claims.equal("law", groups(gaps, "gap", "route", "level"), 0, NEAR,
                     what="clean margin over S, less that of the base,"),
        claims.equal("inside_powers", _powers(deep), 0, NEARBY,
                     what="exponent of the clean margin less that of the law"),
        claims.equal("inside_collapse", _apart(deep), 0, NEARBY,
                     what="relative difference of margins"),
        claims.equal("inside_alpha", _radii(inside), -1, NEARBY,
                     what="slope of the robust margin in alpha"),
        *_order(claims, inside.filter(pl.col("route") == "order")),
    ]  # fmt: skip


def _bounded(inside: pl.DataFrame) -> pl.Series:
    """Of each seed, whether all its runs are below Theorem 3.1 (2) and, where it speaks, (3).

    The excess robust error is (1 - beta) p at most, with the p that Lemma B.2 cannot exclude.
    """
    gap = pl.col("S") / ASKED

    def bound(room: pl.Expr) -> pl.Expr:
        return math.log(2) - room**2 / 2

    clean = (1 - 2 * pl.col("beta")).log() + pl.col("log_clean") <= bound(gap)
    robust = (1 - pl.col("beta")).log() + pl.col("log_certified") <= bound(gap - pl.col("alpha"))
    silent = pl.col("alpha") > gap
    held = (clean & (silent | robust)).all(ignore_nulls=False)
    return inside.group_by("seed").agg(held=held).sort("seed")["held"]


def _powers(deep: pl.DataFrame) -> dict[str, list[float]]:
    logs = deep.with_columns(y=pl.col("clean_margin").log())
    found = {}
    for route, (name, power) in POWERS.items():
        part = logs.filter(pl.col("route").is_in(["inside", route]))
        slopes = lines(part.with_columns(x=pl.col(name).cast(pl.Float64).log()))
        found[f"by {name}"] = [slope - power for slope in slopes]
    return found


def _apart(deep: pl.DataFrame) -> dict[str, pl.Series]:
    """What n and ||mu|| reach over what d reaches, less 1, at equal S and alpha."""
    keys = ["level", "seed"]
    found = {}
    for value in ("clean_margin", "robust_margin"):
        by = deep.filter(pl.col("route") == "inside_d").select(*keys, reference=value)
        other = deep.filter(pl.col("route").is_in(["inside_n", "inside_mu"]))
        pairs = other.join(by, on=keys).with_columns(gap=pl.col(value) / pl.col("reference") - 1)
        named = groups(pairs, "gap", "route", "level")
        found |= {f"{value.replace('_', ' ')}, {name}": one for name, one in named.items()}
    return found


def _radii(inside: pl.DataFrame) -> list[float]:
    """With the d of S = 100."""
    swept = inside.filter(pl.col("route") == "inside_alpha")
    sizes = swept.select("n", "d", "mu_norm").unique()
    rows = inside.join(sizes, on=["n", "d", "mu_norm"])
    return lines(rows.with_columns(x=pl.col("alpha"), y=pl.col("robust_margin")))


def shares(rows: pl.DataFrame) -> pl.DataFrame:
    """With the radius in words: 1/2, or its share of S."""
    share = (pl.col("alpha") / pl.col("S")).round(3)
    words = pl.when(pl.col("alpha") == 0.5).then(pl.lit("1/2"))
    words = words.when(share == 0.25).then(pl.lit("S/4")).when(share == 0.5).then(pl.lit("S/2"))
    return rows.with_columns(radius=words)


def _order(claims: Claims, rows: pl.DataFrame) -> list[Verdict]:
    rows = shares(rows).with_columns(
        x=pl.col("ratio").log(),
        y=pl.col("exponent").log(),
        implied=pl.col("exponent") / pl.col("ratio"),
        share=pl.col("exponent") / pl.col("bound"),
    )
    slopes = {
        f"alpha = {radius}": lines(part)
        for (radius,), part in rows.partition_by("radius", as_dict=True).items()
    }
    means = rows.group_by("radius").agg(pl.col("implied").mean()).sort("implied", descending=True)
    constants = ", ".join(
        f"{mean:.3g} at alpha = {radius}" for radius, mean in means.iter_rows() if mean is not None
    )
    slope = claims.equal("exponent", slopes, 1, NEAR, what="slope of log E in log of the ratio")
    note = f"{slope.note}; the constant of the order, E over the ratio: {constants}"
    return [
        slope.model_copy(update={"note": note}),
        claims.equal("implied", groups(rows, "share", "radius", "level"), 1, NEAR,
                     what="E over that of the upper bound"),
    ]  # fmt: skip


def strong(claims: Claims, rows: pl.DataFrame) -> list[Verdict]:
    """Claims about ratios of 1 and more, and what flipped labels have to do with them.

    Args:
        claims: of the experiment.
        rows: the route `ratio`.
    """
    rows = rows.with_columns(gap=pl.col("exponent") - pl.col("averaging"))
    first, trained = rows.filter(pl.col("steps") == 1), rows.filter(pl.col("steps") > 1)
    large = trained.filter(pl.col("ratio") > 0.99)
    usual, none = (large.filter(pl.col("beta") == beta) for beta in (0.1, 0.0))
    most = large.filter(pl.col("ratio") > 9.9)
    ends = pl.concat([first, most.filter(pl.col("beta") == 0.1)])
    met = pl.col("fitted") == (pl.col("steps") > 1).cast(pl.Float64)
    fitted = ends.group_by("seed").agg(held=met.all() & (pl.len() == 2)).sort("seed")["held"]
    apart = "E less that of the averaging classifier"
    return [
        claims.above("match", groups(usual, "exponent", "level"), 0.25, what="exponent E"),
        claims.above("flips", _falls(most), 0.1, what="fall of E with the share of flips"),
        claims.equal("unflipped", groups(none, "gap", "level"), 0, NEARBY, what=apart),
        claims.equal("first_step", sample(first, "gap"), 0, NEARBY, what=apart),
        claims.every("fitted", fitted, what="no flipped label fitted after one step, all at last,"),
    ]


def _falls(most: pl.DataFrame) -> dict[str, pl.Series]:
    """From each share of flipped labels to the next larger one."""
    by = {beta: one for (beta,), one in most.partition_by("beta", as_dict=True).items()}
    levels = sorted(by)
    found = {}
    for low, high in pairwise(levels):
        pairs = by[low].join(by[high], on="seed", suffix=" after")
        fall = pairs.with_columns(fall=pl.col("exponent") - pl.col("exponent after"))
        found[f"beta from {low:g} to {high:g}"] = sample(fall, "fall")
    return found


def constant(claims: Claims, runs: pl.DataFrame) -> Verdict:
    """The smallest C of Theorem 3.1 with c = 1/2: S/(alpha + sqrt(2 log(2/excess))).

    The excess is (1 - 2 beta) p of the clean error and at most (1 - beta) p of the robust one, with
    the p that PGD finds.
    """
    rows = runs.with_columns(
        clean=(1 - 2 * pl.col("beta")).log() + pl.col("log_clean"),
        robust=(1 - pl.col("beta")).log() + pl.col("log_robust"),
    )

    def needed(log_excess: str, alpha: pl.Expr | float) -> pl.Expr:
        room = (2 * (math.log(2) - pl.col(log_excess))).sqrt()
        return pl.col("S") / (room + alpha)

    each = pl.max_horizontal(needed("clean", 0.0), needed("robust", pl.col("alpha")))
    worst = rows.group_by("activation", "seed").agg(C=each.max())
    values = groups(worst.sort("activation", "seed"), "C", "activation")
    return claims.within("constant", values, 1, 2, what="smallest C that covers the runs")


def lower(claims: Claims, runs: pl.DataFrame) -> Verdict:
    """Without flips the best rule errs with probability Phi(-(||mu|| - alpha))."""
    room = (runs["log_robust"] - runs["log_best"]).drop_nulls().to_numpy()
    least = float(room.min()) if len(room) and np.isfinite(room).all() else math.nan
    what = f"log of the robust error over its lower bound, the least of {len(room)} networks,"
    return claims.above("lower", least, 0, what=what)
