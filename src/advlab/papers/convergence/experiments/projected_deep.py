"""Deep networks trained in a ball of weights (Theorem 4.1), and why that works.

Theorem 4.1: against any attack, gradient descent projected on B(R), Frobenius balls of radius
R/sqrt(m) around each hidden layer's start, finds weights whose adversarial loss is within eps of
the best robust loss in B(R), if the network is wide. So a larger R can only help, and a ball that
is never left changes nothing. The proof: moving the input is moving the first hidden layer (Lemma
A.4), and in B(R) the network is nearly linear in its weights, the better the wider: up to
O(m^(-1/6) R^(4/3) H^(5/2) sqrt(log m)) (Lemmas A.5, A.6).

Near-linearity is measured at the worst move in B(R). With one hidden layer it is found exactly, in
law and up to a million units: a move can carry the units near 0 across. Its exponents are the
lemma's own. Along the loss gradient, where training goes, the network is much nearer to linear.

Six points on the sphere of R^5, at least 0.6 apart, labels in turn, caps of radius 0.15, the loss
sqrt(1 + (f - y)^2) - 1, PGD with 5 steps of half the radius from one random start, T = 400 steps of
rate 0.3/(m H). The paper has no experiments; constants of its theorem are not given. Residuals
along the loss gradient are largest over the six points and 200 uniform ones, at the W1 on the
boundary of every layer's ball. That R = 1 projects at nearly every step is read as nine in ten.
"""

import math

import altair as alt
import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, identity, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import groups, slopes
from .. import theory
from ..measures.worst_move import limit_constant
from ._parts.projected_deep_runs import DATA, DELTA, depths, guard, inputs, linearity, train, worst
from ._parts.projected_deep_runs import Case as Case

ABOUT = lab.About(
    paper="convergence",
    item="Theorem 4.1 and Lemmas A.4, A.6",
    title="Deep networks in a ball of weights: the role of R and of the projection",
    seconds={"smoke": 4, "laptop": 310},
    looks=5,
    claims={
        "6a": identity("after every step each layer is within R/sqrt(m) of its start"),
        "6b": identity(
            "an R beyond the largest displacement gives the run without projection, to the last bit"
        ),
        "6c": ours("in this setting R = 10 never projects"),
        "6d": ours("in this setting R = 1 projects at nine in ten steps or more, on average"),
        "7": empirical(
            "on average the least adversarial loss does not rise with R, up to 10 %", "caps"
        ),
        "9a": empirical(
            "over the exact worst move in B(R) of one hidden layer the distance from "
            "linear falls from m = 2^14 to 2^20 at least like m^(-1/6) sqrt(log m)"
        ),
        "9b": ours("and no faster: like m^(-1/6), its exponent within 0.03"),
        "9c": ours("and it grows like R^(4/3), its exponent within 0.05"),
        "9d": ours(
            "over the worst moves that an ascent finds it grows with the depth, at most like "
            "H^(5/2)"
        ),
        "9e": ours("along the loss gradient it falls faster, at least like m^(-1/2)"),
        "14a": identity("a moved first layer turns on the very units that a moved input does"),
        "14b": identity("and gives the same pre-activations in every layer"),
        "14c": theorem("and its move is within the bound of Lemma A.4"),
        "19a": identity("caps of opposite labels that share a point are refused, others are not"),
    },
)
TRAINED, DEPTHS = {64: 60, 256: 40, 512: 10}, (1, 2)
"""Replicates by width: narrow networks vary more, and cost less."""
RADII = (1.0, 3.0, 10.0, None)
LINEAR_WIDTHS, LINEAR_DEPTHS = (64, 128, 256, 512, 1024), (1, 2, 3)
SETTING = ["width", "depth"]
NOISE, OFTEN = 1.1, 0.9
WORST_WIDTHS, DEEP_WIDTHS = tuple(4**k for k in range(3, 11)), (64, 256)
WIDE = 2**14
"""From here on a width counts as wide."""
COMPUTE = {"training": train, "linearity": linearity, "worst": worst, "depths": depths,
           "inputs": inputs, "guard": guard}  # fmt: skip
SLOPES = {"m^(-1/6)": -1 / 6, "m^(-1/2)": -1 / 2}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    steps, trained = (5, {8: 2, 16: 2}) if smoke else (400, TRAINED)
    lines, others = (2, 2) if smoke else (60, 20)
    widths, wider = list(trained), list(trained) if smoke else LINEAR_WIDTHS
    straight = [Case(kind="linearity", width=m, depth=H) for m in wider for H in LINEAR_DEPTHS]
    kinks = [Case(kind="worst", width=m) for m in (widths if smoke else WORST_WIDTHS)]
    deeper = [
        Case(kind="depths", width=m, depth=H)
        for m in (widths if smoke else DEEP_WIDTHS)
        for H in LINEAR_DEPTHS
    ]
    moved = [Case(kind="inputs", width=m, depth=H) for m in widths for H in DEPTHS]
    return [
        *(
            Case(kind="training", width=m, depth=H, R=R, steps=steps, **block)
            for m in widths
            for H in DEPTHS
            for R in RADII
            for block in lab.blocks(seeds or trained[m], trained[m])
        ),
        *(
            one.model_copy(update=block)
            for some, many in (
                (straight, lines),
                ([*kinks, *deeper, *moved, Case(kind="guard")], others),
            )
            for one in some
            for block in lab.blocks(seeds or many, many)
        ),
    ]


def compute(case: Case) -> pl.DataFrame:
    return COMPUTE[case.kind](case)


def figure(table: pl.DataFrame) -> AnyChart:
    runs = _runs(table).sort("R").rename({"depth": "H"})
    bound = runs.filter(pl.col("R").is_finite()).select(reached="R", R="R").unique()
    runs, bound = (rows.with_columns(R=_names(rows["R"])) for rows in (runs, bound.sort("R")))
    widths = runs["width"].unique().sort().to_list()
    losses = [
        curves(runs.filter(width=m), "R", "least", "H", title=f"adversarial loss, m = {m}",
               y_title="least of a run", log_y=True)
        for m in widths
    ]  # fmt: skip
    displacement = curves(
        runs.filter(width=widths[-1]), "R", "reached", "H", theory=bound,
        title=f"displacement, m = {widths[-1]}; dashed: R",
        y_title="largest of a run, times sqrt(m)",
    )  # fmt: skip
    straight = table.filter(kind="linearity").rename({"depth": "H"})
    residuals = [_residuals(straight.filter(R=R), R) for R in straight["R"].unique().sort()]
    return panels([*losses, displacement, _worst(table.filter(kind="worst")), *residuals])


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    training, runs = table.filter(kind="training"), _runs(table)
    moved, guarded = table.filter(kind="inputs"), table.filter(kind="guard")
    falls = _slopes(table.filter(kind="linearity"))
    at_ten, at_one = (runs.filter(R=R) for R in (10.0, 1.0))
    claims, slope = Claims(ABOUT.claims), "slope of log residual in log m"
    return [
        claims.below("6a", _largest(training, pl.col("displacement") / pl.col("R") - 1), 1e-6,
            what="displacement over its bound, less 1, the largest of all runs and steps,"),
        claims.below("6b", _differing(training, runs), 0.5,
            what="number of steps whose loss or displacement differs, over all such runs,"),
        claims.below("6c", _largest(at_ten, pl.col("projections")), 0.5,
            what="number of projections, the largest of all runs at R = 10,"),
        claims.above("6d", groups(at_one, "projected", *SETTING), OFTEN,
            what="share of steps that project at R = 1"),
        claims.below("7", _ratios(runs), NOISE, what="least loss over that of the next smaller R"),
        claims.below("9a", _wide_slopes(table, with_log=True), SLOPES["m^(-1/6)"],
            what="slope of log(residual / sqrt(log m)) in log m"),
        # -1/4 and -1/12 are outside, as is -1/2.
        claims.equal("9b", _wide_slopes(table), SLOPES["m^(-1/6)"], 0.03, what=slope),
        # 1 and 2 are outside.
        claims.equal("9c", _radius_slopes(table), 4 / 3, 0.05,
            what="slope of log residual in log R"),
        claims.within("9d", _depth_slopes(table), 0, 2.5, what="slope of log residual in log H"),
        claims.below("9e", falls, SLOPES["m^(-1/2)"], what=slope),
        claims.below("14a", _largest(moved, pl.col("masks")), 0.5,
            what="number of units that differ, the largest of all pairs of inputs,"),
        claims.below("14b", _largest(moved, pl.col("difference")), 1e-10,
            what="difference of pre-activations, the largest of all pairs of inputs,"),
        claims.below("14c", _largest(moved, pl.col("ratio")), 1,
            what="move over its bound, the largest of all pairs of inputs,"),
        claims.below("19a", _wrong(guarded), 0.5,
            what="number of wrong decisions over all data sets and radii"),
    ]  # fmt: skip


def _runs(table: pl.DataFrame) -> pl.DataFrame:
    """One row per training run: its least loss, largest displacement, projections and their share.

    At the start nothing can have been projected, so step 0 is not counted.
    """
    training = table.filter(kind="training")
    later = pl.col("projected").filter(pl.col("step") > 0)
    return training.group_by(*SETTING, "R", "seed", maintain_order=True).agg(
        least=pl.col("loss").min(),
        reached=pl.col("displacement").max(),
        projections=later.sum(),
        projected=later.mean(),
    )


def _largest(rows: pl.DataFrame, value: pl.Expr) -> float | None:
    """Over all rows; nothing where one lacks it, or there is none."""
    if rows.is_empty():
        return None
    values = rows.select(value=value.cast(pl.Float64))["value"]
    if values.null_count():
        return None
    return float(values.to_numpy().max())


def _differing(training: pl.DataFrame, runs: pl.DataFrame) -> float | None:
    """Steps at which runs that R need not project differ from those without projection."""
    run = [*SETTING, "seed"]
    free = runs.filter(pl.col("R").is_infinite())
    reached = free.select(*run, free="reached")
    idle = runs.filter(pl.col("R").is_finite()).join(reached, on=run)
    idle = idle.filter(pl.col("free") < pl.col("R")).select(*run, "R")
    plain = training.filter(pl.col("R").is_infinite()).drop("R")
    both = training.join(idle, on=[*run, "R"]).join(plain, on=[*run, "step"], suffix=" free")
    if both.is_empty():
        return None
    same = pl.all_horizontal(pl.col(n) == pl.col(f"{n} free") for n in ("loss", "displacement"))
    return float(both.select(~same).to_series().sum())


def _ratios(runs: pl.DataFrame) -> dict[str, pl.Series]:
    """Of each width, depth and step to the next R: the ratio of the least losses, by seed.

    It is 1 for seeds that stay in the smaller ball and far below 1 for others.
    """
    ordered = runs.sort(*SETTING, "R", "seed")
    by = [*SETTING, "seed"]
    before = pl.col("least").shift(1).over(by), pl.col("R").shift(1).over(by).alias("from")
    pairs = ordered.with_columns(before[0].alias("before"), before[1]).drop_nulls("from")
    pairs = pairs.with_columns(ratio=pl.col("least") / pl.col("before"))
    return groups(pairs, "ratio", *SETTING, "from", "R")


def _slopes(rows: pl.DataFrame) -> dict[str, list[float]]:
    parts = rows.sort("R", "depth").partition_by("R", "depth", as_dict=True, maintain_order=True)
    return {
        f"R {R:g}, depth {depth}": slopes(part, "width", "residual")
        for (R, depth), part in parts.items()
    }


def _wide_slopes(table: pl.DataFrame, with_log: bool = False) -> dict[str, list[float]]:
    """For each R and seed at the exact worst move, from WIDE on."""
    rows = table.filter(kind="worst").filter(pl.col("width") >= WIDE).sort("R")
    if with_log:
        # The lemma's bound has sqrt(log m), which makes it fall more slowly at finite m.
        rows = rows.with_columns(pl.col("residual") / pl.col("width").log().sqrt())
    parts = rows.partition_by("R", as_dict=True, maintain_order=True)
    return {f"R {R:g}": slopes(part, "width", "residual") for (R,), part in parts.items()}


def _radius_slopes(table: pl.DataFrame) -> dict[str, list[float]]:
    rows = table.filter(kind="worst").filter(pl.col("width") >= WIDE).sort("width")
    parts = rows.partition_by("width", as_dict=True, maintain_order=True)
    return {f"width {m}": slopes(part, "R", "residual") for (m,), part in parts.items()}


def _depth_slopes(table: pl.DataFrame) -> dict[str, list[float]]:
    rows = table.filter(kind="depths").sort("width")
    parts = rows.partition_by("width", as_dict=True, maintain_order=True)
    return {f"width {m}": slopes(part, "depth", "residual") for (m,), part in parts.items()}


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Section 3.3 for these caps, and the orders of Theorem 4.1 for the runs in a ball."""
    training = table.filter(kind="training").filter(pl.col("R").is_finite())
    runs = training.select("width", "depth", "R").unique().iter_rows()
    deep = [(m, H, R, 0.3 / (m * H)) for m, H, R in runs]
    caps = theory.compatible_caps(DATA.separation, DELTA)
    return [caps, *theory.deep_extremes(deep, DATA.d, 0.1)]


def _worst(rows: pl.DataFrame) -> alt.LayerChart:
    """The exact worst move by width, and dashed m^(-1/6) R^(4/3), with the constant of the law."""
    m = rows["width"].unique().sort().to_numpy().astype(float)
    radii = rows["R"].unique().sort().to_list()
    constant = limit_constant()
    theory_lines = pl.concat(
        pl.DataFrame({"width": m, "R": R, "residual": constant * m ** (-1 / 6) * R ** (4 / 3)})
        for R in radii
    )
    return curves(rows.sort("R"), "width", "residual", "R", theory=theory_lines,
                  title="worst move, H = 1; dashed: its limit law", x_title="width m",
                  y_title="distance from linear", log_x=True, log_y=True)  # fmt: skip


def _wrong(rows: pl.DataFrame) -> float | None:
    if rows.is_empty():
        return None
    return float((rows["refused"] != rows["shared"]).sum())


def _names(R: pl.Series) -> pl.Series:
    """As words, so that infinity has a place on the axis."""
    return pl.Series("R", ["infinite" if math.isinf(one) else f"{one:g}" for one in R])


def _residuals(rows: pl.DataFrame, R: float) -> alt.LayerChart:
    """The residuals by width, under lines that fall with the two slopes."""
    chart = curves(rows, "width", "residual", "H", x_title="width m", log_x=True,
                   y_title="largest residual", log_y=True)  # fmt: skip
    m = rows["width"].unique().sort().to_numpy().astype(float)
    top = 1.5 * float(rows["residual"].to_numpy().max())
    guides = pl.concat(
        pl.DataFrame({"x": m, "y": top * (m / m[0]) ** slope, "line": name})
        for name, slope in SLOPES.items()
    )
    lines = alt.Chart(guides).encode(x="x:Q", y="y:Q", detail="line:N")
    dashed = lines.mark_line(color="gray", strokeWidth=1.5, strokeDash=[5, 4])
    last = lines.transform_filter(alt.datum.x == m[-1]).encode(text="line:N")
    words = last.mark_text(color="gray", align="left", baseline="middle", dx=5)
    title = f"along the loss gradient, R = {R:g}"
    return alt.LayerChart(layer=[dashed, words, chart], title=title)
