"""Syn C: clean training soils even neurons that start pure.

Two neurons an atom start at 0.8 sign(w*_j) M_j with a little noise: the features that robust
training wants. Clean training keeps them, and yet adds the dense mixture to each, as Theorem 5.2
says of any start: the network that was robust by design no longer is. Adversarial training takes
the mixture away again.

The preset `dictionary` at d = 256 with its rules (claim 19); "worst" as in Syn A, an upper bound of
the robust accuracy.
"""

import polars as pl

from .... import lab
from ....report import Verdict, above, below, sample, within
from ....report.charts import AnyChart
from .. import measures
from ._parts.clean_then_adversarial_runs import Trained, pictured, train
from ._parts.neuron_charts import floor_chart, framed, maps
from ._parts.phase_charts import accuracies, along, cosines
from ._parts.presets import World
from ._parts.two_phase_runs import (
    MIXED,
    PURE,
    START,
    TINY,
    UNIVERSAL,
    columns,
    flagged,
    made_of,
    withstood,
    worst_glance,
)
from ._parts.two_phase_runs import Case as Case

ABOUT = lab.About(
    paper="purification",
    item="Section 5 and Figure 9, experiment Syn C",
    title="Clean training soils neurons that start pure",
    seconds={"smoke": 3, "laptop": 180, "paper": 360},
    claims={
        "purification/19s": "Neurons start without a dense part",
        "purification/19a": "Clean training gives them one",
        "purification/19b": "and makes the network fall to attacks",
        "purification/19c": "while clean inputs are classified",
        "purification/19d": "Adversarial training removes the dense part",
        "purification/19e": "and makes the network robust",
    },
)
NAME = "purification/syn_c"
TITLES = {
    START: "Start: one atom each",
    MIXED: "Clean training: a veil appears",
    PURE: "Adversarial training: it is gone",
}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {"smoke": (2, TINY), "laptop": (5, {}), "paper": (10, {})}[scale]
    return [Case(preset="dictionary", **some, **block) for block in lab.blocks(seeds or usual, 5)]


def compute(case: Case) -> pl.DataFrame:
    """Rows by `part`: curves along training, ends, neurons of one seed and floors of all."""
    world = case.world(NAME)
    trained = train(case, world, worst_glance(world, steps=case.walk // 2))
    return pl.concat(
        [trained.curves, _ends(trained, world, case.walk), pictured(trained, world)], how="diagonal"
    )


def _ends(trained: Trained, world: World, steps: int) -> pl.DataFrame:
    nets: dict[str, measures.Nets] = {
        "start": trained.start, "clean": trained.clean, "adversarial": trained.adversarial
    }  # fmt: skip
    found = {}
    for name, net in nets.items():
        found |= columns(withstood(world, net, steps) | made_of(world, net), f"{name}: ")
    return pl.DataFrame({"part": "end", "seed": list(world.seeds)} | found)


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(part="curve")
    one = table.filter(pl.col("seed") == pl.col("seed").min())
    charts = [
        *maps(one, TITLES),
        floor_chart(table, list(TITLES), "All other coordinates"),
        along(rows, "dense over top", title="Dense part over the top atom",
              y_title="dense / top, mean over neurons"),
        accuracies(rows, "Accuracy", ["no attack", UNIVERSAL, "worst"]),
        cosines(rows, "Cosine of neurons with"),
    ]  # fmt: skip
    return framed(charts)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = table.filter(part="end")

    def of(column: str) -> pl.Series:
        return sample(rows, column)  # type: ignore[return-value]

    def say(name: str) -> tuple[str, str]:
        return f"purification/19{name}", ABOUT.claims[f"purification/19{name}"]

    dense, worst = "mean dense/top", "worst accuracy at tau"
    return [
        within(*say("s"), of("start: dense over top"), -0.5, 0.5, what=f"{dense} at the start"),
        above(*say("a"), of("clean: dense over top"), 4, what=f"{dense} after clean training"),
        flagged(
            below(*say("b"), of("clean: worst"), 0.55, what=f"{worst} after clean training"),
            "dictionary",
        ),
        above(*say("c"), of("clean: clean"), 0.99, what="clean accuracy after clean training"),
        below(*say("d"), of("adversarial: dense over top"), 1,
              what=f"{dense} after adversarial training"),
        flagged(
            above(*say("e"), of("adversarial: worst"), 0.7,
                  what=f"{worst} after adversarial training"),
            "dictionary",
        ),
    ]  # fmt: skip
