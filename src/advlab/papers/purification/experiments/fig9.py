"""Figure 9: the whole story on images: pure and dense features, and the ways between them.

Filters of AlexNet's first layer at the random start, after clean training (pure and dense parts),
after adversarial training from there (pure), after clean training from the pure network (the dense
part comes back), and after adversarial training straight from the random start (pure at once). The
paper has it as a summary in pictures (section 6.2). Our numbers: robust accuracy, and the share of
the filters' energy at periods below four pixels.

At paper scale AlexNet: a GPU is expected, about two hours per seed on one.
"""

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart
from ._parts import image_scales as scales
from ._parts.image_runs import ImageSettings, Trainings
from ._parts.image_scales import Stage

ABOUT = lab.About(
    paper="purification",
    item="Figure 9",
    title="Clean and adversarial training in the language of pure and dense features",
    seconds={"smoke": 12, "laptop": 350, "paper": 22_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("AlexNet"),
    claims={
        "back": empirical("Clean training from the robust network makes it fall to attacks again: "
                          "its robust accuracy ends below 0.05"),
        "dense": ours("and gives its filters high frequencies again: more than 1.1 times the share "
                      "that they had"),
        "direct": empirical("Adversarial training from the random start is robust too: more than "
                            "0.15 above the clean network"),
        "pure": ours("and its filters have less than 0.9 of the clean network's share of high "
                     "frequencies"),
    },
)  # fmt: skip
STAGES: tuple[Stage, ...] = ("start", "clean", "adversarial", "back to clean", "from random")


class Case(ImageSettings):
    """The settings of the trainings alone."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return scales.cases(Case, scale, seeds, "AlexNet")


def compute(case: Case) -> pl.DataFrame:
    """Pictures (part "tile") and the numbers that decide (part "end")."""
    trainings = Trainings(case)
    numbers = {
        **scales.accuracy_numbers(trainings, STAGES[1:]),
        **scales.filter_numbers(trainings, STAGES),
    }
    return pl.concat(
        [scales.filter_rows(trainings, STAGES), scales.end_row(case, numbers)], how="diagonal"
    )


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(
        scales.first_tiles(table),
        title="The same 16 filters; those from random have another history, and other filters",
    )
    looks = {
        "robust": "robust accuracy (PGD: upper bound)",
        "clean": "clean accuracy",
        "high frequencies": "energy of filters at periods below 4 pixels",
    }
    charts = [
        points(
            scales.by_stage(table, column, STAGES[column != "high frequencies" :]), "stage",
            "value", x_title=" ", y_title=words,
        )
        for column, words in looks.items()
    ]  # fmt: skip
    return stacked(grid, panels(charts))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, what = Claims(ABOUT.claims), "ratio of high-frequency shares of filters"
    dense = scales.ratios(table, "high frequencies", "back to clean", "adversarial")
    pure = scales.ratios(table, "high frequencies", "from random", "clean")
    direct = scales.over(table, "robust", "from random", "clean")
    return [
        claims.below(
            "back", scales.ended(table, "back to clean: robust"), 0.05,
            what="robust accuracy after going back",
        ),
        claims.above("dense", dense, 1.1, what=what),
        claims.above("direct", direct, 0.15, what="robust accuracy gained"),
        claims.below("pure", pure, 0.9, what=what),
    ]  # fmt: skip
