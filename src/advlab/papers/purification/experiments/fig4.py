"""Figure 4: images are sparse sums of the features of an adversarially trained network.

The first layer's filters, placed anywhere, are a dictionary W; Lasso finds the code y in min |W y -
x|^2 + lam |y|_1 (section 8.3, footnote 18). The paper shows images beside their reconstructions
from AlexNet's robust features, with 4.05 % of the code not zero on average or less. It gives no
error; we ask for a squared error below 0.35 of the image's at that share, and hold the features
against those of the control, whose clean training went on for as many epochs.

Images are shifted to mean zero in each channel, as in the paper, and filters have length one. At
paper scale AlexNet's 64 filters and 100 images: a GPU is expected for the training, about an hour
per seed on one.
"""

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart, tile_rows
from ._parts import image_scales as scales
from ._parts.image_reconstructions import SHARE, STAGES, reconstructions
from ._parts.image_runs import ImageSettings

ABOUT = lab.About(
    paper="purification",
    item="Figure 4",
    title="Images are sparse sums of robust features",
    seconds={"smoke": 10, "laptop": 360, "paper": 13_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("AlexNet", "24 images"),
    claims={
        "sparse": empirical("With 4.05 % of the code not zero, robust features reconstruct images "
                            "up to less than 0.35 of their squared size"),
        "control": ours("and their error is below 0.95 of that of the control's features, and of "
                        "the clean network's"),
        "learned": ours("and below half of that of random features"),
    },
)  # fmt: skip


class Case(ImageSettings):
    """What is reconstructed: see `ImageReconstructions`."""

    reconstructed: int = 24


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    some = {"smoke": {"reconstructed": 4}, "paper": {"reconstructed": 100}}
    return scales.cases(Case, scale, seeds, "AlexNet", **some)


def compute(case: Case) -> pl.DataFrame:
    """Pictures (part "tile") and errors at 4.05 % (part "end")."""
    found = reconstructions(case, reconstructed=case.reconstructed)
    at = found.table.filter(part="at", target="images", share=SHARE)
    numbers = {f"{row['features']}: error": row["error"] for row in at.iter_rows(named=True)}
    images = found.arrays["images"][:12]
    mean = images.mean((2, 3), keepdims=True)
    tiles = [tile_rows(images, row="image")]
    tiles += [
        tile_rows(found.arrays[f"{stage}: reconstruction"][:12] + mean,
                  row=f"from features: {scales.WORDS[stage]}")
        for stage in STAGES[::-1]
    ]  # fmt: skip
    return pl.concat([*tiles, scales.end_row(case, numbers)], how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(
        scales.first_tiles(table), title="Held-out images from about 4 % of the code, by Lasso"
    )
    errors = points(
        scales.by_stage(table, "error", STAGES), "stage", "value", x_title="features",
        y_title="squared error at 4.05 % nonzeros, over the image's",
    )  # fmt: skip
    return stacked(grid, panels([errors]))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, what = Claims(ABOUT.claims), "ratio of squared errors at 4.05 % nonzeros"
    error = scales.ended(table, "adversarial: error")
    learned = scales.ratios(table, "error", "adversarial", "start")
    control = scales.ratios(table, "error", "adversarial", "control", "clean")
    return [
        claims.below("sparse", error, 0.35, what="squared error at 4.05 % nonzeros"),
        claims.below("control", control, 0.95, what=what),
        claims.below("learned", learned, 0.5, what=what),
    ]
