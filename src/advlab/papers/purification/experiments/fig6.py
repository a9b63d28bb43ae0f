"""Figure 6: the noise in what deep neurons look for is gone after adversarial training.

Images that excite single channels of a deep layer most, by gradient steps with a decay to black
(footnote 16), for the clean network, its control (clean training that goes on) and the
adversarially trained network: the same channels, from the same random images. The paper shows a
deep layer of ResNet trained against l2(1, 0.25): the dense mixture vanishes. Our number for it is
the correlation of neighbouring pixels, about 0 for noise and 0.9 for natural images.

At paper scale layer 27 of ResNet-34, 2000 gradient steps: a GPU is expected, about three hours per
seed on one.
"""

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart, tile_rows
from ._parts import image_scales as scales
from ._parts.image_features import BLACK, DEEP, features_of_layer, numbered_layer, smoothness
from ._parts.image_runs import ImageSettings, Trainings
from ._parts.image_scales import Stage, histories

ABOUT = lab.About(
    paper="purification",
    item="Figure 6",
    title="Adversarial training removes the noise from deep features",
    seconds={"smoke": 10, "laptop": 250, "paper": 35_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("ResNet-34", "the fourth of five convolutions; 200 gradient steps"),
    claims={
        "smoother": empirical("Features of a deep layer are purer after adversarial training: the "
                              "correlation of their neighbouring pixels is more than 0.05 above "
                              "that after clean training, and that of the control"),
    },
)  # fmt: skip
STAGES: tuple[Stage, ...] = ("clean", "control", "adversarial")


class Case(ImageSettings):
    """How features are found.

    Args:
        feature_steps: of gradient ascent.
        layer: the number of the convolution, in ResNet-34.
    """

    feature_steps: int = 200
    layer: int = 27


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    some = {"smoke": {"feature_steps": 5}, "paper": {"feature_steps": 2000}}
    return scales.cases(Case, scale, seeds, "ResNet-34", **some)


def compute(case: Case) -> pl.DataFrame:
    """Pictures of features (part "tile") and the numbers that decide (part "end")."""
    trainings, known = Trainings(case), histories(case)
    tiles, numbers = [], scales.accuracy_numbers(trainings, STAGES)
    for stage in STAGES:
        net = trainings.network(*known[stage])
        layer = DEEP if case.network == "large filters" else numbered_layer(net, case.layer)
        found = features_of_layer(case, net, layer, steps=case.feature_steps, towards=BLACK)
        tiles.append(tile_rows(found.numpy(), row=scales.WORDS[stage]))
        numbers |= {f"{stage}: {name}": one for name, one in smoothness(found).items()}
    return pl.concat([*tiles, scales.end_row(case, numbers)], how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(
        scales.first_tiles(table), title="What channels of a deep layer look for (decay to black)"
    )
    looks = {
        "autocorrelation": "correlation of neighbouring pixels",
        "high frequencies": "energy at periods below 4 pixels",
    }
    charts = [
        points(scales.by_stage(table, column, STAGES), "stage", "value", x_title=" ", y_title=words)
        for column, words in looks.items()
    ]
    return stacked(grid, panels(charts))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    gains = scales.over(table, "autocorrelation", "adversarial", "clean", "control")
    what = "correlation of neighbouring pixels of features, gained"
    return [Claims(ABOUT.claims).above("smoother", gains, 0.05, what=what)]
