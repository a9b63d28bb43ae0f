"""Figure 2: the robust training loss goes to 0 while the robust test error goes to the noise rate.

Robust training loss and robust test error against iterations, for signals ||mu|| in {4, 6, 8, 10}
(top), dimensions d in {500, 1000, 1500} (middle) and ratios alpha/||mu|| in {0.05, 0.1, 0.15}
(bottom). The paper: the loss goes to 0, the error to beta = 0.1; smaller ||mu||, larger d and a
larger ratio are worse (Section 5).

Bands are one standard error over the runs, as in the paper. At laptop scale there are six seeds,
and training stops at half of its 1000 steps, just before the rate falls to 0.01.
"""

from itertools import pairwise

import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, sample, theorem
from ....report.charts import AnyChart, curves, panels
from ._parts.synthetic_claims import (
    STANDS,
    checked,
    fits_robustly,
    is_not_beaten,
    reached,
    with_note,
)
from ._parts.synthetic_runs import Case as Case
from ._parts.synthetic_runs import mixture

ABOUT = lab.About(
    paper="benign",
    item="Figure 2",
    title="Robust training loss goes to 0, robust test error to the noise rate",
    seconds={"smoke": 5, "laptop": 420, "paper": 1500},
    looks=1,
    reduced={"laptop": "500 of 1000 steps, 6 of 10 seeds"},
    claims={
        "2E": empirical("The robust training loss falls below 0.01"),
        "2Ed": empirical("and it falls over each decade of iterations"),
        "3a": empirical(
            "With ||mu|| >= 6 at d = 1000 the robust test error goes to beta, up to 0.03"
        ),
        "3b": empirical(
            "A smaller ||mu|| is worse: the robust test error at ||mu|| = 4 is above that at 6, 8 "
            "and 10"
        ),
        "3c": empirical("A larger d is worse: the robust test error rises from each d to the next"),
        "3d": empirical(
            "A larger alpha/||mu|| is worse: the robust test error rises from each to the next"
        ),
        "5Ea": empirical("Every network fits all its training points robustly, flipped or not"),
        "5Eb": empirical("and yet with ||mu|| >= 6 the clean test error stays at beta, up to 0.02"),
        "6E": theorem(STANDS),
    },
)
NAME = "benign/fig2 decisive"
BETA = 0.1
CLOSE, STAYS = 0.03, 0.02
"""What "goes to beta" and "stays at beta" mean: a coin's 0.5, and an error on one clean point
in 30, are further off."""
ROWS = {
    "mu_norm": [(mu, 1000, 0.1) for mu in (4.0, 6.0, 8.0, 10.0)],
    "d": [(5.0, d, 0.1) for d in (500, 1000, 1500)],
    "ratio": [(5.0, 1000, ratio) for ratio in (0.05, 0.1, 0.15)],
}
"""What varies in each row of the figure, and its (||mu||, d, ratio)."""
TIMES = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    steps, usual, block, settings = {
        "smoke": (20, 3, 3, {"n": 20, "width": 20, "tested": 100}),
        "laptop": (500, 6, 1, {}),
        "paper": (1000, 10, 1, {}),
    }[scale]
    shown = tuple(step for step in TIMES if step < steps)
    fixed = {"beta": BETA, "steps": steps, "measured_at": shown, **settings}
    return checked(
        [
            Case(mu_norm=mu, d=d, ratio=ratio, **fixed, **some)
            for some in lab.blocks(seeds or usual, block)
            for mu, d, ratio in dict.fromkeys(one for row in ROWS.values() for one in row)
        ]
    )


def compute(case: Case) -> pl.DataFrame:
    return mixture(case, NAME)


def figure(table: pl.DataFrame) -> AnyChart:
    charts = []
    for name, color, fixed in (
        ("mu_norm", "||mu||", "d = 1000, alpha = 0.1 ||mu||"),
        ("d", "d", "||mu|| = 5, alpha = 0.1 ||mu||"),
        ("ratio", "alpha/||mu||", "||mu|| = 5, d = 1000"),
    ):
        rows = _row(table, name).rename({name: color})
        shared = {"color": color, "title": fixed, "x_title": "iterations", "log_x": True,
                  "band": "standard error"}  # fmt: skip
        charts.append(
            curves(rows, "step", "loss", y_title="robust training loss", log_y=True, **shared)
        )
        charts.append(
            curves(
                rows,
                "step",
                "robust_error",
                y_title="robust test error (PGD: lower bound)",
                theory=pl.DataFrame({"robust_error": [BETA]}),
                **shared,
            )
        )
    return panels(charts, columns=2)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return reached(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    last = table.filter(pl.col("step") == pl.col("step").max())
    top, middle, bottom = (_row(last, name) for name in ROWS)
    strong = top.filter(pl.col("mu_norm") >= 6)
    excess = strong.with_columns(away=pl.col("robust_error") - pl.col("beta"))
    claims = Claims(ABOUT.claims)
    error, named = "robust_error", "robust test error"
    best = strong.group_by("seed").agg(away=pl.col("clean_error").mean() - BETA)
    near = sample(excess, "away", by="mu_norm")
    return with_note(
        [
            claims.below("2E", _worst(last), 0.01, what="largest final loss of a run"),
            claims.below("2Ed", _decades(table), 1, what="largest ratio of a run's losses"),
            claims.equal("3a", near, 0, CLOSE, what="robust test error less beta"),
            claims.above("3b", _lead(top), 0, what="robust test error at ||mu|| = 4 less another"),
            claims.increasing("3c", middle, "d", error, what=named),
            claims.increasing("3d", bottom, "ratio", error, what=named),
            fits_robustly(claims, "5Ea", last),
            claims.equal(
                "5Eb",
                sample(best, "away"),
                0,
                STAYS,
                what="clean test error less beta, mean over ||mu|| >= 6,",
            ),
            is_not_beaten(claims, "6E", last),
        ]
    )


def _row(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """The runs of the figure's row where `name` varies."""
    settings = pl.DataFrame(ROWS[name], schema=["mu_norm", "d", "ratio"], orient="row")
    return table.join(settings, on=["mu_norm", "d", "ratio"], how="semi")


def _lead(top: pl.DataFrame) -> dict[str, pl.Series]:
    """The error of the smallest signal less that of each other one, by seed."""
    levels = top["mu_norm"].unique().sort()
    least = top.filter(pl.col("mu_norm") == levels[0]).sort("seed")
    return {
        f"||mu|| = {level:g}": least["robust_error"]
        - top.filter(pl.col("mu_norm") == level).sort("seed")["robust_error"]
        for level in levels[1:]
    }


def _worst(last: pl.DataFrame) -> pl.Series | dict[str, pl.Series]:
    return sample(last.group_by("seed").agg(pl.col("loss").max()), "loss")


def _decades(table: pl.DataFrame) -> dict[str, pl.Series]:
    """Of each decade, and seed, the largest loss(end)/loss(start) of its runs."""
    last = int(table["step"].to_numpy().max())
    ends = [1, *(step for step in (10, 100) if step < last), last]
    run = ["seed", "mu_norm", "d", "ratio"]
    found = {}
    for start, end in pairwise(ends):
        both = table.filter(step=end).join(table.filter(step=start), on=run, suffix=" before")
        ratio = (pl.col("loss") / pl.col("loss before")).max()
        found[f"steps {start} to {end}"] = both.group_by("seed").agg(ratio).sort("seed")["loss"]
    return found
