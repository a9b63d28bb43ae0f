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

R is 1/H and 2/H, so that outputs can move by about as much at every depth: with a larger R deep
networks reach a loss near 0 whatever the attack, and eps = 0.05 says nothing. L_A is the loss on
what the attack finds, which may be far below the worst case; what PGD leaves over is told by the
worst-case loss of the network that it ends with.

Panels, for each H and R: what is above the best robust loss found, on average over draws, with
standard errors; dashed: eps. Below: min_t L_A less that loss at the largest width, attack by
attack, with standard deviations; an attack that is not after the worst point may be far below 0.
Last: how far the best network found is from the linearised optimum, over both R.

Six points on the sphere of R^3, at least 0.6 apart, labels in turn, caps of radius 0.15, the loss
sqrt(1 + (f - y)^2) - 1, T = 40 steps of rate 1/(m H), PGD with 3 steps of half the radius. Trained
weights are never made: `LowRankDeep` keeps them as the start plus outer products. float32.
"""

import math

import polars as pl

from .... import lab
from ....core.intervals import Sample
from ....report import Assumption, Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, curves, panels, points
from ....report.samples import slopes
from .. import theory
from ._parts.attack_names import SHOWN_AS
from ._parts.best_in_ball_runs import DATA, DELTA, compare
from ._parts.best_in_ball_runs import Case as Case

BINDS = "eps can bind"
ABOUT = lab.About(
    paper="convergence",
    item="Theorem 4.1",
    title="Training in a ball does as well as the best network there, whatever the attack",
    seconds={"smoke": 3, "laptop": 600},
    looks=1,
    claims={
        "4a": empirical(
            "At width 4096 the least adversarial loss of a run is at most 0.05 above the best "
            "robust loss found in B(R): the largest excess over eight attacks, three depths and "
            "two R, on average over draws",
            "caps",
            BINDS,
        ),
        "4b": ours(
            "and at most 0.05 above a lower bound of the linearised network's best robust loss",
            "caps",
            BINDS,
        ),
        "4c": ours(
            "PGD leaves nothing over: at width 4096 the worst-case loss of the network that it "
            "ends with is at most 0.05 above the best robust loss found, where it is farthest off "
            "over depths and R, on average over draws",
            "caps",
            BINDS,
        ),
        "4d": ours(
            "At width 4096 the best robust loss found is within 0.02 of the linearised network's, "
            "for the depth and R where it is farthest off, on average over draws",
            "caps",
        ),
        "4e": empirical(
            "Their distance, averaged over depths and R, falls from m = 64 to 4096 at least like "
            "m^(-1/6)",
            "caps",
        ),
        "4f": ours(
            "The excess of 4a is at most 0.05 in narrower networks too, at m = 64, 256 and 1024",
            "caps",
            BINDS,
        ),
    },
)
EPS, NEAR = 0.05, 0.02
WIDTHS, DRAWS = (64, 256, 1024, 4096), 6
DEPTHS = (1, 2, 4)
ATTACKS, AFTER = "min L_A, largest over attacks", "worst case after PGD"


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
        for block in lab.blocks(seeds or DRAWS, 1 if m > 1024 else 3)
    ]


def compute(case: Case) -> pl.DataFrame:
    return compare(case)


def figure(table: pl.DataFrame) -> AnyChart:
    rows = _excess(table)
    level = pl.DataFrame({"above": [EPS]})
    ends = _ends(rows)
    gaps = [
        curves(
            rows.filter(reach=reach, depth=H), "width", "above", "excess", theory=level,
            title=f"H = {H}, R = {reach / H:g}; dashed: eps", x_title="width m",
            y_title="above the best L_* found", log_x=True, band="standard error", y_domain=ends,
        )
        for reach in sorted(set(rows["reach"]))
        for H in sorted(set(rows["depth"]))
    ]  # fmt: skip
    wide = _reached(table).filter(pl.col("width") == pl.col("width").max())
    wide = wide.with_columns(
        gap=pl.col("least") - pl.col("found"), attack=pl.col("attack").replace(SHOWN_AS)
    ).rename({"depth": "H"})
    zero = pl.DataFrame({"gap": [0.0]})
    each = [
        points(
            wide.filter(reach=reach).sort("H"), "attack", "gap", "H", theory=zero,
            title=f"R = {reach:g}/H, largest m; dashed: 0", x_title="trained against",
            y_title="min L_A - best L_* found",
        )
        for reach in sorted(set(wide["reach"]))
    ]  # fmt: skip
    near = curves(
        _distances(table).rename({"depth": "H"}).sort("H"), "width", "distance", "H",
        title="best found and linearised", x_title="width m", y_title="|L_* found - linearised|",
        log_x=True, log_y=True, band="quartiles",
    )  # fmt: skip
    return panels([*gaps, *each, near])


def _reached(table: pl.DataFrame) -> pl.DataFrame:
    """With R H, rounded, as the column `reach`."""
    return table.with_columns(reach=(pl.col("R") * pl.col("depth")).round(6))


def _excess(table: pl.DataFrame) -> pl.DataFrame:
    """What 4a and 4c judge, in each draw, width, depth and R: by name in `excess`."""
    run = ["width", "depth", "reach", "seed"]
    each = _reached(table).group_by(*run, maintain_order=True)
    col = pl.col
    found = each.agg(
        (col("least") - col("found")).max().alias(ATTACKS),
        (col("robust") - col("found")).filter(col("robust").is_finite()).max().alias(AFTER),
    )
    return found.unpivot([ATTACKS, AFTER], index=run, variable_name="excess", value_name="above")


def _ends(rows: pl.DataFrame) -> tuple[float, float]:
    """One axis for all panels, with room for eps."""
    means = rows.group_by("width", "depth", "reach", "excess").agg(
        mean=pl.col("above").mean(), error=pl.col("above").std() / pl.len().sqrt()
    )
    low = (means["mean"] - means["error"].fill_null(0.0)).to_numpy().min()
    high = (means["mean"] + means["error"].fill_null(0.0)).to_numpy().max()
    step = 0.02
    return step * math.floor(low / step), step * math.ceil(max(high, 1.1 * EPS) / step)


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
        claims.below("4c", _largest(pgd, pl.col("robust") - pl.col("found")), EPS,
            what="worst-case loss after PGD less the best robust loss found, the largest over "
            "depths and R,"),
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
    """The constant of m >= C R^9 H^16 eps^-7 in the run that is farthest from it."""
    C = table["width"] * EPS**7 / (table["R"] ** 9 * table["depth"].cast(pl.Float64) ** 16)
    return C.to_numpy().min()


def _falls(near: pl.DataFrame) -> list[float]:
    """Of each draw."""
    means = near.group_by("seed", "width").agg(pl.col("distance").mean()).sort("width")
    return slopes(means, "width", "distance")


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Section 3.3 for these caps, the orders of Theorem 4.1, and that eps asks for something."""
    runs = table.select("width", "depth", "R", "rate").unique().iter_rows()
    deep = [(m, H, R, rate / (m * H)) for m, H, R, rate in runs]
    return [
        theory.compatible_caps(DATA.separation, DELTA),
        _can_bind(table),
        *theory.deep_extremes(deep, DATA.d, EPS),
    ]


def _can_bind(table: pl.DataFrame) -> Assumption:
    """In each cell the best loss found, and what it is below the start's, on average over draws.

    Where the first is below eps any loss near 0 passes, and where the second is, no training does.
    """
    cells = table.filter(attack="pgd").group_by("width", "depth", "R").agg(
        pl.col("found").mean(), won=(pl.col("start") - pl.col("found")).mean()
    )  # fmt: skip
    least = float(cells.select(pl.min_horizontal("found", "won"))["found"].to_numpy().min())
    return Assumption(
        name=BINDS,
        condition=f"in every cell the best robust loss found is above {EPS:g}, and the worst-case "
        f"loss at the start more than {EPS:g} above it, on average over draws",
        reached=least,
        holds=least > EPS,
    )
