"""Figure 2: the robust training loss goes to 0 while the robust test error goes to the noise rate.

Robust training loss and robust test error against iterations, for signals ||mu|| in {4, 6, 8, 10}
(top), dimensions d in {500, 1000, 1500} (middle) and ratios alpha/||mu|| in {0.05, 0.1, 0.15}
(bottom). The paper: the loss goes to 0, the error to beta = 0.1; smaller ||mu||, larger d and a
larger ratio are worse (Section 5).

Bands are one standard deviation over the runs. At laptop scale there are six seeds, and training
stops at half of its 1000 steps, just before the rate falls to 0.01.
"""

from itertools import pairwise

import polars as pl

from .... import lab
from ....report import Claims, Verdict, sample
from ....report.charts import AnyChart, curves, panels
from ._parts.synthetic_claims import fits_robustly, is_not_beaten, with_note
from ._parts.synthetic_runs import Case as Case
from ._parts.synthetic_runs import mixture

ABOUT = lab.About(
    paper="benign",
    item="Figure 2",
    title="Robust training loss goes to 0, robust test error to the noise rate",
    seconds={"smoke": 5, "laptop": 480, "paper": 1500},
    looks=1,
    claims={
        "2E": "The robust training loss falls below 0.01",
        "2Ed": "and it falls over each decade of iterations",
        "3a": "With ||mu|| >= 6 at d = 1000 the robust test error goes to beta",
        "3b": "The robust test error does not rise with ||mu||",
        "3c": "The robust test error does not fall with d",
        "3d": "The robust test error does not fall with alpha/||mu||",
        "5Ea": "Every network fits all its training points robustly, flipped or not",
        "5Eb": "and yet the clean test error stays at beta",
        "6E": "No network beats the lower bound of Theorem 3.2",
    },
)
NAME = "benign/fig2 decisive"
BETA, CLOSE = 0.1, 0.03
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
    return [
        Case(
            mu_norm=mu, d=d, ratio=ratio, beta=BETA, steps=steps, measured_at=shown, **settings, **b
        )
        for b in lab.blocks(seeds or usual, block)
        for mu, d, ratio in dict.fromkeys(one for row in ROWS.values() for one in row)
    ]


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
        shared = {"color": color, "title": fixed, "x_title": "iterations", "log_x": True}
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


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    last = table.filter(pl.col("step") == pl.col("step").max())
    top, middle, bottom = (_row(last, name) for name in ROWS)
    strong = top.filter(pl.col("mu_norm") >= 6)
    excess = strong.with_columns(away=pl.col("robust_error") - pl.col("beta"))
    one_error = (BETA * (1 - BETA) / table["tested"][0]) ** 0.5
    claims = Claims(ABOUT.claims)
    error, slack = "robust_error", {"slack": one_error, "what": "robust test error"}
    best = strong.group_by("seed").agg(away=pl.col("clean_error").mean() - BETA)
    near = sample(excess, "away", by="mu_norm")
    return with_note(
        [
            claims.below("2E", _worst(last), 0.01, what="largest final loss of a run"),
            claims.below("2Ed", _decades(table), 1, what="largest ratio of a run's losses"),
            claims.within("3a", near, -CLOSE, CLOSE, what="robust test error less beta"),
            claims.decreasing("3b", top, "mu_norm", error, **slack),
            claims.increasing("3c", middle, "d", error, **slack),
            claims.increasing("3d", bottom, "ratio", error, **slack),
            fits_robustly(claims, "5Ea", last),
            claims.above(
                "5Eb",
                sample(best, "away"),
                -2 * one_error,
                what="clean test error less beta, mean over ||mu|| >= 6,",
            ),
            is_not_beaten(claims, "6E", last),
        ]
    )


def _row(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """The runs of the figure's row where `name` varies."""
    settings = pl.DataFrame(ROWS[name], schema=["mu_norm", "d", "ratio"], orient="row")
    return table.join(settings, on=["mu_norm", "d", "ratio"], how="semi")


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
