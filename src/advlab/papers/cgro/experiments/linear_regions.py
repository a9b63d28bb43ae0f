"""Linear regions of trained networks, counted, and the pieces of their decision boundary.

The proof of Theorem 5.3 begins with Proposition D.5 (after Montufar et al. 2014): a ReLU network
with n hidden units in all has at most 2^n linear regions. So a clean classifier of polynomial size
has a region in which its boundary is a hyperplane, and the points of the theorem are put along it.

Regions are counted exactly, by linear programmes (`theory.linear_regions`), in the cube that holds
the data: sets with one sign for each unit, of which linear regions are unions. Networks are those
of `trained_lower_bound`, trained on the whole packing, 2^(D-1) points whose labels are coins: at
the start, after clean and after adversarial training. Deep ones, two hidden layers of n/2 units,
are at the start only. Beside them the two bounds: 2^n, and sum_{i <= D} C(n, i), the most of one
hidden layer.
"""

from itertools import pairwise
from typing import Literal

import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt

from .... import lab
from ....core.checks import Array
from ....core.randomness import generators, uniform
from ....models import Stack
from ....report import Claims, Verdict, identity, ours, sample, theorem
from ....report.charts import AnyChart
from ....threats import Ball
from .. import theory
from ._parts import linear_regions_figure
from ._parts.packing_runs import lifted_packings, trained

ABOUT = lab.About(
    paper="cgro",
    item="Proposition D.5",
    title="Linear regions of trained networks, and the pieces of their decision boundary",
    seconds={"smoke": 4, "laptop": 130, "paper": 1500},
    claims={
        "D.5": theorem("No network has more than 2^n regions"),
        "cells": theorem("With one hidden layer none has more than the cells of n hyperplanes, "
                         "sum of C(n, i) over i <= D"),
        "Zaslavsky": identity("In all of R^D networks of one hidden layer have exactly so many at "
                              "the start"),
        "share": ours("Inside the cube trained networks of n = 10 and D = 5 have less than half of "
                      "these cells, on average"),
        "pieces": ours("The decision boundary has more pieces after adversarial than after clean "
                       "training, at n = 10 and D = 5, on average over pairs"),
    },
)  # fmt: skip
NAME = "cgro/linear regions decisive"
DELTA, HEIGHT, HALF = 0.3, 0.28, 0.5
BALL = Ball(norm="l2", radius=DELTA)
UNITS, DEEP = 10, 5
"""The n and D of the largest networks."""
Kind = Literal["start", "clean", "adversarial", "deep"]
KINDS: tuple[Kind, ...] = ("start", "clean", "adversarial", "deep")


class Case(lab.Case):
    kind: Kind
    d: PositiveInt
    n: PositiveInt
    """Hidden units in all."""
    steps: PositiveInt = 1000
    lr: PositiveFloat = 0.02

    @property
    def cost(self) -> float:
        return self.replicates * theory.most_cells(self.n, self.d) / 100


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    usual, sizes, steps = {
        "smoke": (2, ((2, 4), (3, 4)), 5),
        "laptop": (20, ((3, 6), (3, 10), (4, 6), (4, 10), (5, 6), (DEEP, UNITS)), 1000),
        "paper": (60, ((3, 6), (3, 10), (4, 6), (4, 10), (5, 6), (5, 10), (6, 12)), 1000),
    }[scale]
    return [
        Case(kind=kind, d=d, n=n, steps=steps, **block)
        for d, n in sizes
        for kind in KINDS
        for block in lab.blocks(seeds or usual, 10)
    ]


def compute(case: Case) -> pl.DataFrame:
    """Of each seed: the regions in the cube, in all of space, and those that f = 0 crosses."""
    rows = []
    for seed, layers in zip(case.seeds, _networks(case), strict=True):
        inside = theory.linear_regions(layers, HALF)
        everywhere = theory.linear_regions(layers) if case.kind == "start" else None
        rows.append({
            "seed": seed, "regions": len(inside), "pieces": sum(one.has_zero() for one in inside),
            "everywhere": None if everywhere is None else len(everywhere),
            "cells": theory.most_cells(case.n, case.d), "signs": 2**case.n,
        })  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"everywhere": pl.Int64})


def _networks(case: Case) -> list[list[tuple[Array, Array]]]:
    """Weights and biases, layer by layer, of each seed."""
    rngs = generators(NAME, "network", case.d, case.n, seeds=case.seeds)
    if case.kind == "deep":
        half = case.n // 2
        return [_drawn((case.d, half, case.n - half, 1), rng) for rng in rngs]
    data = lifted_packings(
        case.d, DELTA, HEIGHT, generators(NAME, "data", case.d, seeds=case.seeds)
    )
    ball = BALL if case.kind == "adversarial" else None
    # The start is that of the other two: a step of no length.
    steps, lr = (1, 1e-12) if case.kind == "start" else (case.steps, case.lr)
    nets = trained(data, ball, case.n, steps, lr, rngs)
    return [_layers(nets, r) for r in range(case.replicates)]


def _layers(nets: Stack, r: int) -> list[tuple[Array, Array]]:
    state = {name: value.numpy() for name, value in nets.replicate(r).state_dict().items()}
    top = state["top"][None], state["top_bias"].reshape(1)
    return [(state["weight"], state["bias"]), top]


def _drawn(sizes: tuple[int, ...], rng: torch.Generator) -> list[tuple[Array, Array]]:
    """PyTorch's own start of dense layers."""
    layers = []
    for into, out in pairwise(sizes):
        both = torch.empty(out, into + 1, dtype=torch.float64)
        both = ((2 * uniform(both, rng) - 1) * into**-0.5).numpy()
        layers.append((both[:, :-1], both[:, -1]))
    return layers


def figure(table: pl.DataFrame) -> AnyChart:
    return linear_regions_figure.figure(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, flat = Claims(ABOUT.claims), table.filter(pl.col("kind") != "deep")
    start = table.filter(kind="start")
    largest = flat.filter(d=DEEP, n=UNITS).with_columns(share=pl.col("regions") / pl.col("cells"))
    taught = largest.filter(pl.col("kind") != "start")
    clean, robust = (taught.filter(kind=kind) for kind in ("clean", "adversarial"))
    pairs = robust.join(clean, on="seed", suffix=" clean").with_columns(
        more=pl.col("pieces") - pl.col("pieces clean")
    )
    return [
        claims.every("D.5", table["regions"] <= table["signs"], what="regions <= 2^n"),
        claims.every("cells", flat["regions"] <= flat["cells"], what="regions <= cells"),
        claims.every("Zaslavsky", start["everywhere"] == start["cells"], what="regions = cells"),
        claims.below("share", sample(taught, "share", by="kind"), 0.5, what="regions over cells"),
        claims.above("pieces", sample(pairs, "more"), 0,
            what="pieces after adversarial, less those after clean training,"),
    ]  # fmt: skip
