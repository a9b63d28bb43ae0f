"""Figure 13: purification happens against several attackers, and more against stronger ones.

Channels of one deep layer by activation maximisation, for the clean network and for networks
trained from it against several attackers (section 8.4; layer 27 of ResNet-34, four attackers). Our
number is the correlation of neighbouring pixels of these pictures.

At laptop scale the two attackers are linf(4/255) and linf(8/255). At paper scale all four: a GPU is
expected, about eight hours per seed on one.
"""

import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart, tile_rows
from ._parts import image_scales as scales
from ._parts.attackers import BALLS, AttackerName
from ._parts.image_features import DEEP, features_of_layer, numbered_layer, smoothness
from ._parts.image_runs import CLEAN, ImageSettings, Trainings

WEAK, STRONG = "linf(4/255)", "linf(8/255)"
ABOUT = lab.About(
    paper="purification",
    item="Figure 13",
    title="Purification against several attackers",
    seconds={"smoke": 12, "laptop": 380, "paper": 90_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced(
        "ResNet-34", "two of four attackers; the fourth of five convolutions; 200 gradient steps"
    ),
    claims={
        "each": empirical("Against each attacker deep features become purer: the correlation of "
                          "neighbouring pixels is more than 0.05 above the clean network's, and "
                          "its control's"),
        "stronger": empirical("and the stronger of two attackers in linf makes it higher"),
    },
)  # fmt: skip


class Case(ImageSettings):
    """How features are found.

    Args:
        against: the attackers.
        feature_steps: of gradient ascent.
        layer: the number of the convolution, in ResNet-34.
    """

    against: tuple[AttackerName, ...] = (WEAK, STRONG)
    feature_steps: int = 200
    layer: int = 27


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    some = {
        "smoke": {"feature_steps": 3},
        "paper": {"feature_steps": 2000, "against": tuple(BALLS)},
    }
    return scales.cases(Case, scale, seeds, "ResNet-34", **some)


def compute(case: Case) -> pl.DataFrame:
    """Pictures (part "tile") and one row per network with its numbers (part "network")."""
    trainings, rows = Trainings(case), []
    histories: dict[str, tuple[str, ...]] = {"clean": (CLEAN,), "control": (CLEAN, CLEAN)}
    histories |= {name: (CLEAN, name) for name in case.against}
    for name, history in histories.items():
        net = trainings.network(*history)
        layer = DEEP if case.network == "large filters" else numbered_layer(net, case.layer)
        found = features_of_layer(case, net, layer, steps=case.feature_steps)
        rows.append(tile_rows(found.numpy(), row=name))
        rows.append(pl.DataFrame([{"part": "network", "trained": name, **smoothness(found)}]))
    return pl.concat(rows, how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(
        scales.first_tiles(table), title="What channels of a deep layer look for, by attacker"
    )
    chart = points(
        table.filter(part="network"), "trained", "autocorrelation", x_title="trained against",
        y_title="correlation of neighbouring pixels",
    )  # fmt: skip
    return stacked(grid, panels([chart]))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, rows = Claims(ABOUT.claims), table.filter(part="network").sort("seed")
    by = {
        name: rows.filter(trained=name)["autocorrelation"]
        for name in rows["trained"].unique(maintain_order=True)
    }
    gains = {
        f"{name} over {other}": one - by[other]
        for name, one in by.items()
        if name in BALLS
        for other in ("clean", "control")
    }
    what = "correlation of neighbouring pixels of features, gained"
    return [
        claims.above("each", gains, 0.05, what=what),
        claims.above("stronger", by[STRONG] - by[WEAK], 0, what=f"{what} over the weaker attacker"),
    ]
