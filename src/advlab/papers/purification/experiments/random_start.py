"""Adversarial training from the random start, and perturbations that transfer.

Figure 9 and section 4.2: clean training first is not needed; adversarial training from the random
start avoids the dense mixtures and reaches pure neurons at once, and starting from a clean network
is no worse (Table 1). Here it takes as many steps as the clean phase, its bias grows as there, and
its radius in the first steps as in the adversarial phase.

Clean networks share their weakness, the direction M w*, whatever their start (section 6.2). So what
breaks one breaks all others on the same data, and does little to adversarial networks. Several
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
from ....report import Assumption, Claims, Verdict, empirical, sample
from ....report.charts import AnyChart
from ....report.matrix import matrix
from ....training import Probe
from .. import measures
from ._parts.clean_then_adversarial_runs import CRAFT, SHOWN
from ._parts.conditions import REDUCED, assumptions_of
from ._parts.neuron_charts import (
    heat_maps,
    other_coordinates,
    other_coordinates_chart,
    panel_grid,
    snapshots,
)
from ._parts.phase_charts import accuracy_chart, training_curve
from ._parts.presets import PRESETS, TRAINING_ATTACK, SparseProblem
from ._parts.two_phase_runs import (
    ADVERSARIAL,
    CLEAN,
    PURE,
    START,
    TINY,
    accuracies_under_attack,
    columns,
    curve,
    frozen,
    neuron_statistics,
    training_probes,
    with_theory_note,
)
from ._parts.two_phase_runs import Case as TwoPhaseCase

ABOUT = lab.About(
    paper="purification",
    item="Figure 9, Table 1 and section 6.2",
    title="Purification from a random start, and attacks that transfer",
    seconds={"smoke": 4, "laptop": 90, "paper": 900},
    looks=1,
    reduced=dict.fromkeys(("laptop", "paper"), REDUCED),
    claims={
        "purer": empirical("Adversarial training from a random start ends with less than half of "
                           "the dense part of clean training"),
        "robust": empirical("and with a worst accuracy above 0.65 at tau"),
        "clean_first": empirical("Clean training first costs less than 0.02 of it, as in Table 1, "
                                 "and leaves more than 0.65"),
        "14c": empirical("What breaks a clean network breaks all others on the same data: their "
                         "accuracies differ by less than 0.05 and are below one half"),
        "14d": empirical("and leaves each adversarial one more than 0.8"),
    },
)  # fmt: skip
NAME = "purification/syn_d"
NETS = 3
"""Clean networks per seed; all but one are then trained adversarially."""
TITLES = {START: "Random start", PURE: "Adversarial training from there"}


class Case(TwoPhaseCase):
    """`direct` trains adversarially from the start, `pairs` clean first, several per seed."""

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
    """Rows by `part`: the curve, one end per seed, the neurons of one seed, coordinates of all."""
    problem, preset = case.problem(NAME), case.settings
    nets = problem.networks()
    start, probes = frozen(nets), training_probes(problem, frozen(nets))
    phase = preset.adversarial.model_copy(update={"steps": preset.clean.steps})
    seen = Probe(probes, every=case.probe_every)
    run = problem.train(nets, phase, preset.bias, preset.ball, TRAINING_ATTACK, seen)
    end = frozen(nets)
    found = columns(
        accuracies_under_attack(problem, end, case.pgd_steps) | neuron_statistics(problem, end)
    )
    rows = [
        curve(run, problem, ADVERSARIAL),
        pl.DataFrame({"part": "end", "seed": list(problem.seeds), "network": "direct"} | found),
    ]
    for r, seed in enumerate(problem.seeds):
        stages = {START: start.weight[r], PURE: end.weight[r]}
        seen = (stages, PURE, problem.M[r], problem.w[r])
        parts = [other_coordinates(*seen)] + ([snapshots(*seen)] if r == 0 else [])
        rows += [part.with_columns(seed=pl.lit(seed, pl.Int64)) for part in parts]
    return pl.concat(rows, how="diagonal")


def _pairs(case: Case) -> pl.DataFrame:
    """The ends of one network in both phases, and of all of them the matrix."""
    problem = case.problem(NAME)
    clean, pure = [], []
    for k in range(NETS):
        other = problem if k == 0 else replace(problem, stream=f"{problem.stream}, network {k}")
        nets = other.networks()
        other.train_clean(nets)
        clean.append(frozen(nets))
        if k < NETS - 1:
            other.train_adversarial(nets)
            pure.append(frozen(nets))
    ends = [
        pl.DataFrame(
            {"part": "end", "seed": list(problem.seeds), "network": name}
            | columns(
                accuracies_under_attack(problem, net, case.pgd_steps)
                | neuron_statistics(problem, net)
            )
        )
        for name, net in ((CLEAN, clean[0]), (ADVERSARIAL, pure[0]))
    ]
    return pl.concat([*ends, _matrix(problem, clean, pure)], how="diagonal")


def _matrix(
    problem: SparseProblem, clean: list[measures.Nets], pure: list[measures.Nets]
) -> pl.DataFrame:
    """Rows (part, seed, crafted, shown, accuracy); the universal attack needs no network."""
    names = [f"{word} {k + 1}" for word, nets in ((CLEAN, clean), (ADVERSARIAL, pure))
             for k in range(len(nets))]  # fmt: skip
    rngs = generators(problem.stream, "transfer", seeds=problem.seeds)
    x, y = problem.test_x[:, :SHOWN], problem.test_y[:, :SHOWN]
    found = measures.transfer_matrix(
        [*clean, *pure], x, y, problem.preset.ball, CRAFT, problem.direction, rngs
    )
    whole = torch.cat([found.accuracy, found.universal[None]]).double().numpy()
    grid = np.indices(whole.shape).reshape(3, -1)
    crafted = [*names, "universal"]
    return pl.DataFrame(
        {
            "part": "transfer",
            "crafted": [crafted[a] for a in grid[0]],
            "shown": [names[b] for b in grid[1]],
            "seed": [problem.seeds[r] for r in grid[2]],
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
        *heat_maps(one, TITLES),
        other_coordinates_chart(table, list(TITLES), "All other coordinates"),
        accuracy_chart(rows, "Accuracy, from the random start"),
        training_curve(rows, "dense over top", title="Dense part over the top atom",
              y_title="dense / top, mean over neurons"),
        transfer,
    ]  # fmt: skip
    return panel_grid(charts)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of({"random": PRESETS["random"]})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, ends = Claims(ABOUT.claims), table.filter(part="end")
    by = {name: ends.filter(network=name).sort("seed") for name in ("direct", CLEAN, ADVERSARIAL)}

    def of(network: str, column: str) -> np.ndarray:
        return sample(by[network], column).to_numpy()  # type: ignore[union-attr]

    purer = of(CLEAN, "dense over top") / of("direct", "dense over top")
    first = {
        "lost to the random start, below 0.02": 0.02 + of(ADVERSARIAL, "worst") -
        of("direct", "worst"),
        "worst accuracy from clean, above 0.65": of(ADVERSARIAL, "worst") - 0.65,
    }  # fmt: skip
    among, across = _transfers(table.filter(part="transfer"))
    return [
        claims.above("purer", purer, 2, what="mean dense/top, clean network over direct one"),
        with_theory_note(
            claims.above("robust", of("direct", "worst"), 0.65, what="worst accuracy at tau"),
            "random",
        ),
        claims.above("clean_first", first, 0, what="what is left to the bound"),
        claims.above(
            "14c",
            among,
            0,
            what="what is left to the bound at a clean network's PGD points",
        ),
        claims.above(
            "14d",
            across,
            0.8,
            what="accuracy of an adversarial network at a clean one's PGD points",
        ),
    ]


def _transfers(rows: pl.DataFrame) -> tuple[dict[str, pl.Series], dict[str, pl.Series]]:
    """By pair: what clean networks leave to their bounds at one's points; adversarial ones."""
    seen = rows.filter(pl.col("crafted").str.starts_with(CLEAN))
    own = seen.filter(pl.col("crafted") == pl.col("shown"))
    seen = seen.join(own.select("crafted", "seed", own="accuracy"), on=["crafted", "seed"])
    seen = seen.filter(pl.col("crafted") != pl.col("shown"))
    apart = (pl.col("accuracy") - pl.col("own")).abs()
    seen = seen.with_columns(near=0.05 - apart, low=0.5 - pl.col("accuracy"))
    among, across = {}, {}
    for (crafted, shown), part in seen.group_by("crafted", "shown", maintain_order=True):
        name = f"{crafted} to {shown}"
        if str(shown).startswith(CLEAN):
            among[f"{name}: difference below 0.05"] = sample(part, "near")
            among[f"{name}: accuracy below 0.5"] = sample(part, "low")
        else:
            across[name] = sample(part, "accuracy")
    return among, across
