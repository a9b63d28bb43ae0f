"""Theorem 4.1: training in B(R) against any attack does as well as the best network in B(R).

The theorem: a wide network with H hidden ReLU layers, trained by gradient descent on the examples
of any attack A and projected on B(R), has min_t L_A(W_t) <= L_*(W_*) + eps, where W_* has the
least worst-case loss L_* in B(R). Networks of H = 1, 2 and 4 are trained against nine maps into
the cap, from clean inputs to PGD and A*, a search for the worst point itself, up to m = 4096. They
are compared with W_* as far as it can be known, from both sides:

- the best robust loss found in B(R), of four candidates: where training against PGD and A* ends,
  ten slower steps after the latter, and the network that the linearised optimum makes. Worst cases
  are searched for in every cap, denser than A* does. L_*(W_*) is at most that, up to the search.
- lower bounds of the linearised network's optimum: a cone program for finitely many points of
  each cap, to which the worst are added until none is worse (cutting planes), and its dual. As m
  grows the network is its linearisation (Lemma A.6).

R is 1/H and 2/H, so that outputs can move by about as much at every depth: with a larger R deep
networks reach a loss near 0 whatever the attack, and eps = 0.01 says nothing. L_A is the loss on
what the attack finds, which may be far below the worst case; for A* it is the robust loss as the
search sees it, so that there the theorem asks for all that it can.

The rate is 1/(m H) there, with T = 30. The theorem's own, alpha = eps/(m H^2) and T = R^2 H^2/eps^2
with constants of 1, is run at m = 1024 and H = 1 for eps = 0.2, 0.1 and 0.05: the first step at
which a loss is within eps of the best found, over T, is the constant that the run implies.

Panels, for each H and R: what is above the best robust loss found, on average over draws, with
standard errors; dashed: eps. Below: min_t L_A less that loss at the largest width, map by map, with
standard deviations; a map that is not after the worst point may be far below 0. Last: the best
network found less the linearised optimum, over both R, and the steps that the theorem's rate takes
to be within eps for the slowest map, dashed T.

Six points on the sphere of R^3, at least 0.6 apart, labels in turn, caps of radius 0.15, the loss
sqrt(1 + (f - y)^2) - 1, PGD with 3 steps of half the radius. Trained weights are never made:
`LowRankDeep` keeps them as the start plus outer products. float32. At m = 4096 both searches look
at fewer points.
"""

import math
from typing import Literal

import polars as pl

from .... import lab
from ....core.intervals import Sample
from ....report import Assumption, Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, curves, panels, points
from ....report.samples import slopes
from .. import theory
from ._parts.attack_names import SHOWN_AS
from ._parts.best_in_ball_runs import DATA, DELTA, REACHES, STAR, compare, follow
from ._parts.best_in_ball_runs import Case as Case

BINDS = "eps can bind"
ABOUT = lab.About(
    paper="convergence",
    item="Theorem 4.1",
    title="Training in a ball does as well as the best network there, whatever the attack",
    seconds={"smoke": 5, "laptop": 800},
    looks=2,
    claims={
        "4a": empirical(
            "At width 4096 the least adversarial loss of a run is at most 0.01 above the best "
            "robust loss found in B(R): the largest excess over nine maps, A* among them, three "
            "depths and two R, on average over draws",
            "caps",
            BINDS,
        ),
        "4g": ours(
            "which a quarter of the steps does not reach: at R = 2/H the excess of A* is then "
            "above 0.01 at each depth, on average over draws",
            "caps",
            BINDS,
        ),
        "4b": ours(
            "The least loss is at most 0.01 above a lower bound of the linearised network's best "
            "robust loss too, largest and average as in 4a",
            "caps",
            BINDS,
        ),
        "4c": ours(
            "PGD leaves little over: at width 4096 the worst-case loss of the network that it ends "
            "with is at most 0.03 above the best robust loss found, where it is farthest off over "
            "depths and R, on average over draws",
            "caps",
            BINDS,
        ),
        "4n": ours(
            "and training on clean inputs leaves more, by more than 0.01 averaged over depths, R "
            "and draws",
            "caps",
            BINDS,
        ),
        "4d": ours(
            "At width 4096 the best robust loss found is within 0.005 of the linearised network's "
            "optimum, wherever that is between its bounds, for the depth and R where it is "
            "farthest off, on average over draws",
            "caps",
        ),
        "4e": empirical(
            "That distance, its root mean square over depths and R, falls from m = 64 to 4096 at "
            "least like m^(-1/6)",
            "caps",
        ),
        "4s": ours(
            "At m = 64, 256 and 1024 the best network found has a smaller robust loss than any "
            "move of the linearised one: below its lower bound, on average over depths, R and "
            "draws",
            "caps",
        ),
        "4f": ours(
            "The excess of 4a is at most 0.01 in narrower networks too, at m = 64, 256 and 1024",
            "caps",
            BINDS,
        ),
        "4t": empirical(
            "With alpha = eps/(m H^2) and T = R^2 H^2/eps^2, the theorem's orders with constants "
            "of 1, the least loss is at most eps above the best robust loss found, at m = 1024, H "
            "= 1 and eps = 0.2, 0.1 and 0.05: the largest excess over eps, nine maps and two R, on "
            "average over draws",
            "caps",
        ),
        "4u": ours(
            "and it is so after a third of these steps: the constant of T that the slowest map "
            "implies, the largest over eps and R, is on average below 1/3",
            "caps",
        ),
        "4v": ours(
            "At R = 2 the steps that the slowest map needs grow more slowly than eps^-2, at least "
            "like eps^-1: the exponent is between -1.8 and -1",
            "caps",
        ),
    },
)
EPS, LEFT, MORE, NEAR = 0.01, 0.03, 0.01, 0.005
THIRD, ORDERS = 1 / 3, (-1.8, -1.0)
WIDTHS, DRAWS = (64, 256, 1024, 4096), 5
DEPTHS = (1, 2, 4)
RATES = {"width": 1024, "depth": 1, "eps": (0.2, 0.1, 0.05)}
ATTACKS = "min L_A, largest over maps"
AFTER = {"pgd": "worst case after PGD", "identity": "worst case after clean training"}
"""Of these attacks the worst-case loss of the network at the end is judged."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    if scale == "smoke":
        settings = {"steps": 4, "searched": 4, "judged": 4, "tangents": 2}
        some = [
            Case(width=m, depth=H).model_copy(update=settings)
            for m in (8, 16, 32)
            for H in DEPTHS[:2]
        ]
        small = Case(kind="rates", width=16, depth=1).model_copy(update=settings)
        some += [small.model_copy(update={"eps": eps}) for eps in (1.0, 0.5)]
        return [case.model_copy(update=b) for case in some for b in lab.blocks(seeds or 2, 2)]
    wide = {"searched": 10, "judged": 24}
    widths = [
        Case(width=m, depth=H, **(wide if m > 1024 else {}), **block)
        for m in sorted(WIDTHS, reverse=True)
        for H in sorted(DEPTHS, reverse=True)
        # One start of the widest fills half a gigabyte.
        for block in lab.blocks(seeds or DRAWS, 1 if m > 1024 else 3)
    ]
    return widths + [
        Case(kind="rates", width=RATES["width"], depth=RATES["depth"], eps=eps, **block)
        for eps in RATES["eps"]
        for block in lab.blocks(seeds or DRAWS, 3)
    ]


def compute(case: Case) -> pl.DataFrame:
    return compare(case) if case.kind == "widths" else follow(case)


def figure(table: pl.DataFrame) -> AnyChart:
    compared, rates = table.filter(kind="widths"), table.filter(kind="rates")
    rows = _excess(compared)
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
    wide = _reached(compared).filter(pl.col("width") == pl.col("width").max())
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
        _distances(compared).rename({"depth": "H"}).sort("H"), "width", "signed", "H",
        theory=pl.DataFrame({"signed": [0.0]}), title="best found less linearised; dashed: 0",
        x_title="width m", y_title="L_* found - linearised", log_x=True, band="quartiles",
    )  # fmt: skip
    # Where the start is within eps no step is needed, which has no place on a logarithmic axis.
    slowest = _slowest(rates).with_columns(
        needed=pl.col("needed").clip(lower_bound=1), R=pl.format("{}", "R")
    ).sort("R", "eps")  # fmt: skip
    promised = slowest.select("R", "eps", needed="promised").unique(maintain_order=True)
    steps = curves(
        slowest, "eps", "needed", "R", theory=promised, log_x=True, log_y=True, x_title="eps",
        title="alpha = eps/(m H^2); dashed: R^2 H^2/eps^2", y_title="steps to eps above the best",
    )  # fmt: skip
    return panels([*gaps, *each, near, steps])


def _reached(table: pl.DataFrame) -> pl.DataFrame:
    """With R H, rounded, as the column `reach`."""
    return table.with_columns(reach=(pl.col("R") * pl.col("depth")).round(6))


def _excess(table: pl.DataFrame) -> pl.DataFrame:
    """What 4a, 4c and 4n judge, in each draw, width, depth and R: by name in `excess`."""
    run = ["width", "depth", "reach", "seed"]
    each = _reached(table).group_by(*run, maintain_order=True)
    col = pl.col
    found = each.agg(
        (col("least") - col("found")).max().alias(ATTACKS),
        *(
            (col("robust") - col("found")).filter(attack=attack).max().alias(name)
            for attack, name in AFTER.items()
        ),
    )
    names = [ATTACKS, *AFTER.values()]
    return found.unpivot(names, index=run, variable_name="excess", value_name="above")


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
    claims, col = Claims(ABOUT.claims), pl.col
    compared, rates = table.filter(kind="widths"), table.filter(kind="rates")
    wide = compared.filter(col("width") == col("width").max())
    near, excess = _distances(compared), "largest excess over maps, depths and R"
    widest = near.filter(col("width") == col("width").max())
    pgd, clean = (wide.filter(attack=name) for name in ("pgd", "identity"))
    more = pgd.join(clean, on=["depth", "R", "seed"], suffix=" clean")
    over = "less the best robust loss found, the largest over depths and R,"
    return [
        claims.below("4a", _draws(wide, col("least") - col("found")), EPS,
            what=f"{excess} of min L_A over the best robust loss found"),
        claims.above("4g", _early(wide), EPS,
            what="excess of A* over the best robust loss found after a quarter of the steps"),
        claims.below("4b", _draws(wide, col("least") - col("bound")), EPS,
            what=f"{excess} of min L_A over the linearised network's lower bound"),
        claims.below("4c", _draws(pgd, col("robust") - col("found")), LEFT,
            what=f"worst-case loss after PGD {over}"),
        claims.above("4n", _draws(more, col("robust clean") - col("robust"), "mean"), MORE,
            what="worst-case loss after clean training less that after PGD, averaged over depths "
            "and R,"),
        claims.below("4d", _draws(widest, col("distance")), NEAR,
            what="|best robust loss found - linearised optimum| at most, the largest over depths "
            "and R,"),
        claims.below("4e", _falls(near), -1 / 6,
            what="slope of log rms (best found - linearised optimum) in log m"),
        claims.below("4s", _signed(near), 0,
            what="best robust loss found less the linearised network's lower bound"),
        claims.below("4f", _excesses(compared), EPS,
            what=f"{excess} of min L_A over the best robust loss found, where m over "
            f"R^9 H^16 eps^-7 is {_implied(compared):.1e} and more,"),
        claims.below("4t", _draws(rates, (col("least") - col("found")) / col("eps")), 1,
            what="excess over eps, the largest over maps, eps and R,"),
        claims.below("4u", _draws(_slowest(rates), col("needed") / col("promised")), THIRD,
            what="steps of the slowest map over R^2 H^2/eps^2, the largest over eps and R,"),
        claims.within("4v", _growth(rates), *ORDERS,
            what="slope of log steps of the slowest map in log eps, at R = 2"),
    ]  # fmt: skip


def _draws(rows: pl.DataFrame, value: pl.Expr, how: Literal["max", "mean"] = "max") -> Sample:
    """Of each draw, over all that was trained from it; nothing where a run has no number."""
    # polars passes over NaN in max(), which would forgive a run that diverged.
    each = rows.with_columns(value=pl.when(value.is_finite()).then(value))
    found = pl.col("value").max() if how == "max" else pl.col("value").mean()
    each = each.group_by("seed").agg(value=pl.when(pl.col("value").null_count() == 0).then(found))
    return each.sort("seed")["value"]


def _early(wide: pl.DataFrame) -> dict[str, Sample]:
    """By depth, at the larger R, where there is more to learn."""
    rows = _reached(wide).filter(pl.col("reach") == max(REACHES), attack=STAR)
    return {
        f"H {H}": _draws(part, pl.col("early") - pl.col("found"))
        for (H,), part in sorted(rows.partition_by("depth", as_dict=True).items())
    }


def _distances(table: pl.DataFrame) -> pl.DataFrame:
    """Of each width, depth, R and draw: found less the optimum's lower bound, as `signed`, and how
    far found is from the optimum at most, wherever that is between its bounds, as `distance`."""
    one, col = table.filter(attack="pgd"), pl.col
    return one.with_columns(
        signed=col("found") - col("linear"),
        distance=pl.max_horizontal(
            (col("found") - col("linear")).abs(), (col("found") - col("linear found")).abs()
        ),
    )


def _signed(near: pl.DataFrame) -> dict[str, Sample]:
    """By width, below the largest: of each draw, over depths and R."""
    narrow, signed = near.filter(pl.col("width") < pl.col("width").max()), pl.col("signed")
    each = narrow.group_by("width", "seed").agg(
        pl.when(signed.null_count() == 0).then(signed.mean())
    )
    each = each.sort("width", "seed")
    return {
        f"m {m}": part["signed"]
        for (m,), part in each.partition_by("width", as_dict=True, maintain_order=True).items()
    }


def _slowest(rates: pl.DataFrame) -> pl.DataFrame:
    """Of each R, eps and draw the steps that the slowest map needs; nothing if one never gets
    there."""
    needed = pl.when(pl.col("needed").is_finite()).then("needed")
    run = ["R", "eps", "seed", "promised"]
    return rates.group_by(run, maintain_order=True).agg(
        needed=pl.when(needed.null_count() == 0).then(needed.max())
    )


def _growth(rates: pl.DataFrame) -> Sample:
    """Of each draw, at the larger R; nothing where a map never gets there.

    At the smaller one eps = 0.2 is met by some starts.
    """
    needed, x = pl.col("needed"), pl.col("eps").log()
    slope = ((x - x.mean()) * needed.log()).sum() / (x - x.mean()).pow(2).sum()
    wide = _slowest(rates).filter(pl.col("R") == pl.col("R").max())
    each = wide.group_by("seed").agg(slope=pl.when(needed.null_count() == 0).then(slope))
    return each.sort("seed")["slope"]


def _excesses(table: pl.DataFrame) -> dict[str, Sample]:
    """By width, below the largest, which is 4a's."""
    narrow = table.filter(pl.col("width") < pl.col("width").max())
    return {
        f"m {m}": _draws(part, pl.col("least") - pl.col("found"))
        for (m,), part in sorted(narrow.partition_by("width", as_dict=True).items())
    }


def _implied(table: pl.DataFrame) -> float:
    """The constant of m >= C R^9 H^16 eps^-7 in the run that is farthest from it."""
    C = table["width"] * EPS**7 / (table["R"] ** 9 * table["depth"].cast(pl.Float64) ** 16)
    return C.to_numpy().min()


def _falls(near: pl.DataFrame) -> list[float]:
    """Of each draw."""
    rms = pl.col("distance").pow(2).mean().sqrt()
    means = near.group_by("seed", "width").agg(distance=rms).sort("width")
    return slopes(means, "width", "distance")


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Section 3.3 for these caps, the orders of Theorem 4.1, and that eps asks for something."""
    compared, rates = table.filter(kind="widths"), table.filter(kind="rates")
    runs = compared.select("width", "depth", "R", "rate").unique().iter_rows()
    deep = [(m, H, R, rate / (m * H)) for m, H, R, rate in runs]
    found = [theory.compatible_caps(DATA.separation, DELTA), _can_bind(compared)]
    found += theory.deep_extremes(deep, DATA.d, EPS)
    slow = rates.select("width", "depth", "R", "eps").unique().sort("eps", "R", descending=True)
    for m, H, R, eps in slow.tail(1).iter_rows():
        words = f"at the theorem's rate (R = {R:g}, m = {m})"
        found += theory.deep_theorem(m, H, DATA.d, R, eps / (m * H**2), eps, words)
    return found


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
