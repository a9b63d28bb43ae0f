"""Wide networks hardly move: the lazy regime behind Theorem 5.1.

The networks of `any_attack`, trained against PGD. The theorem keeps W in a ball around its start
whose radius does not grow with the width: so the distance ||W - W_0||_F stays, while the network
has ever more weights to share it. The farthest neuron and the distance relative to ||W_0||_F, which
is about sqrt(d m), must both go to zero; the latter like m^(-1/2).
"""

from itertools import pairwise

import numpy as np
import polars as pl
from torch import Tensor, nn

from .... import lab
from ....report import Claims, Verdict
from ....report.charts import AnyChart, curves, panels, points
from ....report.samples import ends, slopes
from ....training import Probe
from ._parts.two_layer_runs import Case as Case
from ._parts.two_layer_runs import train

ABOUT = lab.About(
    paper="convergence",
    item="Theorem 5.1, the distance from the start",
    title="The wider the network, the less it moves",
    seconds={"smoke": 4, "laptop": 80, "paper": 600},
    looks=1,
    claims={
        "8a": "The relative displacement falls like m^(-1/2)",
        "8b": "The Frobenius displacement does not depend on the width",
        "8c": "The farthest neuron moves less in wider networks",
    },
)
NAME = "convergence/a3"
MEASURES = {"frobenius": "||W - W0||_F", "row": "largest ||w_r - w_r0||", "relative": "relative"}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    widths, usual, settings = {
        "smoke": ((8, 16, 32), 3, {"steps": 20}),
        "laptop": ((64, 256, 1024, 4096), 20, {}),
        "paper": ((64, 256, 1024, 4096, 16384), 20, {"steps": 3000}),
    }[scale]
    return [
        Case(width=width, **settings, **block)
        for block in lab.blocks(seeds or usual, 20)
        for width in sorted(widths, reverse=True)
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per measured step and seed: the loss and the displacements."""
    start = case.networks(NAME).get_parameter("weight").detach()

    def moved(model: nn.Module) -> Tensor:
        return model.get_parameter("weight").detach() - start

    def frobenius(model: nn.Module) -> Tensor:
        return moved(model).flatten(1).norm(dim=1)

    shown = {round(case.steps ** (k / 20)) for k in range(21)}
    probe = Probe(
        {
            "frobenius": frobenius,
            "row": lambda model: moved(model).norm(dim=2).amax(1),
            "relative": lambda model: frobenius(model) / start.flatten(1).norm(dim=1),
        },
        at=shown,
    )
    run = train(case, NAME, probe)
    return run.log.table(case.seeds)


def figure(table: pl.DataFrame) -> AnyChart:
    last = ends(table)
    widths = np.sort(last["width"].unique().to_numpy()).astype(float)
    middle = float(np.exp(np.log(last["relative"].to_numpy()).mean()))
    root = middle * np.sqrt(np.exp(np.log(widths).mean()) / widths)
    theory = pl.DataFrame({"width": widths, "relative": root})
    shared = {"x_title": "width m", "log_x": True, "log_y": True}
    return panels(
        [
            curves(
                table,
                "step",
                "frobenius",
                "width",
                title="while training",
                x_title="iterations",
                y_title=MEASURES["frobenius"],
                log_x=True,
                log_y=True,
            ),
            points(
                last,
                "width",
                "frobenius",
                y_title=MEASURES["frobenius"],
                title="at the end",
                **shared,
            ),
            points(
                last, "width", "row", y_title=MEASURES["row"], title="the farthest neuron", **shared
            ),
            points(
                last,
                "width",
                "relative",
                theory=theory,
                y_title="||W - W0||_F / ||W0||_F",
                title="relative (dashed: slope -1/2)",
                **shared,
            ),
        ],
        columns=2,
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, last = Claims(ABOUT.claims), ends(table)
    spread = last.group_by("seed").agg(
        ratio=pl.col("frobenius").max() / pl.col("frobenius").min(),
        levels=pl.col("width").n_unique(),
    )
    rows = last.pivot(on="width", index="seed", values="row").sort("seed")
    widths = sorted(last["width"].unique())
    ratios = {
        f"width {small} to {wide}": rows[str(small)] / rows[str(wide)]
        for small, wide in pairwise(widths)
    }
    return [
        claims.within(
            "8a",
            slopes(last, "width", "relative"),
            -0.65,
            -0.4,
            what="slope of log relative displacement against log width",
        ),
        claims.below(
            "8b",
            spread.sort("seed")["ratio"],
            1.5,
            what="a seed's largest over smallest Frobenius displacement",
        ),
        claims.above(
            "8c",
            ratios,
            1,
            what="a seed's largest row displacement over that of the next width",
        ),
    ]
