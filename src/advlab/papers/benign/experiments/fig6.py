"""Figure 6: on MNIST robust training loss and robust test error both go to zero.

Both against iterations, for ||mu|| in {3, 5, 7, 10} at d = 784 and ratio 0.1 (left), for d in {289,
400, 784, 1024} at ||mu|| = 5 and ratio 0.1 (middle), for ratios in {0.05, 0.1, 0.15, 0.2} at
||mu|| = 10 and d = 784 (right); five runs. The paper sees both go to zero in all of them (Appendix
A); the claims here are about ratio 0.1 and ||mu|| >= 5. No label is flipped, so the best test error
is 0. Bands are one standard error over the runs, as in the paper.

At laptop scale the width is 200 in place of 1000, because a step of the wide network takes four
times as long, training stops at half of its 1000 steps, just before the rate falls to 0.01, and
there are fifteen seeds.

At smoke scale, without the MNIST files, a stand-in is drawn: two classes of smooth blobs, left and
right.
"""

import polars as pl

from .... import lab
from ....data import zeros_and_ones
from ....report import Assumption, Claims, Verdict, empirical
from ....report.charts import AnyChart, curves, panels
from ....report.samples import ends, groups
from ._parts import mnist_runs
from ._parts.mnist_runs import Case as Case
from ._parts.mnist_runs import compute as compute

ABOUT = lab.About(
    paper="benign",
    item="Figure 6",
    title="Robust training loss and robust test error on MNIST go to zero",
    seconds={"smoke": 4, "laptop": 250, "paper": 900},
    data=("mnist",),
    looks=2,
    reduced={
        "laptop": "width 200 of 1000 and 500 of 1000 steps; it says nothing about the paper's "
        "width and steps"
    },
    claims={
        "19a": empirical(
            "On MNIST with ratio 0.1 and ||mu|| >= 5 the robust training loss ends below 0.01"
        ),
        "19b": empirical("and the robust test error ends below 0.03"),
    },
)
COLUMNS = {
    "mu_norm": [(mu, 28, 0.1) for mu in (3.0, 5.0, 7.0, 10.0)],
    "d": [(5.0, side, 0.1) for side in (17, 20, 28, 32)],
    "ratio": [(10.0, 28, ratio) for ratio in (0.05, 0.1, 0.15, 0.2)],
}
"""What varies in each column of the figure, and its (||mu||, side, ratio)."""
TIMES = (1, 2, 5, 10, 20, 35, 60, 100, 200, 350, 500, 700)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, block, steps, more = {
        "smoke": (3, 3, 20, {"n": 20, "width": 20, "tested": 100}),
        "laptop": (15, 5, 500, {"width": 200}),
        "paper": (5, 1, 1000, {}),
    }[scale]
    settings = dict.fromkeys(one for column in COLUMNS.values() for one in column)
    shown = tuple(step for step in TIMES if step < steps)
    return mnist_runs.recipe(
        scale, list(settings), seeds or usual, block, steps=steps, measured_at=shown, **more
    )


def figure(table: pl.DataFrame) -> AnyChart:
    columns = {
        "mu_norm": ("||mu||", "d = 784, alpha = 0.1 ||mu||"),
        "d": ("d", "||mu|| = 5, alpha = 0.1 ||mu||"),
        "ratio": ("alpha/||mu||", "||mu|| = 10, d = 784"),
    }
    rows = {
        "loss": {"y_title": "robust training loss", "log_y": True},
        "robust_error": {"y_title": "robust test error (PGD: lower bound)"},
    }
    charts = [
        curves(
            _column(table, name).rename({name: color}),
            "step",
            value,
            color,
            title=title,
            x_title="iterations",
            log_x=True,
            band="standard error",
            **look,
        )
        for value, look in rows.items()
        for name, (color, title) in columns.items()
    ]
    return panels(charts, title=zeros_and_ones.TITLES[table["source"][0]], columns=3)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return mnist_runs.reached(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    decisive = ends(table).filter(pl.col("ratio") == 0.1, pl.col("mu_norm") >= 5)
    loss, error = (groups(decisive, value, "mu_norm", "d") for value in ("loss", "robust_error"))
    claims = Claims(ABOUT.claims)
    found = [
        claims.below("19a", loss, 0.01, what="final robust training loss"),
        claims.below("19b", error, 0.03, what="robust error"),
    ]
    return mnist_runs.with_note(table, found)


def _column(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """The runs of the figure's column where `name` varies."""
    settings = pl.DataFrame(
        [(mu, side**2, ratio) for mu, side, ratio in COLUMNS[name]],
        schema=["mu_norm", "d", "ratio"],
        orient="row",
    )
    return table.join(settings, on=["mu_norm", "d", "ratio"], how="semi")
