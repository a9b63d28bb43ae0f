"""Figure 2: the loss is flat within the training radius and steep beyond; how that comes about.

Section 6. After adversarial training in linf balls of radius eps0 the paper measures, on training
data and over radii eps, the mean of max ||grad_x L||_1 and of the largest rise of the loss within
eps: small within eps0, growing steeply beyond it (panels a-d, MNIST and CIFAR-10). Over the epochs
the gradients around training data within eps0 become smaller on both sets, and those around test
data of CIFAR-10 larger (panels e-h).

"Steep beyond" and "flat within" are given numbers here, as the paper prints none: the sharpness at
2 eps0 is more than 4 times that at eps0, and that at eps0/2 less than half of it. (A loss that is
linear in the input has ratios of 1; of the rise, 2 and 1/2.) "Over the epochs" is from the middle
snapshot to the last, at eps0 and at half of it. The paper trains for 15
and 20 epochs and does not say how its inner maxima are found.

At laptop scale: 1000 images, a small network (CIFAR-10) and LeNet5 (MNIST), and eps0 = 0.2 on MNIST
for the paper's 0.1, at which so few images of so easy a set leave little to see. Flat and steep are
properties of a network that has fitted its training data robustly, which these do; what needs the
paper's data sets, such as how much generalises, is not decided. Paper scale has LeNet5 and ResNet9,
all images, and the fast training of Wong et al. (a GPU is expected, with under an hour of one).
"""

from typing import Any

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical, sample
from ....report.charts import AnyChart, curves, panels
from ....report.samples import groups
from ._parts import image_runs
from ._parts.image_runs import Case as Case
from ._parts.image_runs import compute as compute

ABOUT = lab.About(
    paper="cgro",
    item="Figure 2",
    title="Sharpness within and beyond the training radius, and over the epochs",
    seconds={"smoke": 5, "laptop": 500, "paper": 3000},
    looks=1,
    data=("cifar10", "mnist"),
    reduced={
        "laptop": "1000 of 50,000 and 60,000 images, a small network with BatchNorm for ResNet9, "
        "Adam against PGD for fast training, eps0 = 0.2 for 0.1 on MNIST"
    },
    claims={
        "18a": empirical("MNIST: steep beyond, sharpness at 2 eps0 above 4 times that at eps0"),
        "18b": empirical("MNIST: flat within, sharpness at eps0/2 below half of that at eps0"),
        "18c": empirical("CIFAR-10: steep beyond, sharpness at 2 eps0 above 4 times that at eps0"),
        "18d": empirical("CIFAR-10: flat within, sharpness at eps0/2 below half of that at eps0"),
        "18e": empirical("MNIST: the loss rises more than 4 times as much within 2 eps0 as within "
                         "eps0"),
        "18f": empirical("CIFAR-10: the loss rises more than 4 times as much within 2 eps0 as "
                         "within eps0"),
        "19a": empirical("MNIST: sharpness of training data within eps0 falls over the last half "
                         "of training"),
        "19b": empirical("CIFAR-10: sharpness of training data within eps0 falls over the last "
                         "half of training"),
        "19c": empirical("CIFAR-10: sharpness of test data within eps0 rises over the last half "
                         "of training"),
    },
)  # fmt: skip
STEEP, FLAT = 4.0, 0.5


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    if scale == "laptop":
        digits = image_runs.cases(seeds, 4, image_runs.MNIST)
        return [*digits, *image_runs.cases(seeds, 5, image_runs.CIFAR)]
    if scale == "smoke":
        return image_runs.cases(seeds, 2, image_runs.SMOKE)
    return image_runs.cases(seeds, 5, image_runs.WONG_MNIST, image_runs.WONG)


SHORT = {"mnist": "MNIST", "cifar10": "CIFAR-10", "stand-in": "stand-in"}


def figure(table: pl.DataFrame) -> AnyChart:
    looked = table.filter((pl.col("share") > 1).any().over("data", "seed", "step"))
    first, last = pl.col("step").min().over("data"), pl.col("steps")
    time = pl.when(pl.col("step") == first).then(pl.lit("early"))
    time = time.when(pl.col("step") == last).then(pl.lit("end")).otherwise(pl.lit("middle"))
    looked = looked.with_columns(snapshot=time)
    x: dict[str, Any] = {"x_title": "radius / training radius"}
    steepest = "max ||grad_x L||_1 (found)"
    charts = []
    for data in table["data"].unique(maintain_order=True):
        mine = looked.filter(data=data)
        done, name = mine.filter(snapshot="end", part="train"), SHORT[data]
        charts += [
            curves(done, "share", "sharp", title=f"{name}, training: gradient", y_title=steepest,
                   **x),
            curves(done, "share", "rise", title=f"{name}, training: loss",
                   y_title="max rise of the loss (found)", **x),
            curves(mine.filter(part="train"), "share", "sharp", "snapshot",
                   title=f"{name}, training: over epochs", y_title=steepest, **x),
            curves(mine.filter(part="test"), "share", "sharp", "snapshot",
                   title=f"{name}, test: over epochs", y_title=steepest, **x),
        ]  # fmt: skip
    return panels(charts, columns=4)


def _ratio(table: pl.DataFrame, data: str, column: str, above: float, below: float) -> pl.DataFrame:
    """Of the last snapshot's training data, a column at one radius over that at another."""
    rows = table.filter(pl.col("step") == pl.col("steps"), data=data, part="train")
    pairs = rows.filter(share=above).join(rows.filter(share=below), on="seed", suffix=" below")
    return pairs.select("seed", ratio=pl.col(column) / pl.col(f"{column} below"))


def _growth(table: pl.DataFrame, data: str, part: str) -> dict[str, Any]:
    """log of the last sharpness over that of the middle snapshot, at each radius within eps0."""
    inside = pl.col("share").is_in(image_runs.INSIDE)
    rows = table.filter(inside, data=data, part=part).sort("share", "step")
    middle = pl.col("sharp").get(pl.len() // 2)
    growth = (pl.col("sharp").last() / middle).log()
    return groups(
        rows.group_by("share", "seed", maintain_order=True).agg(growth=growth), "growth", "share"
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, found = Claims(ABOUT.claims), []
    about = {"mnist": ("18a", "18b", "18e"), "cifar10": ("18c", "18d", "18f")}
    for data, (steep, flat, rise) in about.items():
        found += [
            claims.above(steep, sample(_ratio(table, data, "sharp", 2.0, 1.0), "ratio"), STEEP,
                what="sharpness of training data at 2 eps0 over that at eps0, last epoch,"),
            claims.below(flat, sample(_ratio(table, data, "sharp", 0.5, 1.0), "ratio"), FLAT,
                what="sharpness of training data at eps0/2 over that at eps0, last epoch,"),
            claims.above(rise, sample(_ratio(table, data, "rise", 2.0, 1.0), "ratio"), STEEP,
                what="largest rise of the loss at 2 eps0 over that at eps0, last epoch,"),
        ]  # fmt: skip
    what = "log of the sharpness at eps0/2 and at eps0 at the end over that of the middle snapshot"
    falling = {"19a": ("mnist", "train"), "19b": ("cifar10", "train")}
    found += [
        claims.below(id, _growth(table, *which), 0, what=what) for id, which in falling.items()
    ]
    rising = _growth(table, "cifar10", "test")
    found.append(claims.above("19c", rising, 0, what=what))
    return image_runs.with_note(table, found)
