"""Figure 10: deep features of robust networks can be looked at, those of clean networks are noise.

As `purification/fig6`, for several deep layers, with a decay to grey: images that excite single
channels most, for the clean network, its control and the adversarially trained network. The paper
shows AlexNet and ResNet-34; only the robust networks give meaningful pictures (section 8.1).

At paper scale AlexNet's four deep convolutions, 2000 gradient steps: a GPU is expected, about an
hour per seed on one.
"""

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart, tile_rows
from ._parts import image_scales as scales
from ._parts.image_features import LAYERS, features_of_layer, short, smoothness
from ._parts.image_runs import ImageSettings, Trainings
from ._parts.image_scales import Stage, histories

ABOUT = lab.About(
    paper="purification",
    item="Figure 10",
    title="Deep features of clean and of robust networks",
    seconds={"smoke": 10, "laptop": 280, "paper": 13_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("AlexNet", "200 gradient steps"),
    claims={
        "smoother": empirical("In each deep layer features of the robust network are purer: the "
                              "correlation of their neighbouring pixels is more than 0.05 above "
                              "the clean network's, and the control's"),
    },
)  # fmt: skip
STAGES: tuple[Stage, ...] = ("clean", "control", "adversarial")


class Case(ImageSettings):
    """How features are found.

    Args:
        feature_steps: of gradient ascent.
    """

    feature_steps: int = 200


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    some = {"smoke": {"feature_steps": 3}, "paper": {"feature_steps": 2000}}
    return scales.cases(Case, scale, seeds, "AlexNet", **some)


def compute(case: Case) -> pl.DataFrame:
    """Pictures (part "tile", a panel per layer) and numbers by layer (part "layer")."""
    trainings, known, rows = Trainings(case), histories(case), []
    for stage in STAGES:
        net = trainings.network(*known[stage])
        for layer in LAYERS[case.network]:
            found = features_of_layer(case, net, layer, steps=case.feature_steps)
            rows.append(tile_rows(found.numpy()[:8], row=scales.WORDS[stage], panel=short(layer)))
            numbers = {"stage": stage, "layer": short(layer), **smoothness(found)}
            rows.append(pl.DataFrame([{"part": "layer", **numbers}]))
    return pl.concat(rows, how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(part="layer")
    grids = [
        tile_chart(scales.first_tiles(table, layer), title=f"What channels of {layer} look for")
        for layer in rows["layer"].unique(maintain_order=True)
    ]
    chart = points(
        rows, "layer", "autocorrelation", "stage", x_title="layer",
        y_title="correlation of neighbouring pixels",
    )  # fmt: skip
    return stacked(*grids, panels([chart]))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows, gains = table.filter(part="layer"), {}
    for (layer,), some in rows.partition_by("layer", as_dict=True, maintain_order=True).items():
        by = {stage: some.filter(stage=stage).sort("seed")["autocorrelation"] for stage in STAGES}
        for other in STAGES[:2]:
            gains[f"{layer} over {other}"] = by["adversarial"] - by[other]
    what = "correlation of neighbouring pixels of features, gained"
    return [Claims(ABOUT.claims).above("smoother", gains, 0.05, what=what)]
