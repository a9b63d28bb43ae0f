"""Figure 1: adversarial training purifies the filters that clean training learned.

The first layer of AlexNet on CIFAR-10, the same filters side by side: at the random start, after
clean training, and after adversarial training that starts from the clean network. To the eye they
are the same filters, cleaner (section 1). We add the control that the paper does not show, clean
training that goes on for as many epochs, and two numbers for "cleaner": the share of a filter's
energy at periods below four pixels, and the correlation of neighbouring pixels.

At paper scale AlexNet is trained against l2(1, 0.25) for 50 + 50 epochs: a GPU is expected, about
an hour per seed on one.
"""

import polars as pl

from .... import lab
from ....measure.correlations import neuron_correlations
from ....report import Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart
from ._parts import image_scales as scales
from ._parts.image_runs import ImageSettings, Trainings
from ._parts.image_scales import Stage, histories

ABOUT = lab.About(
    paper="purification",
    item="Figure 1",
    title="Adversarial training purifies the filters of the first layer",
    seconds={"smoke": 8, "laptop": 230, "paper": 12_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("AlexNet"),
    claims={
        "robust": empirical("Adversarial training from the clean network raises robust accuracy by "
                            "more than 0.15, over the clean network and over its control"),
        "same": empirical("It keeps the filters: more than 90 % of those alive are most like "
                          "themselves before it"),
        "cleaner": ours("It cleans them: their share of high frequencies falls below 0.9 of that "
                        "after clean training, and of the control's"),
    },
)  # fmt: skip
STAGES: tuple[Stage, ...] = ("start", "clean", "control", "adversarial")


class Case(ImageSettings):
    """The settings of the trainings alone."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return scales.cases(Case, scale, seeds, "AlexNet")


def compute(case: Case) -> pl.DataFrame:
    """Pictures of filters (part "tile") and the numbers that decide (part "end")."""
    trainings = Trainings(case)
    known = histories(case)
    clean, robust = (trainings.network(*known[name]) for name in ("clean", "adversarial"))
    numbers = {
        **scales.accuracy_numbers(trainings, STAGES[1:]),
        **scales.filter_numbers(trainings, STAGES),
        "identity": neuron_correlations(clean, robust, case.first_layer).identity,
    }
    return pl.concat(
        [scales.filter_rows(trainings, STAGES), scales.end_row(case, numbers)], how="diagonal"
    )


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(
        scales.first_tiles(table),
        title="The same 16 filters of the first layer, each scaled by its own largest weight",
    )
    looks = {
        "robust": "robust accuracy (PGD: upper bound)",
        "high frequencies": "energy of filters at periods below 4 pixels",
        "autocorrelation": "correlation of neighbouring pixels of filters",
    }
    charts = [
        points(
            scales.by_stage(table, column, STAGES[1:] if column == "robust" else STAGES),
            "stage", "value", y_title=words, x_title=" ",
        )
        for column, words in looks.items()
    ]  # fmt: skip
    return stacked(grid, panels(charts))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    gains = scales.over(table, "robust", "adversarial", "clean", "control")
    shares = scales.ratios(table, "high frequencies", "adversarial", "clean", "control")
    return [
        claims.above("robust", gains, 0.15, what="robust accuracy gained"),
        claims.above(
            "same",
            scales.ended(table, "identity"),
            0.9,
            what="share of filters most like themselves",
        ),
        claims.below("cleaner", shares, 0.9, what="ratio of high-frequency shares of filters"),
    ]
