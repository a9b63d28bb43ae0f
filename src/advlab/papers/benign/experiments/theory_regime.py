r"""The lemmas of benign overfitting where their theorems speak: inside Assumption 1, by its C.

Assumption 1 asks for $d \ge C n \|\mu\|^2$ and more of that kind, "for some large C". The setting
of `lemmas` reaches C of about 1, so what fails there says nothing about the theorems. Here signal
and dimension are the smallest that meet every line with a given C (`theory.smallest_inside`), from
C = 0.03 to 30: d is 1.5e7 at C = 10 and 4e10 at C = 30, which costs no more than d = 1000, because
the law of the reduced problem is drawn and no d-vector is made.

The claims are decided on the runs that reach C >= 10: line (2), beta <= 1/C, allows no more at the
paper's noise rate of 0.1. The curves show the share of runs in which each lemma holds, over C.
Runs of the `assumed` pace have the step size of line (4), 1/(C d^2), for five steps; those of the
`fast` pace have 2 n/d, against line (4), and train until the loss is small. n = m = 76 (260 at
C = 30), delta = 0.05, alpha = 0.1 ||mu|| and ||mu||.
"""

import polars as pl

from .... import lab
from ....models import SHAPES as ACTIVATIONS
from ....report import Assumption, Claims, Verdict, empirical, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ..theory import first_step_floor, smallest_inside, span_distance_bound
from ._parts import conditions
from ._parts.conditions import ASKED, DELTA, NAME, ROUNDING
from ._parts.lemmas_runs import SHAPES
from ._parts.regime_runs import RegimeCase as Case
from ._parts.regime_runs import regime_run

ABOUT = lab.About(
    paper="benign",
    item="Assumption 1 and Appendix B",
    title="The lemmas inside Assumption 1, over its constant C",
    seconds={"smoke": 5, "laptop": 80, "paper": 1500},
    looks=1,
    claims={
        "good": theorem(
            "at least 80 % of draws are good runs (Lemmas B.3, B.4 and B.19 say 95 %)", NAME
        ),
        "1": theorem("on every good run the robust training error is 0 at every t >= 1", NAME),
        "9a": theorem(
            "on every good run attacked inputs are within omega sqrt(m d)/eta of the span of the "
            "data",
            NAME,
        ),
        "10": theorem(
            "on every good run <mu, y x~>/||mu||^2 stays in [1/3, 3] for clean and [-3, -1/3] for "
            "flipped labels",
            NAME,
        ),
        "12": theorem(
            "on every good run the first step moves the weights by gamma ||mu||/10 of their size "
            "or more",
            NAME,
        ),
        "13a": theorem(
            "without smoothness, on every good run, at least 5 % of examples and neurons are "
            "active, for each neuron and example, at t = 0 and 1",
            NAME,
        ),
        "13b": theorem(
            "without smoothness, on every good run, no neuron's or example's count falls from "
            "t = 0 to 1",
            NAME,
        ),
        "13c": theorem(
            "without smoothness, on every good run, an active pair with y = a stays active", NAME
        ),
        "14": theorem("on every good run no margin decreases anywhere in the balls", NAME),
        "16a": empirical(
            "at alpha = 0.1 ||mu|| the weights of every good run have a cosine of 0.99 or more "
            "with those of standard training",
            NAME,
        ),
        "16c": ours(
            "that cosine is 0.99 or more on every good run with alpha at most a third of "
            "||mu||^2 sqrt(n/d), the size of the margin",
            NAME,
        ),
        "21": theorem(
            "with all three activations every good run ends with robust training error 0, flipped "
            "labels included, robust training loss below 0.01 that fell all along, and a clean "
            "test error within 0.01 of beta",
            NAME,
        ),
    },
)
CLAIMS = Claims(ABOUT.claims)
GRID = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LARGE = {"C": 30.0, "n": 260, "width": 260, "beta": 1 / 30, "steps": 3, "tests": 200}
FAST = {"pace": "fast", "steps": 150}
BY = ("activation", "ratio", "pace")
ZERO = 1e-12
NAMES = {"smoothed_leaky_relu": "SLReLU", "leaky_relu": "leaky ReLU", "relu": "ReLU"}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, block = {"smoke": (2, 2), "laptop": (40, 20), "paper": (200, 20)}[scale]
    asked = seeds or usual
    settings: list[tuple[int, float, dict]] = [
        *((asked, 0.1, {"C": C}) for C in GRID),
        *((asked, 1.0, {"C": C}) for C in (1.0, 10.0)),
        *((asked, 0.1, {"C": C, **FAST}) for C in (1.0, 10.0)),
        (max(asked // 4, 1), 0.1, LARGE),
    ]
    if scale == "smoke":
        settings = [(asked, 0.1, {"C": 1.0}), (asked, 0.1, {"C": 10.0, **FAST, "steps": 12})]
    return [
        _case(ratio, {**one, "activation": shape}, some)
        for number, ratio, one in settings
        for shape in SHAPES
        for some in lab.blocks(number, block)
    ]


def _case(ratio: float, one: dict, some: dict) -> Case:
    sizes = {"n": 76, "width": 76, **one}
    mu_norm, d = smallest_inside(sizes["C"], sizes["n"], sizes["width"], ratio, DELTA)
    return Case(mu_norm=mu_norm, d=d, alpha=ratio * mu_norm, delta=DELTA, **sizes, **some)


def compute(case: Case) -> pl.DataFrame:
    return regime_run(case)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """What the deciding runs reach; without any, what all runs reach."""
    runs = _runs(table)
    inside = runs.filter("inside")
    found = conditions.settings(runs if inside.is_empty() else inside)
    return [*conditions.reached(found), conditions.good_draws(found, flips="count")]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    inside = _runs(table).filter("inside")
    if inside.is_empty():
        return [CLAIMS.outside(label, f"no run reaches C = {ASKED:g}") for label in ABOUT.claims]
    good = inside.filter("good")
    kinked = good.filter(pl.col("activation") != "smoothed_leaky_relu")
    found = [CLAIMS.share("good", _flags(inside, "good"), 0.8, what="being a good run")]
    for label, name in _LEMMAS.items():
        rows = kinked if label.startswith("13") else good
        rows = rows.filter(_NEAR[label]) if label in _NEAR else rows
        found.append(CLAIMS.every(label, _flags(rows, label), what=name))
    found.append(CLAIMS.every("21", _all_pass(good), what="all three activations"))
    return found


_LEMMAS = {
    "1": "robust training error of 0",
    "9a": "distance to the span within its bound",
    "10": "signal of attacked inputs in its range",
    "12": "first step of the size that B.34 says",
    "13a": "active share of 5 % or more",
    "13b": "no fall of a count",
    "13c": "no lost pair",
    "14": "no fall of a margin",
    "16a": "cosine of 0.99 or more",
    "16c": "cosine of 0.99 or more",
}
_NEAR = {
    "16a": pl.col("ratio") <= 0.1 * (1 + ROUNDING),
    "16c": pl.col("alpha") <= pl.col("mu_norm") ** 2 * (pl.col("n") / pl.col("d")).sqrt() / 3,
}
"""Radii of the claims about closeness to standard training."""


def _flags(rows: pl.DataFrame, label: str) -> dict[str, pl.Series]:
    """By activation, radius and pace, one flag per run; those of all C together."""
    parts = rows.partition_by(*BY, as_dict=True, maintain_order=True)
    return {
        f"{shape}, alpha = {ratio:g} ||mu||, {pace}": one.sort("C", "seed")[label]
        for (shape, ratio, pace), one in parts.items()
    }


def _runs(table: pl.DataFrame) -> pl.DataFrame:
    """A column for each lemma: whether it holds in the run; and whether the run is inside."""
    rows = table.with_columns(ratio=(pl.col("alpha") / pl.col("mu_norm")).round(6))
    inside = [one.inside for one in map(conditions.setting, rows.iter_rows(named=True))]
    floors = [
        first_step_floor(length, ACTIVATIONS[shape]().gamma or 0.0)
        for length, shape in rows.select("mu_norm", "activation").iter_rows()
    ]
    reach = [
        span_distance_bound(*one)
        for one in rows.select("omega", "width", "d", "eta", "alpha").iter_rows()
    ]
    clean = pl.col("clean signal low").ge(1 / 3) & pl.col("clean signal high").le(3)
    noisy = pl.col("noisy signal low").ge(-3) & pl.col("noisy signal high").le(-1 / 3)
    # Distances are differences of lengths sqrt(d): they have that much rounding.
    rounding = 1e-8 * pl.col("d").sqrt()
    return rows.with_columns(
        pl.Series("inside", inside, dtype=pl.Boolean),
        pl.Series("floor", floors, dtype=pl.Float64),
        pl.Series("reach", reach, dtype=pl.Float64),
    ).with_columns(
        pl.col("training error").le(ZERO).alias("1"),
        pl.col("span distance").le(pl.col("reach") + rounding).alias("9a"),
        (clean & noisy).alias("10"),
        pl.col("move").ge(pl.col("floor")).alias("12"),
        pl.col("active").ge(0.05 - ZERO).alias("13a"),
        pl.col("activation gain").ge(0).alias("13b"),
        pl.col("lost pairs").eq(0).alias("13c"),
        pl.col("relative step").ge(-ZERO).alias("14"),
        pl.col("cosine").ge(0.99).alias("16a"),
        pl.col("cosine").ge(0.99).alias("16c"),
    )


def _all_pass(good: pl.DataFrame) -> pl.Series:
    """Of each seed of the fast runs, whether all three activations do."""
    passed = (
        pl.col("1")
        & (pl.col("noisy training error") <= ZERO)
        & (pl.col("L_rob") < 0.01)
        & (pl.col("largest loss ratio of steps") < 1)
        & ((pl.col("clean error") - pl.col("beta")).abs() <= 0.01)
    )
    each = good.filter(pl.col("pace") == "fast").group_by("C", "seed", maintain_order=True)
    whole = each.agg(holds=passed.all(), number=pl.len()).filter(pl.col("number") == len(SHAPES))
    return whole.sort("C", "seed")["holds"]


def figure(table: pl.DataFrame) -> AnyChart:
    runs = _runs(table).with_columns(network=pl.col("activation").replace_strict(NAMES))
    near = runs.filter(pl.col("ratio") <= 0.1 * (1 + ROUNDING), pl.col("pace") == "assumed")
    look = {"x_title": "C of Assumption 1", "log_x": True, "band": "standard error", "apart": True}
    titles = {"good": "Good runs (B.3, B.4)", "1": "1: robust training error 0",
              "10": "10: attacked inputs keep mu", "12": "12: first step dominates",
              "13a": "13a: 5 % active", "13b": "13b: counts do not fall",
              "14": "14: margins do not fall", "16a": "16a: cosine of 0.99"}  # fmt: skip
    shares = [
        curves(
            near.with_columns(pl.col(label).cast(pl.Float64)), "C", label, "network",
            title=title, y_title="share of runs", **look,
        )
        for label, title in titles.items()
    ]  # fmt: skip
    unit = pl.col("mu_norm") ** 2 * (pl.col("n") / pl.col("d")).sqrt()
    numbers = near.with_columns(
        margin=pl.col("normalised margin") / unit, excess=pl.col("clean error") - pl.col("beta")
    )
    levels = {"active": ("Least active share (B.21)", 0.05),
              "cosine": ("Least cosine with standard training", 0.99),
              "margin": ("Normalised margin over ||mu||² sqrt(n/d)", None),
              "excess": ("Clean test error less beta", 0.0)}  # fmt: skip
    others = [
        curves(
            numbers, "C", name, "network", title=title, y_title="mean over runs",
            theory=None if level is None else pl.DataFrame({name: [level]}), **look,
        )
        for name, (title, level) in levels.items()
    ]  # fmt: skip
    return panels([*shares, *others], columns=3)
