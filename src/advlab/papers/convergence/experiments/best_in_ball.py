"""Theorem 4.1: training in B(R) against any attack does as well as the best network in B(R).

The theorem: a wide network with H hidden ReLU layers, trained by gradient descent on the examples
of any attack A and projected on B(R), has min_t L_A(W_t) <= L_*(W_*) + eps, where W_* has the
least worst-case loss L_* in B(R). Networks of H = 1, 2 and 4 are trained against eight maps into
the cap, from clean inputs to PGD, up to m = 4096, and compared with W_* as far as it can be known,
from both sides:

- the best robust loss *found* in B(R). The linearised network's best move is solved for (a cone
  program), made as a network, and improved by a slow descent against PGD; the end of the run
  against PGD is a second candidate. Worst cases are searched for in every cap. L_*(W_*) is at most
  that.
- a lower bound of the linearised network's optimum, by duality and with finitely many points of
  each cap. As m grows the network is its linearisation (Lemma A.6).

Panels: min_t L_A(W_t) less the best robust loss found, on average over draws, with standard errors.
The theorem asks for less than eps as m grows; an attack that is not after the worst point may be
far below 0. Dashed: 0. Last row: how far the best network found is from the linearised optimum.

Six points on the sphere of R^3, at least 0.6 apart, labels in turn, caps of radius 0.15, the loss
sqrt(1 + (f - y)^2) - 1, T = 40 steps of rate 1/(m H), PGD with 3 steps of half the radius. Trained
weights are never made: `LowRankDeep` keeps them as the start plus outer products. float32.
"""

import polars as pl

from .... import lab
from ....core.intervals import Sample
from ....report import Assumption, Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, curves, panels
from ....report.samples import slopes
from .. import theory
from ._parts.best_in_ball_runs import DATA, DELTA, compare
from ._parts.best_in_ball_runs import Case as Case

ABOUT = lab.About(
    paper="convergence",
    item="Theorem 4.1",
    title="Training in a ball does as well as the best network there, whatever the attack",
    seconds={"smoke": 3, "laptop": 600},
    claims={
        "4a": empirical(
            "At width 4096 the least adversarial loss of a run is at most 0.05 above the best "
            "robust loss found in B(R): the largest excess over eight attacks, three depths and "
            "two R, on average over draws",
            "caps",
        ),
        "4b": ours(
            "and at most 0.05 above a lower bound of the linearised network's best robust loss",
            "caps",
        ),
        "4c": ours(
            "PGD leaves nothing over: at width 4096 its least loss is within 0.05 of the best "
            "robust loss found, where it is farthest off over depths and R, on average over draws",
            "caps",
        ),
        "4d": ours(
            "At width 4096 the best robust loss found is within 0.02 of the linearised network's, "
            "for the depth and R where it is farthest off, on average over draws",
            "caps",
        ),
        "4e": empirical(
            "Their distance, averaged over depths and R, falls from m = 64 to 1024 at least like "
            "m^(-1/6)",
            "caps",
        ),
        "4f": ours(
            "The excess of 4a is at most 0.05 in narrower networks too, at m = 64, 256 and 1024",
            "caps",
        ),
    },
)
EPS, NEAR = 0.05, 0.02
WIDTHS = {64: 6, 256: 6, 1024: 6, 4096: 3}
"""Draws of data and networks by width."""
DEPTHS = (1, 2, 4)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    if scale == "smoke":
        settings = {"steps": 4, "searched": 4, "tangents": 2}
        return [
            Case(width=m, depth=H, **settings, **block)
            for m in (8, 16, 32)
            for H in DEPTHS[:2]
            for block in lab.blocks(seeds or 2, 2)
        ]
    return [
        Case(width=m, depth=H, **block)
        for m in sorted(WIDTHS, reverse=True)
        for H in sorted(DEPTHS, reverse=True)
        # One start of the widest fills half a gigabyte.
        for block in lab.blocks(min(seeds or 10**6, WIDTHS[m]), 1 if m > 1024 else 3)
    ]


def compute(case: Case) -> pl.DataFrame:
    return compare(case)


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.with_columns(gap=pl.col("least") - pl.col("found"))
    zero = pl.DataFrame({"gap": [0.0]})
    gaps = [
        curves(
            rows.filter(R=R, depth=H), "width", "gap", "attack", theory=zero,
            title=f"H = {H}, R = {R:g}", x_title="width m",
            y_title="min L_A - best L_* found", log_x=True, band="standard error",
        )
        for R in sorted(set(rows["R"]))
        for H in sorted(set(rows["depth"]))
    ]  # fmt: skip
    near = _distances(table).rename({"depth": "H"}).sort("H")
    distances = [
        curves(
            near.filter(R=R), "width", "distance", "H", title=f"best found, R = {R:g}",
            x_title="width m", y_title="|L_* found - linearised|", log_x=True, log_y=True,
            band="quartiles",
        )
        for R in sorted(set(near["R"]))
    ]  # fmt: skip
    return panels([*gaps, *distances])


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    wide = table.filter(pl.col("width") == pl.col("width").max())
    pgd, near = wide.filter(attack="pgd"), _distances(table)
    widest = near.filter(pl.col("width") == pl.col("width").max())
    excess = "largest excess over attacks, depths and R"
    return [
        claims.below("4a", _largest(wide, pl.col("least") - pl.col("found")), EPS,
            what=f"{excess} of min L_A over the best robust loss found"),
        claims.below("4b", _largest(wide, pl.col("least") - pl.col("bound")), EPS,
            what=f"{excess} of min L_A over the linearised network's lower bound"),
        claims.below("4c", _largest(pgd, (pl.col("least") - pl.col("found")).abs()), EPS,
            what="|min L_PGD - best robust loss found|, the largest over depths and R,"),
        claims.below("4d", _largest(widest, pl.col("distance")), NEAR,
            what="|best robust loss found - linearised optimum|, the largest over depths and R,"),
        claims.below("4e", _falls(near), -1 / 6,
            what="slope of log |best found - linearised optimum| in log m"),
        claims.below("4f", _excesses(table), EPS,
            what=f"{excess} of min L_A over the best robust loss found, where m over "
            f"R^9 H^16 eps^-7 is {_implied(table):.1e} and more,"),
    ]  # fmt: skip


def _largest(rows: pl.DataFrame, value: pl.Expr) -> Sample:
    """Of each draw, over all that was trained from it; nothing where a run has no number."""
    # polars passes over NaN in max(), which would forgive a run that diverged.
    each = rows.with_columns(value=pl.when(value.is_finite()).then(value))
    each = each.group_by("seed").agg(
        value=pl.when(pl.col("value").null_count() == 0).then(pl.col("value").max())
    )
    return each.sort("seed")["value"]


def _distances(table: pl.DataFrame) -> pl.DataFrame:
    """|found - linear| of each width, depth, R and draw; no attack matters to it."""
    one = table.filter(attack="pgd")
    return one.with_columns(distance=(pl.col("found") - pl.col("linear")).abs())


def _excesses(table: pl.DataFrame) -> dict[str, Sample]:
    """By width, below the largest, which is 4a's."""
    narrow = table.filter(pl.col("width") < pl.col("width").max())
    return {
        f"m {m}": _largest(part, pl.col("least") - pl.col("found"))
        for (m,), part in sorted(narrow.partition_by("width", as_dict=True).items())
    }


def _implied(table: pl.DataFrame) -> float:
    """The constant of m >= C R^9 H^16 eps^-7 at the least width, the largest depth and R."""
    order = table["R"].to_numpy().max() ** 9 * float(table["depth"].to_numpy().max()) ** 16
    return table["width"].to_numpy().min() * EPS**7 / order


def _falls(near: pl.DataFrame) -> list[float]:
    """Of each draw, over the widths below the largest, which has fewer draws."""
    narrow = near.filter(pl.col("width") < pl.col("width").max())
    means = narrow.group_by("seed", "width").agg(pl.col("distance").mean()).sort("width")
    return slopes(means, "width", "distance")


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Section 3.3 for these caps, and the orders of Theorem 4.1 at the widest and least deep."""
    m, H = max(table["width"]), min(table["depth"])
    R = max(table["R"])
    caps = theory.compatible_caps(DATA.separation, DELTA)
    return [caps, *theory.deep_theorem(m, H, DATA.d, R, 1.0 / (m * H), EPS)]
