r"""Wide networks hardly move: the lazy regime behind Theorem 5.1.

The networks of `any_attack`, trained against PGD. The theorem keeps W in a ball around its start
whose radius does not grow with the width: so the distance $\|W - W_0\|_F$ stays, while the network
has ever more weights to share it. The farthest neuron and the distance relative to ||W_0||_F, which
is about sqrt(d m), must both go to zero; the latter like $m^{-1/2}$.

Dashed is a prediction, not a fit: the infinitely wide network, which is linear in its weights, is
trained on the same data against the same attack. Its distance is the RKHS norm of what it learned.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from torch import Tensor, nn

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, curves, panels
from ....report.samples import ends, slopes
from ....training import Probe
from ._parts import two_layer_runs
from ._parts.conditions import data_conditions
from ._parts.lazy_limit import KernelFeatures, displacements
from ._parts.two_layer_runs import ACTIVATION, train

ABOUT = lab.About(
    paper="convergence",
    item="Theorem 5.1, the distance from the start",
    title="The wider the network, the less it moves",
    seconds={"smoke": 6, "laptop": 37, "paper": 700},
    looks=1,
    claims={
        "8a": empirical(
            "The relative displacement falls like m^(-1/2): its exponent is within 0.08", "caps"
        ),
        "8b": empirical(
            "The Frobenius displacement does not depend on the width: its exponent is within 0.05 "
            "of 0",
            "caps",
        ),
        "8c": empirical("On average the farthest neuron moves less in wider networks", "caps"),
        "8d": ours(
            "At the largest width the displacement is that of the infinitely wide network, within "
            "5 % on average",
            "caps",
        ),
    },
)
NAME = "convergence/a3"
MEASURES = {"frobenius": "||W - W0||_F", "row": "largest ||w_r - w_r0||", "relative": "relative"}


class Case(two_layer_runs.Case):
    """A width, or with `limit` the infinitely wide network."""

    limit: bool = False


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    widths, usual, settings = {
        "smoke": ((8, 16, 32), 3, {"steps": 20}),
        "laptop": ((64, 256, 1024, 4096), 20, {}),
        "paper": ((64, 256, 1024, 4096, 16384), 20, {"steps": 3000}),
    }[scale]
    blocks = lab.blocks(seeds or usual, 20)
    return [
        *(Case(width=max(widths), limit=True, **settings, **block) for block in blocks),
        *(
            Case(width=width, **settings, **block)
            for block in blocks
            for width in sorted(widths, reverse=True)
        ),
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per measured step and seed: the loss and the displacements."""
    shown = sorted({0} | {round(case.steps ** (k / 20)) for k in range(21)})
    if case.limit:
        return _limit(case, shown)
    start = case.networks(NAME).get_parameter("weight").detach()

    def moved(model: nn.Module) -> Tensor:
        return model.get_parameter("weight").detach() - start

    def frobenius(model: nn.Module) -> Tensor:
        return moved(model).flatten(1).norm(dim=1)

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


def _limit(case: Case, shown: list[int]) -> pl.DataFrame:
    x, y = case.data(NAME)
    found = displacements(
        KernelFeatures(ACTIVATION, case.d),
        x,
        y,
        attack=case.map(NAME),
        threat=case.cap,
        rate=case.rate,
        steps=case.steps,
        rngs=generators(NAME, "attack", seeds=case.seeds),
    )
    return pl.concat(
        pl.DataFrame({"step": step, "seed": list(case.seeds), "frobenius": found[step].numpy()})
        for step in shown
    )


def figure(table: pl.DataFrame) -> AnyChart:
    """Medians over seeds with quartiles; dashed, what the infinitely wide network foretells."""
    runs, limit = table.filter(~pl.col("limit")), table.filter(pl.col("limit"))
    last, foretold = ends(runs), ends(limit).select("seed", limit_at_end="frobenius")
    widths = np.sort(last["width"].unique().to_numpy())
    d = int(last["d"][0])
    middle = float(foretold["limit_at_end"].to_numpy().mean())
    level = pl.DataFrame({"width": widths, "frobenius": np.full(len(widths), middle)})
    relative = pl.DataFrame({"width": widths, "relative": middle / np.sqrt(d * widths)})
    moving = (
        runs.filter(pl.col("step") > 0)
        .sort("width")
        .with_columns(pl.format("{}", "width").alias("width m"))
    )
    endless = (
        limit.filter(pl.col("step") > 0)
        .group_by("step", maintain_order=True)
        .agg(pl.col("frobenius").median())
        .with_columns(pl.lit("infinite").alias("width m"))
    )
    wide: dict[str, Any] = {"x_title": "width m", "log_x": True, "log_y": True, "band": "quartiles"}
    return panels(
        [
            curves(moving, "step", "frobenius", "width m", theory=endless, apart=True,
                   title="while training; dashed: infinite width", x_title="iterations",
                   y_title=MEASURES["frobenius"], log_x=True, log_y=True, band="quartiles"),
            curves(last, "width", "frobenius", theory=level, y_title=MEASURES["frobenius"],
                   title="at the end; dashed: infinite width", x_title="width m", log_x=True,
                   band="quartiles"),
            curves(last, "width", "row", y_title=MEASURES["row"],
                   title="the farthest neuron", **wide),
            curves(last, "width", "relative", theory=relative,
                   y_title="||W - W0||_F / ||W0||_F",
                   title="relative; dashed: infinite width over sqrt(d m)", **wide),
        ],
        columns=2,
    )  # fmt: skip


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, last = Claims(ABOUT.claims), ends(table.filter(~pl.col("limit")))
    rows = last.pivot(on="width", index="seed", values="row").sort("seed")
    widths = sorted(last["width"].unique())
    ratios = {
        f"width {small} to {wide}": rows[str(small)] / rows[str(wide)]
        for small, wide in pairwise(widths)
    }
    limit = ends(table.filter(pl.col("limit"))).select("seed", foretold="frobenius")
    widest = last.filter(width=widths[-1]).join(limit, on="seed").sort("seed")
    return [
        # Exponents of -1/3 and -2/3 are outside.
        claims.equal("8a", slopes(last, "width", "relative"), -0.5, 0.08,
            what="slope of log relative displacement against log width"),
        # Over a factor of 64 in width this is less than a quarter.
        claims.equal("8b", slopes(last, "width", "frobenius"), 0, 0.05,
            what="slope of log Frobenius displacement against log width"),
        claims.above("8c", ratios, 1,
            what="a seed's largest row displacement over that of the next width"),
        claims.equal("8d", widest["frobenius"] / widest["foretold"], 1, 0.05,
            what="Frobenius displacement at the largest width over that of infinite width"),
    ]  # fmt: skip


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """The paper's conditions on the data; the theorem's own bound is that of `regret_audit`."""
    return data_conditions(table, NAME)
