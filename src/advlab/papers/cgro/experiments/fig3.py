"""Figure 3: global flatness grows faster than local, and the robust gap grows with it.

Appendix E. On CIFAR-10, over the epochs of adversarial training in linf balls of eps0: left, local
flatness (the mean over training data of max ||grad_x L||_1 within eps0) and global flatness (the
same over test data) by epoch; right, the robust generalisation gap (robust loss of test less that
of training data) against global flatness, one point per epoch. The paper reads from it that
"global flatness grows much faster than local" and that the gap increases with it. Larger flatness
is sharper.

"Much faster" is here: the growth factor from the first snapshot to the last is more than 1.5 times
as large. The gap is that of the loss, as in Theorem E.1; the table has accuracies too. Everything
that rises with the epochs correlates with everything else that does, so claim c asks for more: that
the gap rises more between those snapshots between which flatness does.

At laptop scale the runs are those of Figures 1 and 2 on 1000 images; both flatnesses are searched
by the same PGD-10, so that their comparison is fair although each is a lower bound. Paper scale has
ResNet9, all images and the fast training of Wong et al. (a GPU is expected, with half an hour of
one for five seeds).
"""

import polars as pl
from scipy import stats

from .... import lab
from ....report import Claims, Verdict, empirical, ours, sample
from ....report.charts import AnyChart, curves, panels, points
from ._parts import image_runs
from ._parts.image_runs import Case as Case
from ._parts.image_runs import compute as compute

ABOUT = lab.About(
    paper="cgro",
    item="Figure 3",
    title="Local and global flatness over training, and the robust generalisation gap",
    seconds={"smoke": 5, "laptop": 300, "paper": 2000},
    looks=1,
    data=("cifar10",),
    reduced={
        "laptop": "1000 of 50,000 images, a small network with BatchNorm for ResNet9, Adam against "
        "PGD-3 for fast training"
    },
    claims={
        "20a": empirical(
            "Global flatness grows by a factor more than 1.5 times that of local flatness"
        ),
        "20b": empirical(
            "The robust gap increases with global flatness: a rank correlation above 0.8 over the "
            "epochs of a run"
        ),
        "20c": ours(
            "The gap rises more between snapshots between which global flatness rises more: a rank "
            "correlation of the changes above 0.3"
        ),
    },
)
FASTER, MONOTONE, TOGETHER = 1.5, 0.8, 0.3


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    settings, usual = {
        "smoke": (image_runs.SMOKE, 2),
        "laptop": (image_runs.CIFAR, 5),
        "paper": (image_runs.WONG, 5),
    }[scale]
    return image_runs.cases(seeds, usual, settings)


def paired(table: pl.DataFrame) -> pl.DataFrame:
    """A row per seed and snapshot: local and global flatness at eps0, and both robust gaps.

    Args:
        table: rows of `compute` with the settings of their cases.
    """
    rows = table.filter(share=1.0)
    train, test = rows.filter(part="train"), rows.filter(part="test")
    return train.join(test, on=["seed", "step"], suffix=" test").select(
        "seed", "step", local="sharp", everywhere="sharp test",
        gap=pl.col("robust_loss test") - pl.col("robust_loss"),
        accuracy_gap=pl.col("robust") - pl.col("robust test"),
    ).sort("seed", "step")  # fmt: skip


def figure(table: pl.DataFrame) -> AnyChart:
    rows = paired(table)
    sides = {"local": "training data (local)", "everywhere": "test data (global)"}
    left = rows.unpivot(list(sides), index=["seed", "step"], variable_name="side")
    left = left.with_columns(pl.col("side").replace_strict(sides))
    right = rows.with_columns(run=pl.col("seed").rank("dense").cast(pl.Int64))
    charts: list[AnyChart] = [
        curves(left, "step", "value", "side", title="flatness over training", x_title="epoch",
               y_title="mean of max ||grad_x L||_1 within eps0 (found)"),
        points(right, "everywhere", "gap", "run", title="gap against global flatness",
               x_title="global flatness", y_title="robust loss, test less training"),
        points(right, "everywhere", "accuracy_gap", "run", title="the same for accuracy",
               x_title="global flatness", y_title="robust accuracy, training less test"),
    ]  # fmt: skip
    return panels(charts, title=image_runs.TITLES[table["data"][0]])


def _correlation(x: pl.Series, y: pl.Series) -> float:
    if x.n_unique() == 1 or y.n_unique() == 1:
        return float("nan")
    return float(stats.spearmanr(x.to_numpy(), y.to_numpy())[0])  # type: ignore[arg-type]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, found = Claims(ABOUT.claims), []
    for (seed,), run in paired(table).partition_by("seed", as_dict=True).items():
        first, last = run[0], run[-1]
        growth = [
            last[name].to_numpy() / first[name].to_numpy() for name in ("everywhere", "local")
        ]
        flat, gap = run["everywhere"], run["gap"]
        found.append({
            "seed": seed,
            "faster": (growth[0] / growth[1]).item(),
            "follows": _correlation(flat, gap),
            "changes": _correlation(flat.diff()[1:], gap.diff()[1:]),
        })  # fmt: skip
    rows = pl.DataFrame(found)
    decided = [
        claims.above("20a", sample(rows, "faster"), FASTER,
            what="growth factor of global flatness over that of local, first to last snapshot,"),
        claims.above("20b", sample(rows, "follows"), MONOTONE,
            what="rank correlation over snapshots of robust loss gap and global flatness"),
        claims.above("20c", sample(rows, "changes"), TOGETHER,
            what="rank correlation of their changes from snapshot to snapshot"),
    ]  # fmt: skip
    return image_runs.with_note(table, decided)
