"""Figure 8: filters emerge from their random start, and what each becomes is settled early.

The first layer's filters after several epochs of clean training (section 6.1, "lottery tickets
winning process"; AlexNet). Our number: the share of filters that are most like what they will be at
the end, among all filters of the end. Chance is one over their number.

The theory says more: the random start decides. `start` asks that of images too, which the paper
does not claim: whether filters of the end are most like their own start.

At paper scale AlexNet is trained for 50 epochs: a GPU is expected, about ten minutes per seed on
one.
"""

import polars as pl
import torch

from .... import lab
from ....measure.correlations import alive, neuron_correlations
from ....report import Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, curves, panels, stacked
from ....report.tiles import tile_chart, tile_rows
from ._parts import image_scales as scales
from ._parts.image_runs import CLEAN, ImageSettings, Trainings

ABOUT = lab.About(
    paper="purification",
    item="Figure 8",
    title="Filters emerge from their start, and early on each is itself",
    seconds={"smoke": 3, "laptop": 60, "paper": 2_500},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("AlexNet"),
    claims={
        "early": empirical("After a third of clean training more than 90 % of the filters alive "
                           "are most like themselves at its end"),
        "emerge": empirical("Filters emerge gradually: on average theta with the end is more than "
                            "0.3 higher after a third of training than at the start, and more "
                            "than 0.02 lower than 1"),
        "start": ours("More than half are most like their own random start"),
    },
)  # fmt: skip


class Case(ImageSettings):
    """The settings of the trainings alone."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return scales.cases(Case, scale, seeds, "AlexNet")


def compute(case: Case) -> pl.DataFrame:
    """Pictures (part "tile"), a curve over epochs, and the numbers that decide (part "end")."""
    filters = torch.from_numpy(Trainings(case).run(CLEAN).arrays["filters"])
    last, third = len(filters) - 1, (len(filters) - 1) // 3
    rows = []
    for epoch, now in enumerate(filters):
        like = neuron_correlations({"w.weight": now}, {"w.weight": filters[last]}, "w")
        rows.append({
            "part": "curve", "epoch": epoch, "identity": like.identity, "theta": like.mean,
        })  # fmt: skip
    order = filters[last].flatten(1).norm(dim=1).argsort(descending=True)[:16]
    shown = sorted({0, 1, 2, third, 2 * third, last})
    tiles = [
        tile_rows(filters[epoch][order].numpy(), row=f"epoch {epoch}", signed=True)
        for epoch in shown
    ]
    numbers = {
        "third: identity": rows[third]["identity"],
        "third: theta": rows[third]["theta"],
        "start: theta": rows[0]["theta"],
        "start: identity": rows[0]["identity"],
        "chance": 1 / max(int(alive(filters[last].flatten(1)).sum()), 1),
    }
    return pl.concat([*tiles, pl.DataFrame(rows), scales.end_row(case, numbers)], how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(scales.first_tiles(table), title="The same filters during clean training")
    rows = table.filter(part="curve")
    looks = {
        "identity": "share most like themselves at the end",
        "theta": "mean theta with themselves at the end",
    }
    charts = [
        curves(rows, "epoch", column, x_title="epoch of clean training", y_title=words)
        for column, words in looks.items()
    ]
    return stacked(grid, panels(charts))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    third, start = (scales.ended(table, f"{name}: theta") for name in ("third", "start"))
    emerge = {"gained, less 0.3": third - start - 0.3, "still to go, less 0.02": 0.98 - third}
    return [
        claims.above(
            "early", scales.ended(table, "third: identity"), 0.9,
            what="share of filters most like themselves at the end",
        ),
        claims.above("emerge", emerge, 0, what="what is left to the bound"),
        claims.above(
            "start", scales.ended(table, "start: identity"), 0.5,
            what="share of filters whose own start is the nearest",
        ),
    ]  # fmt: skip
