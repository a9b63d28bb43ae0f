"""What experiments Syn A-D share: their cases, what is looked at in training, and at its end."""

import copy
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import FGM, PGD, Attack, Identity
from .....core.randomness import generators
from .....losses import margin
from .....models import Stack
from .....report import Verdict
from .....training import Fit, ProbeFunction
from ... import measures
from ...data import SparseCoding
from ...reductions import SymmetricLoss
from ...theory import regime
from .presets import PRESETS, Phase, Preset, World

PresetName = Literal["random", "wide_margin", "dictionary"]
CLEAN, ADVERSARIAL = "clean", "adversarial"
START, MIXED, PURE = "initialisation", "clean training", "adversarial training"
"""The three moments that are compared."""
GLANCED = 400
"""Test points of a seed that are attacked along training; at the end all are."""
GLANCES = {
    "no attack": Identity(),
    "FGM": FGM(),
    "PGD": PGD(steps=10, step_size=0.25, random_start=False),
}
UNIVERSAL = "universal"


class Case(lab.Case):
    """A preset; `tiny` is the same at a size that only shows that everything runs."""

    preset: PresetName = "random"
    tests: PositiveInt = 2000
    tiny: bool = False

    @property
    def settings(self) -> Preset:
        return _tiny(PRESETS[self.preset]) if self.tiny else PRESETS[self.preset]

    @property
    def glance(self) -> int:
        """Steps from one look at a network in training to the next."""
        return 10 if self.tiny else 50

    @property
    def walk(self) -> int:
        """Steps of PGD where networks are judged."""
        return 2 if self.tiny else 40

    def world(self, stream: str) -> World:
        return World.draw(self.settings, self.seeds, f"{stream} {self.preset}", self.tests)


TINY = {"tiny": True, "tests": 60}


def _tiny(preset: Preset) -> Preset:
    few = {
        "data": SparseCoding(n=300, d=16, k=4, hi=0.2, margin=preset.data.margin),
        "width": 48 if preset.start == "random" else 32,
        "sigma0": 0.1,
        "batch": 40,
        "warmup": 5,
        "bias": preset.bias.model_copy(update={"start": 0.1, "slope": 0.005, "end": 0.3}),
        "clean": Phase(lr=1.0, penalty=1e-5, steps=30),
        "adversarial": Phase(lr=1.0, penalty=1e-5, steps=20),
    }
    return preset.model_copy(update=few)


def frozen(nets: Stack) -> measures.Nets:
    """The networks as they are now: training moves weights in place."""
    return measures.Nets.of(copy.deepcopy(nets))


def direction(world: World) -> Float[Tensor, "R d"]:
    """M w*"""
    return measures.label_direction(world.M, world.w)


def glances(
    world: World, start: measures.Nets, clean: measures.Nets | None = None
) -> dict[str, ProbeFunction]:
    """Accuracies on some test points, and what the neurons alive are made of, along training.

    `start` is at initialisation; `clean`, where there is one, after clean training.
    """

    def mean(values: Tensor, model: nn.Module) -> Tensor:
        return measures.spread(values, 0.0, measures.alive(weight(model))).mean

    def weight(model: nn.Module) -> Tensor:
        return model.get_parameter("weight").detach()

    neurons: dict[str, ProbeFunction] = {
        "dense over top": lambda model: mean(
            measures.dense_over_top(measures.coordinates(weight(model), world.M), world.w), model
        ),
        "cosine": lambda model: mean(measures.label_cosine(weight(model), direction(world)), model),
        "theta start": lambda model: mean(measures.theta(start.weight, weight(model)), model),
    }
    if clean is not None:
        keep = measures.alive(clean.weight)
        neurons["theta clean"] = lambda model: (
            measures.spread(measures.theta(clean.weight, weight(model)), 0.8, keep).mean
        )
    return _accuracies(world) | neurons


def _accuracies(world: World) -> dict[str, ProbeFunction]:
    x, y = world.test_x[:, :GLANCED].flatten(0, 1), world.test_y[:, :GLANCED].flatten()
    ball, replicates = world.preset.ball, len(world.seeds)
    moves = measures.universal(direction(world), world.test_y[:, :GLANCED], ball).flatten(0, 1)

    def share(losses: Tensor) -> Tensor:
        return (losses < 0).double().reshape(replicates, -1).mean(1)

    def around(model: nn.Module) -> SymmetricLoss:
        return SymmetricLoss.around(model, y, margin, x, ball)

    def under(attack: Attack) -> ProbeFunction:
        rngs = generators(world.stream, "glance", seeds=world.seeds)
        return lambda model: share(attack(around(model), x, ball, rng=rngs).loss)

    found = {name: under(attack) for name, attack in GLANCES.items()}
    return found | {UNIVERSAL: lambda model: share(around(model)(x + moves))}


def worst_glance(world: World, points: int = 200, steps: int = 20) -> dict[str, ProbeFunction]:
    """The worst case over all attacks too, on fewer points as it costs much."""
    x, y = world.test_x[:, :points], world.test_y[:, :points]

    def probe(model: nn.Module) -> Tensor:
        rngs = generators(world.stream, "worst glance", seeds=world.seeds)
        found = measures.survival(model, x, y, world.preset.ball, direction(world), rngs, steps)
        return found.accuracies()["worst"]

    return {"worst": probe}


def curve(run: Fit, world: World, phase: str, after: int = 0) -> pl.DataFrame:
    """The glances of a run as rows; steps are counted from the start of the first phase."""
    rows = run.log.table(world.seeds).with_columns(part=pl.lit("curve"), phase=pl.lit(phase))
    return rows.with_columns(step=pl.col("step") + after)


def columns(found: Mapping[str, Tensor | np.ndarray | float], prefix: str = "") -> dict:
    """One number a replicate under each name, ready for a table."""
    return {
        f"{prefix}{name}": value.double().numpy() if isinstance(value, Tensor) else value
        for name, value in found.items()
    }


def withstood(world: World, nets: measures.Nets, steps: int = 40) -> dict[str, Tensor]:
    """Accuracies without and under each attack, in all and certified, and their disorder.

    `disorder` counts test points at which certified <= worst <= PGD <= FGM <= clean fails.
    """
    ball, x, y = world.preset.ball, world.test_x, world.test_y
    rngs = generators(world.stream, "worst", seeds=world.seeds)
    found = measures.survival(nets, x, y, ball, direction(world), rngs, steps)
    each = zip(_each(nets), x, y, strict=True)
    certified = torch.stack(
        [measures.certified(one, rows, labels, ball) for one, rows, labels in each]
    )
    order = (certified, found.worst, found.pgd, found.fgm, found.clean)
    broken = [low & ~high for low, high in pairwise(order)]
    disorder = torch.stack(broken).any(0).sum(1).double()
    accuracies = found.accuracies() | {"certified": certified.double().mean(1)}
    return accuracies | {"disorder": disorder}


def _each(nets: measures.Nets) -> list[measures.Nets]:
    """One by one: all pre-activations of a stack at once would be large."""
    parts = zip(nets.weight, nets.bias, nets.sigma, strict=True)
    return [measures.Nets(*part) for part in parts]


def made_of(world: World, nets: measures.Nets) -> dict[str, Tensor]:
    """Means over the neurons alive of what section 2.2 measures, and sizes of the network."""
    weight, keep = nets.weight, measures.alive(nets.weight)
    A = measures.coordinates(weight, world.M)
    mixture, rates = (
        measures.mixture(A, world.w),
        measures.activation_probability(nets, world.test_x),
    )

    def mean(values: Tensor) -> Tensor:
        return measures.spread(values, 0.0, keep).mean

    both = measures.pairs(weight, 0.2, keep)
    return {
        "dense over top": mean(measures.dense_over_top(A, world.w)),
        "cosine": mean(measures.label_cosine(weight, direction(world))),
        "top energy": mean(measures.top_energy(weight, world.M)),
        "activation": mean(rates),
        "mean beta": mixture.mean_beta_over(world.preset.data.k),
        "covered": measures.covered(weight, world.M),
        "alive": keep.sum(-1),
        "pairs below": both.below,
        "pair theta": both.mean,
        "G2": measures.pair_ratio(weight),
        "participation": _participation(world, nets),
    }


def _participation(world: World, nets: measures.Nets) -> Tensor:
    """How many atoms an l2 FGM perturbation spreads over: it is along the input gradient."""
    each = zip(_each(nets), world.test_x, world.M, strict=True)
    return measures.participation(torch.stack([one.gradient(x) @ M for one, x, M in each])).mean(-1)


def flagged(verdict: Verdict, preset: PresetName) -> Verdict:
    """The verdict with what the theorems say of the preset's radius at its d and k."""
    settings = PRESETS[preset]
    said = regime(settings.data.d, settings.data.k).says(settings.tau, settings.norm)
    note = "; ".join(filter(None, (verdict.note, f"theory at tau = {settings.tau:g} is {said}")))
    return verdict.model_copy(update={"note": note})
