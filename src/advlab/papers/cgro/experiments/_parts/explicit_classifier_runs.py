"""f_S in six forms on grid data: four errors, sizes, and f along a line."""

from itertools import product
from typing import Literal

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import PGD, Transfer
from .....core.randomness import generator
from .....losses import ModelLoss, margin
from .....theory import relu_calculus as calculus
from .....threats import Ball, Norm
from ... import theory
from ...models import ReluProgram

NAME = "cgro/s6 decisive"
DELTA, SEPARATION, SPACING, HEIGHT = 0.1, 0.25, 0.25, 0.02
DEPTH, PRODUCT_DEPTH = 6, 4
STEEP = 100.0
"""The slope of a clean classifier that f_S clips almost everywhere."""
Way = tuple[Norm, str, str]
"""Norm, assembly and distances."""
WAYS: dict[str, Way] = {
    "l2 products, own squares": ("l2", "paper", "paper"),
    "l2 products": ("l2", "paper", "shared"),
    "l2 free, own squares": ("l2", "free", "paper"),
    "l2 free": ("l2", "free", "shared"),
    "linf products": ("linf", "paper", "shared"),
    "linf free": ("linf", "free", "shared"),
}
Row = tuple[int, str, str, int, int, float, float]
"""Seed, quantity, network, n, d, x and value."""
Labelled = tuple[Tensor, Tensor]


class Case(lab.Case):
    part: Literal["blocks", "depths", "classifier", "steep"]
    d: PositiveInt = 4
    n: PositiveInt = 10
    draws: PositiveInt = 20
    """Samples of each ball."""
    fresh: PositiveInt = 100
    steps: PositiveInt = 10
    profile: bool = False
    """Whether f is drawn along a line."""

    @property
    def cost(self) -> float:
        drawn = self.part in ("classifier", "steep")
        return self.replicates * self.n * self.n * self.d if drawn else 1.0


def classifiers(case: Case, seed: int) -> list[Row]:
    """f_S in all ways around x_D - 1/2."""
    train, test = _data(case, seed)
    clean = calculus.affine(np.eye(case.d)[-1:], -0.5)
    rows: list[Row] = []
    signs: dict[str, list[Tensor]] = {}
    for name, way in WAYS.items():
        f = _network(*train, clean, way)
        balls = _in_balls(train[0], way[0], case.draws, generator(NAME, "balls", way[0], seed))
        inside = _values(f, balls.flatten(0, 1)).reshape(balls.shape[:2])
        found = {"parameters": float(f.parameters_counted)}
        found |= _errors(f, train, test, inside, case, way[0], seed, _module(clean))
        rows += [(seed, key, name, case.n, case.d, 0.0, value) for key, value in found.items()]
        everywhere = torch.cat([train[0], test[0]])
        here = torch.cat([_values(f, everywhere), inside.flatten()])
        signs.setdefault(way[0], []).append(here.sign())
        if case.profile and seed == case.seed:
            rows += _profiles(f, train, test, name, case)
    for norm, found in signs.items():
        apart = sum(int((one != found[0]).sum()) for one in found[1:])
        rows.append((seed, "disagreements", norm, case.n, case.d, 0.0, float(apart)))
    return rows


def steep_classifiers(case: Case, seed: int) -> list[Row]:
    """f_S around 100 (x_D - 1/2), the same classifier as far as signs go."""
    train, test = _data(case, seed)
    clean = calculus.affine(STEEP * np.eye(case.d)[-1:], -0.5 * STEEP)
    rows: list[Row] = []
    for name in ("l2 free", "linf free"):
        f, norm = _network(*train, clean, WAYS[name]), WAYS[name][0]
        balls = _in_balls(train[0], norm, case.draws, generator(NAME, "balls", norm, seed))
        inside = _values(f, balls.flatten(0, 1)).reshape(balls.shape[:2])
        found = _errors(f, train, test, inside, case, norm, seed, _module(clean))
        rows += [(seed, key, f"{name}, steep", case.n, case.d, 0.0, v) for key, v in found.items()]
    return rows


def _data(case: Case, seed: int) -> tuple[Labelled, Labelled]:
    rng = generator(NAME, "data", case.d, case.n, seed)
    x, y = grid_data(case.n + case.fresh, case.d, rng)
    return (x[: case.n], y[: case.n]), (x[case.n :], y[case.n :])


def _module(network: calculus.Network) -> nn.Module:
    return ReluProgram([(layer.weight, layer.bias) for layer in network.layers])


def _network(x: Tensor, y: Tensor, clean: calculus.Network, way: Way) -> ReluProgram:
    norm, assembly, distances = way
    return theory.cgro_network(
        x.numpy(), y.numpy(), clean, DELTA, SEPARATION, DEPTH, norm, assembly,
        distances=distances, product_depth=PRODUCT_DEPTH,
    )  # fmt: skip


def grid_data(n: int, d: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """At most n different grid points, lifted to the side of their label."""
    side = round(1 / SPACING) + 1
    draws = torch.randint(side, (4 * n, d - 1), generator=rng)
    places = list(dict.fromkeys(tuple(row) for row in draws.tolist()))
    if side ** (d - 1) <= 4 * n:
        order = torch.randperm(side ** (d - 1), generator=rng).tolist()
        every = list(product(range(side), repeat=d - 1))
        places = [every[i] for i in order]
    grid = SPACING * torch.tensor(places[:n], dtype=torch.float64)
    y = 2.0 * torch.randint(2, (len(grid),), generator=rng).double() - 1
    return torch.column_stack([grid, 0.5 + HEIGHT * y]), y


def _in_balls(x: Tensor, norm: Norm, draws: int, rng: torch.Generator) -> Tensor:
    """(draws + 2d, n, d): uniform points of each ball, and the ends of its axes."""
    ball = Ball(norm=norm, radius=DELTA)
    samples = [ball.sample(x, rng=rng) for _ in range(draws)]
    axes = torch.eye(x.shape[1], dtype=x.dtype)
    ends = [x + side * DELTA * axis for axis in axes for side in (1, -1)]
    return torch.stack([*samples, *ends])


def _errors(
    f: nn.Module,
    train: Labelled,
    test: Labelled,
    inside: Tensor,
    case: Case,
    norm: Norm,
    seed: int,
    clean: nn.Module,
) -> dict[str, float]:
    """The four errors of f_S; an error is y f <= 0 at a point, or anywhere in its ball.

    `inside` has the values of f at points of the training balls. Balls are searched by PGD on f_S
    and by transfer from the clean classifier: f_S clips that one, which can hide its gradient.
    """
    ball, walk = Ball(norm=norm, radius=DELTA), PGD(steps=case.steps, step_size=0.25)
    attacks = {"PGD": walk, "transfer": Transfer(source=clean, inner=walk)}
    sets, by = {"train": train, "test": test}, {}
    for name, (x, y) in sets.items():
        for way, attack in attacks.items():
            rng = generator(NAME, way, norm, name, seed)
            by[name, way] = attack(ModelLoss(f, y, margin), x, ball, rng=rng).loss >= 0
    fooled = {name: by[name, "PGD"] | by[name, "transfer"] for name in sets}
    fooled["train"] |= (train[1] * inside <= 0).any(dim=0)
    wrong = {name: _values(f, x) * y <= 0 for name, (x, y) in sets.items()}
    # Of the linear clean classifier the worst point is known: a step of delta along the last axis.
    known = (test[0][:, -1] - 0.5) * test[1] <= DELTA
    shares = {
        "clean train": wrong["train"], "clean test": wrong["test"], "robust train": fooled["train"],
        "robust test": fooled["test"], "robust test of the clean classifier": known,
        "robust test by PGD": by["test", "PGD"], "robust test by transfer": by["test", "transfer"],
    }  # fmt: skip
    return {name: float(one.double().mean()) for name, one in shares.items()}


def _values(f: nn.Module, x: Tensor) -> Tensor:
    """In pieces: the widest layers have thousands of units."""
    with torch.no_grad():
        return torch.cat([f(piece) for piece in x.split(500)])


def _profiles(f: nn.Module, train: Labelled, test: Labelled, name: str, case: Case) -> list[Row]:
    """y f along the last axis, against the label: x is the step."""
    steps = torch.linspace(-0.05, 0.25, 61, dtype=torch.float64)
    rows = []
    for kind, (x, y) in {"training point": train, "fresh point": test}.items():
        line = x[:1].repeat(len(steps), 1)
        line[:, -1] -= y[0] * steps
        values = (y[0] * _values(f, line)).tolist()
        rows += [
            (case.seed, kind, name, case.n, case.d, float(s), value)
            for s, value in zip(steps.tolist(), values, strict=True)
        ]
    return rows
