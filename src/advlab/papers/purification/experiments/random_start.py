"""Syn D: adversarial training from the random start, and perturbations that transfer.

Figure 9 of the paper: clean training first is not needed; adversarial training from the random
start reaches pure neurons at once. Here it takes as many steps as the clean phase, its bias grows
as there, and its radius in the first steps as in the adversarial phase. The digest has no rules for
it: these are those of Syn A (claims 5 and 7) and of Table 1 (claim 25).

Clean networks share their weakness, the direction M w*. So what breaks one breaks all others on the
same data, whatever their start, and does little to adversarial networks (claim 14). Several
networks are trained independently: other start, other batches. Entries of the matrix are accuracies
at PGD points, upper bounds of the robust ones.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl
import torch

from .... import lab
from ....core.randomness import generators
from ....report import Verdict, above, below, sample
from ....report.charts import AnyChart
from ....report.matrix import matrix
from ....training import Probe
from .. import measures
from ._parts.clean_then_adversarial_runs import CRAFT, SHOWN
from ._parts.neuron_charts import floor_chart, framed, maps, snapshots
from ._parts.neuron_charts import floors as floor_rows
from ._parts.phase_charts import accuracies, along
from ._parts.presets import WALK, World
from ._parts.two_phase_runs import (
    ADVERSARIAL,
    CLEAN,
    PURE,
    START,
    TINY,
    columns,
    curve,
    direction,
    flagged,
    frozen,
    glances,
    made_of,
    withstood,
)
from ._parts.two_phase_runs import Case as SynCase

ABOUT = lab.About(
    paper="purification",
    item="Figure 9 and Theorem 5.2, experiment Syn D",
    title="Purification from a random start, and attacks that transfer",
    seconds={"smoke": 4, "laptop": 420, "paper": 900},
    claims={
        "purification/D1": "Adversarial training from a random start ends purer than clean",
        "purification/D2": "and robust at tau",
        "purification/D3": "Clean training first does no harm to robustness (as in Table 1)",
        "purification/14c": "What breaks a clean network breaks all others on the same data",
        "purification/14d": "and none of the adversarial ones",
    },
)
NAME = "purification/syn_d"
NETS = 3
"""Clean networks of a seed; all but one are then trained adversarially."""
TITLES = {START: "Random start", PURE: "Adversarial training from there"}


class Case(SynCase):
    """`direct` trains adversarially from the start, `pairs` as Syn A, several networks a seed."""

    arm: Literal["direct", "pairs"]

    @property
    def cost(self) -> float:
        return self.replicates * (3.0 if self.arm == "direct" else 5.0)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {"smoke": (2, TINY), "laptop": (5, {}), "paper": (10, {})}[scale]
    return [
        Case(arm=arm, **some, **block)
        for block in lab.blocks(seeds or usual, 5)
        for arm in ("direct", "pairs")
    ]


def compute(case: Case) -> pl.DataFrame:
    return {"direct": _direct, "pairs": _pairs}[case.arm](case)


def _direct(case: Case) -> pl.DataFrame:
    """Rows by `part`: the curve, one end a seed, neurons of one seed and floors of all."""
    world, preset = case.world(NAME), case.settings
    nets = world.networks()
    start, probes = frozen(nets), glances(world, frozen(nets))
    phase = preset.adversarial.model_copy(update={"steps": preset.clean.steps})
    glance = Probe(probes, every=case.glance)
    run = world.train(nets, phase, preset.bias, preset.ball, WALK, glance)
    end = frozen(nets)
    found = columns(withstood(world, end, case.walk) | made_of(world, end))
    rows = [
        curve(run, world, ADVERSARIAL),
        pl.DataFrame({"part": "end", "seed": list(world.seeds), "network": "direct"} | found),
    ]
    for r, seed in enumerate(world.seeds):
        moments = {START: start.weight[r], PURE: end.weight[r]}
        seen = (moments, PURE, world.M[r], world.w[r])
        parts = [floor_rows(*seen)] + ([snapshots(*seen)] if r == 0 else [])
        rows += [part.with_columns(seed=pl.lit(seed, pl.Int64)) for part in parts]
    return pl.concat(rows, how="diagonal")


def _pairs(case: Case) -> pl.DataFrame:
    """The ends of one network in both phases, and of all of them the matrix."""
    world = case.world(NAME)
    clean, pure = [], []
    for k in range(NETS):
        other = world if k == 0 else replace(world, stream=f"{world.stream}, network {k}")
        nets = other.networks()
        other.train_clean(nets)
        clean.append(frozen(nets))
        if k < NETS - 1:
            other.train_adversarial(nets)
            pure.append(frozen(nets))
    ends = [
        pl.DataFrame(
            {"part": "end", "seed": list(world.seeds), "network": name}
            | columns(withstood(world, net, case.walk) | made_of(world, net))
        )
        for name, net in ((CLEAN, clean[0]), (ADVERSARIAL, pure[0]))
    ]
    return pl.concat([*ends, _matrix(world, clean, pure)], how="diagonal")


def _matrix(world: World, clean: list[measures.Nets], pure: list[measures.Nets]) -> pl.DataFrame:
    """Rows (part, seed, crafted, shown, accuracy); the universal attack needs no network."""
    names = [f"{word} {k + 1}" for word, nets in ((CLEAN, clean), (ADVERSARIAL, pure))
             for k in range(len(nets))]  # fmt: skip
    rngs = generators(world.stream, "transfer", seeds=world.seeds)
    x, y = world.test_x[:, :SHOWN], world.test_y[:, :SHOWN]
    found = measures.transfer_matrix(
        [*clean, *pure], x, y, world.preset.ball, CRAFT, direction(world), rngs
    )
    whole = torch.cat([found.accuracy, found.universal[None]]).double().numpy()
    grid = np.indices(whole.shape).reshape(3, -1)
    crafted = [*names, "universal"]
    return pl.DataFrame(
        {
            "part": "transfer",
            "crafted": [crafted[a] for a in grid[0]],
            "shown": [names[b] for b in grid[1]],
            "seed": [world.seeds[r] for r in grid[2]],
            "accuracy": whole.ravel(),
        }
    )


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(part="curve")
    one = table.filter(pl.col("seed") == pl.col("seed").min())
    short = (
        pl.col("crafted", "shown").str.replace(f"{CLEAN} ", "C").str.replace(f"{ADVERSARIAL} ", "A")
    )
    transfer = matrix(
        table.filter(part="transfer").with_columns(short), "shown", "crafted", "accuracy",
        title="Accuracy under each other's attacks", x_title="shown to (C clean, A adversarial)",
        y_title="crafted on", value_title="accuracy",
    )  # fmt: skip
    charts = [
        *maps(one, TITLES),
        floor_chart(table, list(TITLES), "All other coordinates"),
        accuracies(rows, "Accuracy, from the random start"),
        along(rows, "dense over top", title="Dense part over the top atom",
              y_title="dense / top, mean over neurons"),
        transfer,
    ]  # fmt: skip
    return framed(charts)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, ends = ABOUT.claims, table.filter(part="end")
    by = {name: ends.filter(network=name).sort("seed") for name in ("direct", CLEAN, ADVERSARIAL)}

    def of(network: str, column: str) -> np.ndarray:
        return sample(by[network], column).to_numpy()  # type: ignore[union-attr]

    def say(name: str) -> tuple[str, str]:
        return f"purification/{name}", claims[f"purification/{name}"]

    purer = of(CLEAN, "dense over top") / of("direct", "dense over top")
    first = of(ADVERSARIAL, "worst") - of("direct", "worst")
    among, across = _transfers(table.filter(part="transfer"))
    return [
        above(*say("D1"), purer, 2, what="mean dense/top, clean network over direct one"),
        flagged(
            above(*say("D2"), of("direct", "worst"), 0.65, what="worst accuracy at tau"), "random"
        ),
        above(*say("D3"), first, -0.02,
              what="worst accuracy, adversarial from clean less from the random start"),
        below(*say("14c"), among, 0.05,
              what="|accuracy less that of the network attacked|, at its PGD points"),
        above(*say("14d"), across, 0.8,
              what="accuracy of an adversarial network at a clean one's PGD points"),
    ]  # fmt: skip


def _transfers(rows: pl.DataFrame) -> tuple[dict[str, pl.Series], dict[str, pl.Series]]:
    """By pair: how far clean networks differ at the first one's points; and adversarial ones."""
    seen = rows.filter(pl.col("crafted").str.starts_with(CLEAN))
    own = seen.filter(pl.col("crafted") == pl.col("shown"))
    seen = seen.join(own.select("crafted", "seed", own="accuracy"), on=["crafted", "seed"])
    seen = seen.filter(pl.col("crafted") != pl.col("shown"))
    seen = seen.with_columns(gap=(pl.col("accuracy") - pl.col("own")).abs())
    among, across = {}, {}
    for (crafted, shown), part in seen.group_by("crafted", "shown", maintain_order=True):
        name = f"{crafted} to {shown}"
        if str(shown).startswith(CLEAN):
            among[name] = sample(part, "gap")
        else:
            across[name] = sample(part, "accuracy")
    return among, across
