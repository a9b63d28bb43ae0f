"""Figure 7: perturbations of the clean network are noise, those of the robust one are like images.

Adversarial perturbations of the same held-out images before and after adversarial training, and of
the control, found by 20 steps of PGD from the image itself. The paper shows ResNet-34: dense
before, "more aligned with actual images" after (section 5.2; numbers on sparsity are in
`purification/fig12`). Our numbers are the share of a perturbation's energy at periods below four
pixels, and the correlation of neighbouring pixels.

At paper scale ResNet-34 against l2(1, 0.25): a GPU is expected, about three hours per seed on one.
"""

import polars as pl

from .... import lab
from ....measure.spectra import autocorrelation, high_frequency_share
from ....report import Claims, Verdict, empirical
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart, tile_rows
from ._parts import image_scales as scales
from ._parts.image_runs import ImageSettings, Trainings
from ._parts.image_scales import Stage, histories

ABOUT = lab.About(
    paper="purification",
    item="Figure 7",
    title="Adversarial perturbations before and after adversarial training",
    seconds={"smoke": 8, "laptop": 230, "paper": 30_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("ResNet-34", "100 images"),
    claims={
        "frequencies": empirical("Perturbations are less like noise after adversarial training: "
                                 "their share of high frequencies is below 0.75 of that of the "
                                 "clean network, and of its control"),
        "smoother": empirical("and the correlation of their neighbouring pixels is more than 0.05 "
                              "above theirs"),
    },
)  # fmt: skip
STAGES: tuple[Stage, ...] = ("clean", "control", "adversarial")


class Case(ImageSettings):
    """The settings of the trainings alone."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return scales.cases(Case, scale, seeds, "ResNet-34")


def compute(case: Case) -> pl.DataFrame:
    """Pictures (part "tile") and the numbers that decide (part "end")."""
    trainings, known = Trainings(case), histories(case)
    images, _ = trainings.held_out
    tiles = [tile_rows(images[:12].numpy(), row="image")]
    numbers: dict[str, float] = {}
    for stage in STAGES:
        delta = trainings.perturbations(*known[stage])
        row = f"perturbation: {scales.WORDS[stage]}"
        tiles.append(tile_rows(delta[:12].numpy(), row=row, signed=True))
        numbers[f"{stage}: high frequencies"] = float(high_frequency_share(delta).mean())
        numbers[f"{stage}: autocorrelation"] = float(autocorrelation(delta).mean())
    still = images[: len(trainings.perturbations(*known["clean"]))]
    numbers["images: high frequencies"] = float(high_frequency_share(still).mean())
    numbers["images: autocorrelation"] = float(autocorrelation(still).mean())
    return pl.concat([*tiles, scales.end_row(case, numbers)], how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(
        scales.first_tiles(table),
        title="Held-out images and their perturbations, each scaled by its own largest value",
    )
    looks = {
        "high frequencies": "energy at periods below 4 pixels",
        "autocorrelation": "correlation of neighbouring pixels",
    }
    charts = [
        points(
            scales.by_stage(table, column, (*STAGES, "images")), "stage", "value", x_title=" ",
            y_title=words,
        )
        for column, words in looks.items()
    ]  # fmt: skip
    return stacked(grid, panels(charts))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, others = Claims(ABOUT.claims), ("clean", "control")
    shares = scales.ratios(table, "high frequencies", "adversarial", *others)
    gains = scales.over(table, "autocorrelation", "adversarial", *others)
    return [
        claims.below(
            "frequencies", shares, 0.75, what="ratio of high-frequency shares of perturbations"
        ),
        claims.above(
            "smoother",
            gains,
            0.05,
            what="correlation of neighbouring pixels of perturbations, gained",
        ),
    ]
