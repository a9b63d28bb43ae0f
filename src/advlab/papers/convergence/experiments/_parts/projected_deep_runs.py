"""Projected training of deep networks, and what the proof of Theorem 4.1 rests on."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import PGD
from .....core.errors import AdvlabError
from .....core.randomness import generator, generators
from .....measure.linearity import descent_to_boundary, lin_residual
from .....models import Stack
from .....threats import Cap
from .....training import LayerBalls, Probe, Project, fit
from ...data import Sphere, SpherePoints
from ...measures import compatibility
from ...measures.weight_move import as_weight_move
from ...measures.worst_move import sampled_worst, worst_residual
from ...models import DeepReLU

NAME = "convergence/projected_deep decisive"
DELTA = 0.15
DATA = Sphere(n=6, d=5, separation=4 * DELTA)
ATTACK = PGD(steps=5, step_size=2.5 / 5)
RADII = (1.0, 3.0)
"""The R of the linearity measurements."""
WORST_RADII = (0.5, 1.0, 2.0, 4.0)
"""The R of the worst moves."""
TESTED = 200
"""Points of the sphere over which a residual is largest, besides the data."""


class Case(lab.Case):
    """`kind` says what is measured; `width` and `depth` are m and H."""

    kind: Literal["training", "linearity", "worst", "depths", "inputs", "guard"]
    width: PositiveInt = 64
    depth: PositiveInt = 1
    R: PositiveFloat | None = None
    """Of the ball of weights in training; None is infinite: no projection."""
    steps: PositiveInt = 400

    @property
    def cost(self) -> float:
        if self.kind == "worst":
            return 1e-6 * self.width * self.replicates
        if self.kind == "depths":
            return 3e-7 * self.replicates * self.depth * self.width**2
        if self.kind != "training":
            return 1e-3 * self.replicates
        return self.replicates * self.steps * (self.depth * self.width**2 + 3e4) / 1e10


def network(case: Case, rng: torch.Generator) -> DeepReLU:
    return DeepReLU.draw(DATA.d, case.width, case.depth, rng)


def train(case: Case) -> pl.DataFrame:
    """One row per step and seed: `loss` is L_A(W_t), `displacement` the largest over layers of
    ||W_h - W0_h||_F sqrt(m), which R bounds, and `projected` whether a layer is on its boundary.

    A seed has the same data, start and generator of the attack for every R.
    """
    x, y = DATA.sample_stack(generators(NAME, "data", seeds=case.seeds))
    for one, labels in zip(x, y, strict=True):
        compatibility(one, labels, Cap(radius=DELTA)).require()
    here = (case.width, case.depth)
    starts = generators(NAME, "network", *here, seeds=case.seeds)
    stack = Stack.draw(lambda rng: network(case, rng), starts)
    layers = [f"displacement {h}" for h in range(1, case.depth + 1)]
    run = fit(
        stack,
        x,
        y,
        steps=case.steps,
        lr=0.3 / (case.width * case.depth),
        loss="pseudo_huber",
        ball=Cap(radius=DELTA),
        attack=ATTACK,
        hooks=[
            Probe({name: _displacement(stack, h, case.width) for h, name in enumerate(layers)}),
            *([] if case.R is None else [Project(LayerBalls(radius=case.R, width=case.width))]),
        ],
        rng=generators(NAME, "attack", *here, seeds=case.seeds),
    )
    R = math.inf if case.R is None else case.R
    table = run.log.table(case.seeds).with_columns(
        R=pl.lit(R), displacement=pl.max_horizontal(layers)
    )
    return table.with_columns(projected=pl.col("displacement") >= R * (1 - 1e-9))


def _displacement(stack: Stack, h: int, width: int) -> Callable[[nn.Module], Tensor]:
    start = list(stack.parameters())[h].detach().clone()

    def measured(model: nn.Module) -> Float[Tensor, " R"]:
        move = list(model.parameters())[h] - start
        return math.sqrt(width) * move.flatten(1).norm(dim=1)

    return measured


def linearity(case: Case) -> pl.DataFrame:
    """`residual` for each R and seed: how far f is from its linearisation at W1 (Lemma A.6)."""
    rows = []
    for seed in case.seeds:
        data = DATA.sample(generator(NAME, "data", seed))
        rng = generator(NAME, "linearity", case.width, case.depth, seed)
        net = network(case, rng)
        x = torch.cat([data.x, _points(TESTED, rng)])
        for R in RADII:
            ball = LayerBalls(radius=R, width=case.width)
            move = descent_to_boundary(net, *data, ball)
            rows.append({"seed": seed, "R": R, "residual": lin_residual(net, x, move)})
    return pl.DataFrame(rows)


def worst(case: Case) -> pl.DataFrame:
    """`residual` for each R and seed at the exact worst move of one hidden layer, `bound` by
    duality."""
    rows = []
    for seed in case.seeds:
        rng = np.random.default_rng(generator(NAME, "worst", case.width, seed).initial_seed())
        for R, found in zip(WORST_RADII, sampled_worst(case.width, WORST_RADII, rng), strict=True):
            rows.append({"seed": seed, "R": R, "residual": found.gain, "bound": found.bound})
    return pl.DataFrame(rows)


def depths(case: Case) -> pl.DataFrame:
    """`residual` at R = 1 of the worst move that an ascent over all layers found, for each seed."""
    rows = []
    for seed in case.seeds:
        rng = generator(NAME, "depths", case.width, case.depth, seed)
        net, x = network(case, rng), _points(1, rng)[0]
        rows.append({"seed": seed, "R": 1.0, "residual": worst_residual(net, x, 1.0)[0]})
    return pl.DataFrame(rows)


def inputs(case: Case) -> pl.DataFrame:
    """Lemma A.4 for ten pairs of points per seed: the worst of each."""
    rows = []
    for seed in case.seeds:
        rng = generator(NAME, "inputs", case.width, case.depth, seed)
        net, x = network(case, rng), _points(20, rng)
        pairs = [_as_move(net, *pair) for pair in x.reshape(10, 2, -1)]
        worst = {name: max(pair[name] for pair in pairs) for name in pairs[0]}
        rows.append({"seed": seed, **worst})
    return pl.DataFrame(rows)


def _as_move(net: DeepReLU, x: Float[Tensor, " d"], other: Float[Tensor, " d"]) -> dict[str, float]:
    move = as_weight_move(net, x, other)
    moved = DeepReLU(net.bottom, [move.weight, *list(net.hidden)[1:]], net.top)
    with torch.no_grad():
        here = torch.cat(moved.preactivations(x[None]))
        there = torch.cat(net.preactivations(other[None]))
    return {
        "masks": float(((here >= 0) != (there >= 0)).sum()),
        "difference": float((here - there).abs().max()),
        "ratio": move.norm / move.bound,
    }


def guard(case: Case) -> pl.DataFrame:
    """Whether caps of each radius are `refused`, and whether two of opposite labels are `shared`.

    Any caps of opposite labels that share a point share the one halfway between the two nearest
    points, so that point decides, whatever formula the library uses.
    """
    rows = []
    for seed in case.seeds:
        data = DATA.sample(generator(NAME, "data", seed))
        middle, ends = _halfway(data)
        first = float((middle - ends).norm(dim=1).max())
        for radius in (DELTA, 0.99 * first, 1.01 * first, 1.5 * first):
            cap = Cap(radius=radius)
            shared = bool(cap.contains(middle.expand_as(ends), ends).all())
            row = {"seed": seed, "radius": radius, "shared": shared}
            rows.append({**row, "refused": _refused(data, cap)})
    return pl.DataFrame(rows)


def _halfway(data: SpherePoints) -> tuple[Float[Tensor, " d"], Float[Tensor, "2 d"]]:
    plus, minus = data.x[data.y > 0], data.x[data.y < 0]
    i, j = divmod(int((plus @ minus.T).argmax()), len(minus))
    ends = torch.stack([plus[i], minus[j]])
    return ends.sum(0) / ends.sum(0).norm(), ends


def _refused(data: SpherePoints, cap: Cap) -> bool:
    try:
        compatibility(data.x, data.y, cap).require()
    except AdvlabError:
        return True
    return False


def _points(n: int, rng: torch.Generator) -> Float[Tensor, "n d"]:
    return Sphere(n=n, d=DATA.d).sample(rng).x
