"""Figure 5: activations become sparser as clean training goes on.

The share of ReLUs that are active on held-out images, layer by layer, against the epochs of clean
training; the paper shows WRN-28-10 on CIFAR-10 and takes from it that biases grow (section 4). We
count from the end of the first epoch, as before it BatchNorm has no statistics, and show activity
under adversarial training beside it.

At paper scale WRN-28-10 is trained for 50 epochs: a GPU is expected, about three hours per seed on
one.
"""

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical, sample
from ....report.charts import AnyChart, curves, panels
from ._parts import image_scales as scales
from ._parts.image_runs import ImageSettings, Trainings
from ._parts.image_scales import Stage, histories

ABOUT = lab.About(
    paper="purification",
    item="Figure 5",
    title="Activations become sparser during clean training",
    seconds={"smoke": 3, "laptop": 180, "paper": 40_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("WRN-28-10"),
    claims={
        "every": empirical("In every layer the share of active ReLUs is lower at the end of clean "
                           "training than after its first epoch"),
        "last": empirical("In the last layer it falls by more than 0.05"),
    },
)  # fmt: skip
SHOWN: tuple[Stage, ...] = ("clean", "from random")


class Case(ImageSettings):
    """The settings of the trainings alone."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return scales.cases(Case, scale, seeds, "WRN-28-10")


def compute(case: Case) -> pl.DataFrame:
    """One row per epoch and ReLU of clean training, and of adversarial training from random."""
    trainings, known = Trainings(case), histories(case)
    return pl.concat(
        trainings.run(*known[stage])
        .table.filter(part="activity")
        .select("epoch", "order", "active", pl.lit(stage).alias("stage"), layer=_number())
        for stage in SHOWN
    )


def _number() -> pl.Expr:
    return pl.format("ReLU {}", pl.col("order") + 1)


def figure(table: pl.DataFrame) -> AnyChart:
    titles = {"clean": "Clean training", "from random": "Adversarial training from random"}
    return panels(
        [
            curves(
                _few(table.filter(pl.col("stage") == stage, pl.col("epoch") > 0)), "epoch",
                "active", "layer", title=title, x_title="epoch", y_title="share of active ReLUs",
            )
            for stage, title in titles.items()
        ],
        columns=2,
    )  # fmt: skip


def _few(table: pl.DataFrame, most: int = 7) -> pl.DataFrame:
    """At most so many layers, from the first to the last."""
    last = int(table["order"].max())  # type: ignore[arg-type]
    shown = sorted({round(k * last / (most - 1)) for k in range(most)})
    return table.filter(pl.col("order").is_in(shown)).sort("order", "epoch")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, rows = Claims(ABOUT.claims), table.filter(stage="clean")
    first = rows.filter(epoch=1)
    end = rows.filter(pl.col("epoch") == pl.col("epoch").max())
    change = first.join(end, on=["seed", "order"], suffix=" at the end").with_columns(
        change=pl.col("active at the end") - pl.col("active")
    )
    by_layer = sample(change.sort("order", "seed"), "change", by="layer")
    last = change.filter(pl.col("order") == pl.col("order").max())
    what = "share of active ReLUs at the end less that after the first epoch"
    return [
        claims.below("every", by_layer, 0, what=what),
        claims.below("last", sample(last, "change"), -0.05, what=f"{what}, last layer"),  # type: ignore[arg-type]
    ]
