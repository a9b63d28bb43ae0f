"""Linear regions of trained networks, counted, and the pieces of their decision boundary.

The proof of Theorem 5.3 begins with Proposition D.5 (after Montufar et al. 2014): a ReLU network
with n hidden units in all has at most 2^n linear regions, however they are laid in layers. So a
clean classifier of polynomial size has a region in which its boundary is a hyperplane, and the
points of the theorem are put along it.

Regions are counted exactly, by linear programmes (`theory.linear_regions`), in the cube that holds
the data: sets with one sign for each unit, of which linear regions are unions. No such count can
pass 2^n. So the proposition is judged by another one: the affine functions that the network is, by
automatic differentiation at 20,000 random points and at a point inside each region. Signs of units
at these points are a second count of the regions.

Networks are those of `trained_lower_bound`, trained on the whole packing, 2^(D-1) points whose
labels are coins: at the start, after clean and after adversarial training; and with two hidden
layers of n/2 units at the start and after adversarial training. Beside them the two bounds: 2^n,
and sum_{i <= D} C(n, i), the most of one hidden layer.
"""

from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt
from scipy.optimize import linprog
from torch import Tensor, nn

from .... import lab
from ....core.checks import Array
from ....core.randomness import generators, uniform
from ....models import Stack
from ....report import Claims, Verdict, identity, ours, sample, theorem
from ....report.charts import AnyChart
from ....threats import Ball
from ....training import fit
from .. import theory
from ..theory.region_count import LinearRegion
from ._parts import linear_regions_figure
from ._parts.packing_runs import TRAINED_ON, Points, Rngs, lifted_packings, trained

ABOUT = lab.About(
    paper="cgro",
    item="Proposition D.5",
    title="Linear regions of trained networks, and the pieces of their decision boundary",
    seconds={"smoke": 4, "laptop": 190, "paper": 2500},
    looks=1,
    claims={
        "D.5": theorem("No network is more than 2^n affine functions in the cube, with one hidden "
                       "layer or two, at the start or trained"),
        "count": identity("The regions that linear programmes count are those whose signs points "
                          "show, one by one"),
        "cells": theorem("With one hidden layer no network has more regions than the cells of n "
                         "hyperplanes, sum of C(n, i) over i <= D"),
        "Zaslavsky": identity("In all of R^D networks of one hidden layer have exactly so many at "
                              "the start: 2^n where n <= D"),
        "more": ours("At n = 10 and D = 5 adversarial training puts more regions of one hidden "
                     "layer into the cube than there are at the start and after clean training, "
                     "on average over pairs"),
        "pieces": ours("The decision boundary has more pieces after adversarial than after clean "
                       "training, at n = 10 and D = 5, on average over pairs"),
    },
)  # fmt: skip
NAME = "cgro/linear regions, deep networks"
DELTA, HEIGHT, HALF = 0.3, 0.28, 0.5
BALL = Ball(norm="l2", radius=DELTA)
UNITS, LARGEST = 10, 5
"""The n and D of the largest networks."""
LOOKED = 20_000
"""Random points per network."""
Kind = Literal["start", "clean", "adversarial", "deep start", "deep adversarial"]
Layers = list[tuple[Array, Array]]
KINDS: tuple[Kind, ...] = ("start", "clean", "adversarial", "deep start", "deep adversarial")


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
        "smoke": (2, ((2, 4), (4, 4)), 5),
        "laptop": (20, ((3, 6), (3, 10), (4, 6), (4, 10), (5, 5), (5, 6), (LARGEST, UNITS)), 1000),
        "paper": (60, ((3, 6), (3, 10), (4, 6), (4, 10), (5, 5), (5, 6), (5, 10), (6, 12)), 1000),
    }[scale]
    return [
        Case(kind=kind, d=d, n=n, steps=steps, **block)
        for d, n in sizes
        for kind in KINDS
        for block in lab.blocks(seeds or usual, 10)
    ]


def compute(case: Case) -> pl.DataFrame:
    """Of each seed: the regions in the cube, in all of space, and those that f = 0 crosses."""
    rows, looks = [], generators(NAME, "points", case.d, case.n, seeds=case.seeds)
    for seed, layers, rng in zip(case.seeds, _networks(case), looks, strict=True):
        inside = theory.linear_regions(layers, HALF)
        everywhere = theory.linear_regions(layers) if case.kind == "start" else None
        x = uniform(torch.empty(LOOKED, case.d, dtype=torch.float64), rng) - HALF
        inner = torch.from_numpy(np.stack([_inner(one) for one in inside]))
        signs, affine = _seen(layers, torch.cat([x, inner]))
        rows.append({
            "seed": seed, "regions": len(inside), "pieces": sum(one.has_zero() for one in inside),
            "everywhere": None if everywhere is None else len(everywhere), "shown": signs,
            "affine": affine, "cells": theory.most_cells(case.n, case.d), "signs": 2**case.n,
        })  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"everywhere": pl.Int64})


def _inner(region: LinearRegion) -> Array:
    """A point inside: the centre of a largest ball in {A x <= b}, of radius 1 at most."""
    d, lengths = region.A.shape[1], np.linalg.norm(region.A, axis=1)
    best = linprog(
        np.append(np.zeros(d), -1.0), A_ub=np.column_stack([region.A, lengths]), b_ub=region.b,
        bounds=[(None, None)] * d + [(None, 1.0)],
    )  # fmt: skip
    return best.x[:d]


def _seen(layers: Layers, x: Tensor) -> tuple[int, int]:
    """How many patterns of signs points show, and how many affine functions f is at them."""
    value, signs = x.requires_grad_(), []
    for weight, bias in layers[:-1]:
        before = nn.functional.linear(value, torch.from_numpy(weight), torch.from_numpy(bias))
        signs.append(before > 0)
        value = before.relu()
    top, offset = layers[-1]
    f = value @ torch.from_numpy(top[0]) + float(offset[0])
    (slope,) = torch.autograd.grad(f.sum(), x)
    constant = (f - (slope * x).sum(1)).detach()
    affine = torch.column_stack([slope, constant])
    # Equal up to rounding: both sides of a cut would have to be equal to 1e-9 to be taken for one.
    rounded = (affine / affine.abs().max()).mul(1e9).round()
    return len(torch.cat(signs, 1).unique(dim=0)), len(rounded.unique(dim=0))


def _networks(case: Case) -> list[Layers]:
    """Weights and biases, layer by layer, of each seed."""
    rngs = generators(NAME, "network", case.d, case.n, seeds=case.seeds)
    data = lifted_packings(
        case.d, DELTA, HEIGHT, generators(NAME, "data", case.d, seeds=case.seeds)
    )
    if case.kind.startswith("deep"):
        return _deep(case, data, rngs)
    ball = BALL if case.kind == "adversarial" else None
    # The start is that of the other two: a step of no length.
    steps, lr = (1, 1e-12) if case.kind == "start" else (case.steps, case.lr)
    nets = trained(data, ball, case.n, steps, lr, rngs)
    return [_layers(nets, r) for r in range(case.replicates)]


def _layers(nets: Stack, r: int) -> Layers:
    state = {name: value.numpy() for name, value in nets.replicate(r).state_dict().items()}
    top = state["top"][None], state["top_bias"].reshape(1)
    return [(state["weight"], state["bias"]), top]


def _deep(case: Case, data: Points, rngs: Rngs) -> list[Layers]:
    """Networks with two hidden layers of n/2 units, trained as those with one."""
    half = case.n // 2
    sizes = (case.d, half, case.n - half, 1)
    nets = Stack.draw(lambda rng: _drawn(sizes, rng), rngs)
    if case.kind == "deep adversarial":
        fit(nets, data.x, data.y, steps=case.steps, lr=case.lr, loss="logistic", rng=rngs,
            ball=BALL, attack=TRAINED_ON, optimizer=torch.optim.Adam)  # fmt: skip
    found = []
    for r in range(case.replicates):
        numbers = [value.numpy() for value in nets.replicate(r).state_dict().values()]
        found.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return found


def _drawn(sizes: tuple[int, ...], rng: torch.Generator) -> nn.Module:
    """PyTorch's own start of dense layers."""
    parts: list[nn.Module] = []
    for into, out in pairwise(sizes):
        dense = nn.Linear(into, out, dtype=torch.float64)
        for one in dense.parameters():
            one.data = (2 * uniform(torch.empty_like(one), rng) - 1) * into**-0.5
        parts += [dense, nn.ReLU()]
    return nn.Sequential(*parts[:-1], nn.Flatten(0))


def figure(table: pl.DataFrame) -> AnyChart:
    return linear_regions_figure.figure(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    flat = table.filter(~pl.col("kind").str.starts_with("deep"))
    start = table.filter(kind="start")
    largest = flat.filter(d=LARGEST, n=UNITS)
    clean, robust = (largest.filter(kind=kind) for kind in ("clean", "adversarial"))
    pairs = robust.join(clean, on="seed", suffix=" clean").with_columns(
        more=pl.col("pieces") - pl.col("pieces clean")
    )
    others = largest.filter(pl.col("kind") != "adversarial").join(
        robust.select("seed", mine="regions"), on="seed"
    )
    others = others.with_columns(more=pl.col("mine") - pl.col("regions"))
    return [
        claims.every("D.5", table["affine"] <= table["signs"], what="affine functions <= 2^n"),
        claims.every("count", table["regions"] == table["shown"], what="regions = signs shown"),
        claims.every("cells", flat["regions"] <= flat["cells"], what="regions <= cells"),
        claims.every("Zaslavsky", start["everywhere"] == start["cells"], what="regions = cells"),
        claims.above("more", sample(others, "more", by="kind"), 0,
            what="regions after adversarial training less those of the other"),
        claims.above("pieces", sample(pairs, "more"), 0,
            what="pieces after adversarial, less those after clean training,"),
    ]  # fmt: skip
