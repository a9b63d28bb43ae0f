"""The least width at which a two-layer ReLU network fits every point, or every ball."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .....attacks import PGD
from .....core.randomness import generator, uniform
from .....losses import ModelLoss, margin
from .....models import Stack, TwoLayer
from .....threats import Ball
from .....training import StopWhen, fit

Training = Literal["plain", "robust"]
RADIUS = 0.8
"""delta, where half the least distance of two points is 1."""
CANDIDATES = 2000
CHECK_EVERY = 100
BALL = Ball(norm="l2", radius=RADIUS)
TRAINED_ON = PGD(steps=5, step_size=0.3)
DECIDED_BY = PGD(steps=20, step_size=0.125, restarts=3)


class Separated(NamedTuple):
    """Points with least distance 2, and labels -1, +1, half of each; a stack has one more axis."""

    x: Float[Tensor, "*stack n d"]
    y: Float[Tensor, "*stack n"]


def separated(n: int, d: int, rng: torch.Generator) -> Separated:
    """n points of a cube, each the farthest from those before it among CANDIDATES uniform ones."""
    cube = 2 * uniform(torch.empty(CANDIDATES, d, dtype=torch.float64), rng) - 1
    kept, distance = [0], (cube - cube[0]).norm(dim=1)
    while len(kept) < n:
        kept.append(int(distance.argmax()))
        distance = torch.minimum(distance, (cube - cube[kept[-1]]).norm(dim=1))
    x = cube[kept]
    y = torch.ones(n, dtype=torch.float64)
    y[torch.randperm(n, generator=rng)[: n // 2]] = -1
    return Separated(x * (2 / torch.pdist(x).min()), y)


def minimal_widths(
    data: Sequence[Separated],
    seeds: Sequence[int],
    training: Training,
    widths: Sequence[int],
    *,
    steps: int,
    starts: int,
    name: str,
) -> list[int | None]:
    """For each data set the first of the ascending widths that reaches 100 %, None if none does.

    Best of `starts` networks, all data sets as one stack; those that are done leave it.
    """
    found: dict[int, int] = {}
    for width in widths:
        left = [i for i in range(len(data)) if i not in found]
        if not left:
            break
        runs = [(seeds[i], start) for i in left for start in range(starts)]
        search = _Search([data[i] for i in left], training, runs, name)
        reached = search.train(width, steps).tolist()
        found |= {i: width for i, fits in zip(left, reached, strict=True) if fits}
    return [found.get(i) for i in range(len(data))]


class _Search:
    """Networks of one width on several data sets; a run is a (seed, start)."""

    def __init__(
        self,
        data: Sequence[Separated],
        training: Training,
        runs: Sequence[tuple[int, int]],
        name: str,
    ):
        self.training, self.runs, self.name = training, runs, name
        self.n, self.d = data[0].x.shape
        starts = len(runs) // len(data)
        self.x = torch.stack([one.x for one in data]).repeat_interleave(starts, 0)
        self.y = torch.stack([one.y for one in data]).repeat_interleave(starts, 0)
        self.reached = torch.zeros(len(data), dtype=torch.bool)

    def train(self, width: int, steps: int) -> Bool[Tensor, " sets"]:
        """Which data sets were fitted by one of their networks at a check."""
        streams = self._streams("train", width)
        robust = self.training == "robust"

        def draw(rng: torch.Generator) -> TwoLayer:
            return TwoLayer.draw(
                self.d, width, "relu", rng, init="torch", bias=True, train_top=True
            )

        fit(
            Stack.draw(draw, streams),
            self.x,
            self.y,
            steps=steps,
            lr=0.02,
            loss="logistic",
            ball=BALL if robust else None,
            attack=TRAINED_ON if robust else None,
            optimizer=torch.optim.Adam,
            hooks=[StopWhen(self._all_fit, every=CHECK_EVERY, reason="every data set is fitted")],
            rng=streams,
        )
        return self.reached

    def _all_fit(self, model: nn.Module) -> bool:
        """Notes the data sets that a network fits now; whether there is none left."""
        self.reached |= self.fits(model).reshape(len(self.reached), -1).any(1)
        return bool(self.reached.all())

    def fits(self, model: nn.Module) -> Bool[Tensor, " replicates"]:
        """Whether a network is right on all its points; if robust, on all that the attack finds."""
        points, labels = self.x.flatten(0, 1), self.y.flatten()
        loss = ModelLoss(model, labels, margin)
        if self.training == "robust":
            worst = DECIDED_BY(loss, points, BALL, rng=self._streams("check")).loss
        else:
            worst = loss(points)
        return (worst < 0).reshape(-1, self.n).all(1)

    def _streams(self, *purpose: object) -> list[torch.Generator]:
        """One generator per run, whatever other runs there are."""
        return [generator(self.name, self.training, self.d, *purpose, *run) for run in self.runs]
