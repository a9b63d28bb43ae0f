"""Deep networks trained in B(R) against every attack, and the best robust loss found there."""

import math
from typing import ClassVar

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from ..... import lab
from .....attacks import PGD, Attack, Grid, Transfer
from .....core.randomness import generators
from .....losses import ModelLoss, pseudo_huber
from .....models import Stack
from .....threats import Cap
from ...data import Sphere
from ...measures import compatibility
from ...models import DeepReLU
from ...reductions.low_rank_deep import LowRankDeep, descend
from ...theory.linearised_optimum import linearised_optimum
from .two_layer_runs import AttackName, maps

NAME = "convergence/best_in_ball, new draws"
DELTA = 0.15
DATA = Sphere(n=6, d=3, separation=4 * DELTA)
CAP = Cap(radius=DELTA)
ASCENT = PGD(steps=3, step_size=0.5, random_start=False, jump=False)
REACHES = (1.0, 2.0)
"""R H: in B(R) the outputs can move by about as much at every depth, and no best loss is near 0."""


class Case(lab.Case):
    """A width m and a depth H; all attacks and both R from the same starts."""

    dtype: ClassVar[torch.dtype] = torch.float32
    width: PositiveInt
    depth: PositiveInt
    steps: PositiveInt = 40
    rate: PositiveFloat = 1.0
    """alpha times m H."""
    searched: PositiveInt = 20
    """Points of each cap that the worst case is looked for at, before the ascent; the rim has its
    own."""
    tangents: PositiveInt = 9
    """Points inside each cap for the linearised network; the rim and the centre besides."""

    @property
    def cost(self) -> float:
        return self.replicates * self.steps * (2 + (self.depth - 0.9) * (self.width / 256) ** 2)

    @property
    def lr(self) -> float:
        return self.rate / (self.width * self.depth)

    @property
    def radii(self) -> tuple[float, ...]:
        """R of the runs of each start."""
        return tuple(reach / self.depth for reach in REACHES)

    @property
    def runs(self) -> list[tuple[int, float]]:
        """Seed and R of each run, in the order of `LowRankDeep`."""
        return [(seed, R) for seed in self.seeds for R in self.radii]

    def data(self) -> tuple[Float[Tensor, "B n d"], Float[Tensor, "B n"]]:
        x, y = DATA.sample_stack(generators(NAME, "data", seeds=self.seeds))
        for one, labels in zip(x, y, strict=True):
            compatibility(one, labels, CAP).require()
        x, y = (part.to(self.dtype).repeat_interleave(len(REACHES), 0) for part in (x, y))
        return x, y

    def starts(self) -> list[DeepReLU]:
        rngs = generators(NAME, "network", self.width, self.depth, seeds=self.seeds)
        return [
            DeepReLU.draw(DATA.d, self.width, self.depth, rng, dtype=self.dtype) for rng in rngs
        ]

    def maps(self) -> dict[AttackName, Attack]:
        """All eight; transfer looks at other, random networks of the same depth."""
        rngs = [g for g in generators(NAME, "others", seeds=self.seeds) for _ in REACHES]
        others = Stack.draw(lambda rng: DeepReLU.draw(DATA.d, 64, self.depth, rng), rngs)
        transfer = Transfer(source=others.to(self.dtype), inner=ASCENT)
        return {**maps(ASCENT), "transfer": transfer}


def compare(case: Case) -> pl.DataFrame:
    """One row per attack, R and seed.

    `least` is min_t L_A(W_t), `first` L_A(W_0), `found` the smallest worst-case loss found in B(R),
    `linear` and `bound` the linearised network's optimum and its lower bound by duality. Worst-case
    losses are `start` of W_0 and, against PGD only, `robust` of W_T.
    """
    starts, (x, y) = case.starts(), case.data()
    start = worst_case(case, LowRankDeep(starts, case.radii), x, y)
    rows = {"seed": [seed for seed, _ in case.runs], "R": [R for _, R in case.runs]}
    found, optimum = _built(case, starts, x, y)
    tables = []
    for attack, attacked in case.maps().items():
        runs = LowRankDeep(starts, case.radii)
        losses = _descend(case, runs, x, y, attacked, case.lr, case.steps, attack)
        robust = (
            worst_case(case, runs, x, y) if attack == "pgd" else torch.full_like(start, math.nan)
        )
        found = found.fmin(robust)
        displacement = runs.displacement.amax(0)
        tables.append(
            pl.DataFrame(
                {
                    "attack": attack,
                    **rows,
                    "first": losses[0].double().numpy(),
                    "least": losses.min(0).values.double().numpy(),
                    "start": start.double().numpy(),
                    "robust": robust.double().numpy(),
                    "displacement": displacement.numpy(),
                    "linear": optimum[:, 0],
                    "bound": optimum[:, 1],
                }
            )
        )
    best = pl.DataFrame({**rows, "found": found.double().numpy()})
    return pl.concat(tables).join(best, on=["seed", "R"], maintain_order="left")


def _built(
    case: Case, starts: list[DeepReLU], x: Tensor, y: Tensor
) -> tuple[Float[Tensor, " B"], np.ndarray]:
    """The least worst-case loss of the network that the linearised optimum makes, before and after
    a slow descent against PGD; and the optimum and its bound (B, 2)."""
    net = LowRankDeep(starts, case.radii)
    flat = x.flatten(0, 1)
    points = torch.stack([flat, *CAP.grid(flat, case.tangents)], 1)
    owner = np.repeat(np.arange(DATA.n), points.shape[1])
    with torch.no_grad():
        f, tangents = net.tangents(points.flatten(0, 1))
        grams = net.tangent_grams(tangents).numpy()
    optima = [
        linearised_optimum(
            grams[:, r], f[r].double().numpy(), owner, y[r].double().numpy(),
            R / math.sqrt(case.width),
        )
        for r, (_, R) in enumerate(case.runs)
    ]  # fmt: skip
    sizes = np.array([one.coefficients for one in optima]).transpose(1, 0, 2)
    net.move([torch.from_numpy(size) for size in sizes], tangents)
    found = worst_case(case, net, x, y)
    _descend(case, net, x, y, ASCENT, case.lr / 4, case.steps // 4, "refined")
    found = torch.minimum(found, worst_case(case, net, x, y))
    return found, np.array([(one.loss, one.bound) for one in optima])


def _descend(
    case: Case, runs: LowRankDeep, x: Tensor, y: Tensor, attack: Attack, lr: float, steps: int,
    name: str,
) -> Float[Tensor, "steps_and_1 B"]:  # fmt: skip
    rngs = [g for g in generators(NAME, "attack", name, seeds=case.seeds) for _ in REACHES]
    return descend(
        runs, x, y, loss=pseudo_huber, attack=attack, threat=CAP, rate=lr, steps=steps, rng=rngs
    )


def worst_case(
    case: Case, runs: LowRankDeep, x: Float[Tensor, "B n d"], y: Float[Tensor, "B n"]
) -> Float[Tensor, " B"]:
    """L_*(W) of each run, by a search of every cap."""
    search = Grid(points=case.searched, refinements=10)
    loss = ModelLoss(runs, y.flatten(), pseudo_huber)
    rngs = generators(NAME, "search", seeds=range(len(y)))
    return search(loss, x.flatten(0, 1), CAP, rng=rngs).loss.reshape(y.shape).mean(1)
