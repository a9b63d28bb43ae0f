"""What experiments with both phases share: cases, probes along training, measures at its end."""

import copy
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
import torch
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
from .presets import PRESETS, Phase, Preset, SparseProblem, scaled

PresetName = Literal["random", "wide_margin", "dictionary"]
CLEAN, ADVERSARIAL, CONTROL = "clean", "adversarial", "control"
START, MIXED, PURE = "initialisation", "clean training", "adversarial training"
"""The three stages that are compared."""
PROBE_POINTS = 300
"""Test points per seed that are attacked along training; at the end all are."""
PROBE_ATTACKS = {
    "no attack": Identity(),
    "FGM": FGM(keep_worst=False, cutoff=measures.CUTOFF),
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
        """The preset, at its own size or tiny."""
        return _tiny(PRESETS[self.preset]) if self.tiny else PRESETS[self.preset]

    @property
    def probe_every(self) -> int:
        """Steps from one probe of a network in training to the next."""
        return 10 if self.tiny else 50

    @property
    def pgd_steps(self) -> int:
        """Steps of PGD where networks are evaluated."""
        return 2 if self.tiny else 40

    def problem(self, stream: str) -> SparseProblem:
        """The data and networks of this case's seeds, from random streams of this name."""
        return SparseProblem.draw(self.settings, self.seeds, f"{stream} {self.preset}", self.tests)


class ScaledCase(Case):
    """The preset `random` scaled to another dimension."""

    d: PositiveInt = 256

    @property
    def settings(self) -> Preset:
        """The scaled preset, or a tiny one."""
        return _tiny(PRESETS[self.preset]) if self.tiny else scaled(self.d)


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


def training_probes(
    problem: SparseProblem, start: measures.Nets, clean: measures.Nets | None = None
) -> dict[str, ProbeFunction]:
    """Accuracies on some test points, and the composition of the neurons alive, along training.

    Args:
        problem: whose test points and dictionary are used.
        start: the networks at initialisation.
        clean: those after clean training, where there are such.
    """

    def mean(values: Tensor, model: nn.Module) -> Tensor:
        return measures.spread(values, 0.0, measures.alive(weight(model))).mean

    def weight(model: nn.Module) -> Tensor:
        return model.get_parameter("weight").detach()

    neurons: dict[str, ProbeFunction] = {
        "dense over top": lambda model: mean(
            measures.dense_over_top(measures.coordinates(weight(model), problem.M), problem.w),
            model,
        ),
        "cosine": lambda model: mean(
            measures.label_cosine(weight(model), problem.direction), model
        ),
        "theta start": lambda model: mean(measures.theta(start.weight, weight(model)), model),
    }
    if clean is not None:
        before = clean.weight
        neurons["theta clean"] = lambda model: (
            measures.spread(
                measures.theta(before, weight(model)),
                0.8,
                measures.alive(before) | measures.alive(weight(model)),
            ).mean
        )
    return _accuracies(problem) | neurons


def control_probes(problem: SparseProblem, clean: measures.Nets) -> dict[str, ProbeFunction]:
    """The cosine of neurons with what they were after clean training, without an attack."""

    def theta(model: nn.Module) -> Tensor:
        now = model.get_parameter("weight").detach()
        keep = measures.alive(clean.weight) | measures.alive(now)
        return measures.spread(measures.theta(clean.weight, now), 0.8, keep).mean

    return {"theta control": theta}


def _accuracies(problem: SparseProblem) -> dict[str, ProbeFunction]:
    x, y = (
        problem.test_x[:, :PROBE_POINTS].flatten(0, 1),
        problem.test_y[:, :PROBE_POINTS].flatten(),
    )
    ball, replicates = problem.preset.ball, len(problem.seeds)
    moves = measures.universal(problem.direction, problem.test_y[:, :PROBE_POINTS], ball).flatten(
        0, 1
    )

    def share(losses: Tensor) -> Tensor:
        return (losses < 0).double().reshape(replicates, -1).mean(1)

    def around(model: nn.Module) -> SymmetricLoss:
        return SymmetricLoss.around(model, y, margin, x, ball)

    def under(attack: Attack) -> ProbeFunction:
        rngs = generators(problem.stream, "glance", seeds=problem.seeds)
        return lambda model: share(attack(around(model), x, ball, rng=rngs).loss)

    found = {name: under(attack) for name, attack in PROBE_ATTACKS.items()}
    return found | {UNIVERSAL: lambda model: share(around(model)(x + moves))}


def worst_case_probe(
    problem: SparseProblem, points: int = 200, steps: int = 20
) -> dict[str, ProbeFunction]:
    """The worst case over all attacks, on fewer points as it costs much.

    Args:
        problem: whose test points are used.
        points: test points per replicate.
        steps: of PGD.
    """
    x, y = problem.test_x[:, :points], problem.test_y[:, :points]

    def probe(model: nn.Module) -> Tensor:
        rngs = generators(problem.stream, "worst glance", seeds=problem.seeds)
        found = measures.survival(model, x, y, problem.preset.ball, problem.direction, rngs, steps)
        return found.accuracies()["worst"]

    return {"worst": probe}


def curve(run: Fit, problem: SparseProblem, phase: str, after: int = 0) -> pl.DataFrame:
    """The probes of a run as rows.

    Args:
        run: what `fit` returned.
        problem: whose seeds it trained.
        phase: the name of the phase.
        after: steps of the phases before, added to the step.
    """
    rows = run.log.table(problem.seeds).with_columns(part=pl.lit("curve"), phase=pl.lit(phase))
    return rows.with_columns(step=pl.col("step") + after)


def columns(found: Mapping[str, Tensor | np.ndarray | float], prefix: str = "") -> dict:
    """One number per replicate under each name, ready for a table."""
    return {
        f"{prefix}{name}": value.double().numpy() if isinstance(value, Tensor) else value
        for name, value in found.items()
    }


def accuracies_under_attack(
    problem: SparseProblem, nets: measures.Nets, steps: int = 40
) -> dict[str, Tensor]:
    """Clean accuracy, that under each attack, under all of them, certified; and their disorder.

    `disorder` counts test points at which certified <= worst <= PGD <= FGM and clean fails.

    Args:
        problem: whose test points and radius are used.
        nets: the networks to attack, one per replicate.
        steps: of PGD.
    """
    ball, x, y = problem.preset.ball, problem.test_x, problem.test_y
    rngs = generators(problem.stream, "worst", seeds=problem.seeds)
    found = measures.survival(nets, x, y, ball, problem.direction, rngs, steps)
    each = zip(each_net(nets), x, y, strict=True)
    certified = torch.stack(
        [measures.certified(one, rows, labels, ball) for one, rows, labels in each]
    )
    order = (certified, found.worst, found.pgd, found.fgm & found.clean)
    broken = [low & ~high for low, high in pairwise(order)]
    disorder = torch.stack(broken).any(0).sum(1).double()
    accuracies = found.accuracies() | {"certified": certified.double().mean(1)}
    return accuracies | {"disorder": disorder}


def each_net(nets: measures.Nets) -> list[measures.Nets]:
    """One by one: all pre-activations of a stack at once would be large."""
    parts = zip(nets.weight, nets.bias, nets.sigma, strict=True)
    return [measures.Nets(*part) for part in parts]


def neuron_statistics(problem: SparseProblem, nets: measures.Nets) -> dict[str, Tensor]:
    """Means over the neurons alive of their dense part (Theorem 5.2), and sizes of the network."""
    weight, keep = nets.weight, measures.alive(nets.weight)
    A = measures.coordinates(weight, problem.M)
    mixture, rates = (
        measures.mixture(A, problem.w),
        measures.activation_probability(nets, problem.test_x),
    )

    def mean(values: Tensor) -> Tensor:
        return measures.spread(values, 0.0, keep).mean

    both = measures.pairs(weight, 0.2, keep)
    return {
        "dense over top": mean(measures.dense_over_top(A, problem.w)),
        "cosine": mean(measures.label_cosine(weight, problem.direction)),
        "top energy": mean(measures.top_energy(weight, problem.M)),
        "activation": mean(rates),
        "mean beta": mixture.mean_beta_over(problem.preset.data.k),
        "covered": measures.covered(weight, problem.M),
        "alive": keep.sum(-1),
        "pairs below": both.below,
        "pair theta": both.mean,
        "G2": measures.pair_ratio(weight),
        "participation": _participation(problem, nets),
    }


def _participation(problem: SparseProblem, nets: measures.Nets) -> Tensor:
    """How many atoms an l2 FGM perturbation spreads over: it is along the input gradient."""
    each = zip(each_net(nets), problem.test_x, problem.M, strict=True)
    return measures.participation(torch.stack([one.gradient(x) @ M for one, x, M in each])).mean(-1)


def with_theory_note(verdict: Verdict, preset: PresetName) -> Verdict:
    """The verdict with what the theorems say of the preset's radius at its d and k."""
    settings = PRESETS[preset]
    said = regime(settings.data.d, settings.data.k).says(settings.tau, settings.norm)
    note = "; ".join(filter(None, (verdict.note, f"theory at tau = {settings.tau:g} is {said}")))
    return verdict.model_copy(update={"note": note})
