"""Deep networks trained in B(R) against every attack, and the best robust loss found there."""

import math
from typing import ClassVar, Literal

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
from ...reductions.linearised_deep import RobustlyLinear, robustly_linear
from ...reductions.low_rank_deep import LowRankDeep, descend
from ...reductions.one_hidden import OneHidden
from .two_layer_runs import maps

NAME = "convergence/best_in_ball, nine maps"
DELTA = 0.15
DATA = Sphere(n=6, d=3, separation=4 * DELTA)
CAP = Cap(radius=DELTA)
ASCENT = PGD(steps=3, step_size=0.5, random_start=False, jump=False)
STAR = "star"
"""The ninth map, A*: the worst point of the cap, searched for."""
JUDGED: tuple[str, ...] = ("identity", "pgd", STAR)
"""The maps after which the worst case of the trained network is searched for."""
REACHES = (1.0, 2.0)
"""R H: in B(R) the outputs can move by about as much at every depth, and no best loss is near 0."""


class Case(lab.Case):
    """A width m and a depth H; all maps and both R from the same starts.

    `kind` "widths": T = `steps` steps of alpha = 1/(m H). "rates": alpha = eps/(m H^2) and T = R^2
    H^2/eps^2, the orders of Theorem 4.1 with constants of 1, for one hidden layer.
    """

    dtype: ClassVar[torch.dtype] = torch.float32
    kind: Literal["widths", "rates"] = "widths"
    width: PositiveInt
    depth: PositiveInt
    eps: PositiveFloat = 0.01
    """The accuracy that "rates" are for."""
    steps: PositiveInt = 30
    rate: PositiveFloat = 1.0
    """alpha times m H, where the best network is looked for and all maps are compared."""
    searched: PositiveInt = 20
    """Points of each cap that A* looks at before its ascent; the rim has its own."""
    judged: PositiveInt = 300
    """The same for worst-case losses of what has been trained."""
    tangents: PositiveInt = 9
    """Points inside each cap that the linearised network's program begins with."""

    @property
    def cost(self) -> float:
        if self.kind == "rates":
            return self.replicates * 2 * self.promised[-1]
        return self.replicates * self.steps * (2 + (self.depth - 0.9) * (self.width / 256) ** 2)

    @property
    def lr(self) -> float:
        return self.rate / (self.width * self.depth)

    @property
    def promised(self) -> list[int]:
        """T of Theorem 4.1 for each R, with a constant of 1."""
        return [math.ceil((R * self.depth / self.eps) ** 2 - 1e-9) for R in self.radii]

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

    def maps(self) -> dict[str, Attack]:
        """Eight, of which transfer looks at other, random networks of the same depth; and A*."""
        rngs = [g for g in generators(NAME, "others", seeds=self.seeds) for _ in REACHES]
        others = Stack.draw(lambda rng: DeepReLU.draw(DATA.d, 64, self.depth, rng), rngs)
        transfer = Transfer(source=others.to(self.dtype), inner=ASCENT)
        return {**maps(ASCENT), "transfer": transfer, STAR: self.star}

    @property
    def star(self) -> Grid:
        return Grid(points=self.searched, refinements=10)

    @property
    def judge(self) -> Grid:
        return Grid(points=self.judged, refinements=15)


def compare(case: Case) -> pl.DataFrame:
    """One row per map, R and seed.

    `least` is min_t L_A(W_t) and `early` that of the first quarter of the steps, `first` L_A(W_0).
    `found` is the smallest worst-case loss found in B(R). The linearised network's optimum is above
    `linear` and `bound`, for finitely many points and by duality, and `linear found` is what a
    search finds of its network. Worst-case losses are `start` of W_0, `built` of the network that
    the linearised optimum makes and, after clean training, PGD and A*, `robust` of W_T.
    """
    starts, (x, y) = case.starts(), case.data()
    linear = _linearised(case, starts, x, y)
    built = worst_case(case, linear.runs, x, y)
    found, tables = built, []
    for name, attack in case.maps().items():
        runs = LowRankDeep(starts, case.radii)
        losses = _descend(case, runs, x, y, attack, case.lr, case.steps, name).double()
        robust = (
            worst_case(case, runs, x, y) if name in JUDGED else torch.full_like(built, math.nan)
        )
        found = found.fmin(robust)
        if name == STAR:
            found = found.fmin(_tail(case, runs, x, y))
        columns = {
            "first": losses[0], "least": losses.amin(0),
            "early": losses[: case.steps // 4 + 1].amin(0), "robust": robust,
            "displacement": runs.displacement.amax(0),
        }  # fmt: skip
        tables.append(_rows(case, name, columns))
    best = _rows(case, None, {
        "found": found, "built": built,
        "start": worst_case(case, LowRankDeep(starts, case.radii), x, y),
    }).with_columns(
        pl.Series("linear", linear.least), pl.Series("bound", linear.bound),
        pl.Series("linear found", linear.found),
    )  # fmt: skip
    return pl.concat(tables).join(best, on=["seed", "R"], maintain_order="left")


def follow(case: Case) -> pl.DataFrame:
    """One row per map, R and seed: the rate and the steps of Theorem 4.1 with constants of 1.

    `least` is of the `promised` = T steps, `needed` the first step at which the loss is at most
    eps above the best found, NaN if there is none among these.
    """
    starts, (x, y) = case.starts(), case.data()
    found = worst_case(case, _linearised(case, starts, x, y).runs, x, y)
    runs = LowRankDeep(starts, case.radii)
    _descend(case, runs, x, y, case.star, case.lr, case.steps, STAR)
    found = found.fmin(worst_case(case, runs, x, y)).fmin(_tail(case, runs, x, y))
    promised, tables = torch.tensor(case.promised).repeat(case.replicates), []
    alpha = case.eps / (case.width * case.depth**2)
    for name, attack in case.maps().items():
        losses = _descend(
            case, OneHidden(starts, case.radii), x, y, attack, alpha, case.promised[-1],
            f"{name}, rates",
        ).double()  # fmt: skip
        late = torch.arange(len(losses))[:, None] > promised
        losses = losses.masked_fill(late, math.inf)
        down = losses <= found + case.eps
        needed = torch.where(down.any(0), down.double().argmax(0).double(), math.nan)
        columns = {"first": losses[0], "least": losses.amin(0), "needed": needed, "found": found}
        tables.append(_rows(case, name, {**columns, "promised": promised}))
    return pl.concat(tables)


def _rows(case: Case, name: str | None, columns: dict[str, Tensor]) -> pl.DataFrame:
    """In the order of runs."""
    keys = {} if name is None else {"attack": name}
    rows = {"seed": [seed for seed, _ in case.runs], "R": [R for _, R in case.runs]}
    values = {key: value.double().numpy() for key, value in columns.items()}
    return pl.DataFrame({**rows, **values}).select(
        *(pl.lit(value).alias(key) for key, value in keys.items()), pl.all()
    )


def _linearised(case: Case, starts: list[DeepReLU], x: Tensor, y: Tensor) -> RobustlyLinear:
    return robustly_linear(
        starts, case.radii, x, y, CAP, first=case.tangents, search=case.judge,
        rng=generators(NAME, "linearised", seeds=range(len(y))),
    )  # fmt: skip


def _tail(case: Case, runs: LowRankDeep, x: Tensor, y: Tensor) -> Float[Tensor, " B"]:
    """The worst-case loss after some slower steps against A*, which end nearer to the best."""
    _descend(case, runs, x, y, case.star, case.lr / 4, max(1, case.steps // 3), "tail")
    return worst_case(case, runs, x, y)


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
    """L_*(W) of each run, by a search of every cap: from below."""
    loss = ModelLoss(runs, y.flatten(), pseudo_huber)
    rngs = generators(NAME, "search", seeds=range(len(y)))
    return case.judge(loss, x.flatten(0, 1), CAP, rng=rngs).loss.reshape(y.shape).mean(1)
