"""Algorithm 1 inside Assumption 1: runs whose dimension only the law of the reduced problem allows.

`reductions.mixture_law` draws what training can see of the data, at a cost that does not depend on
d. So signal and dimension can be as large as Assumption 1 asks for, at any C. Two paces: `assumed`
has the step size of line (4), eta = 1/(C d^2), for a few steps; `fast` has eta = 2 n/d, against
line (4), and trains until the loss is small. Up to the first step they are the same run in other
units where the activation is homogeneous.
"""

import copy
import math
from typing import Annotated, Literal

import numpy as np
import polars as pl
import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from ..... import lab
from .....core.randomness import generators
from .....threats import Ball
from .....training import Fit, Probe, ProbeFunction, fit
from ... import measures
from ...data import NoisyMixture
from ...measures import Networks
from ...measures.good_run import good_run
from ...reductions import TwoLayerAdversarial
from ...reductions.mixture_law import MixtureProblem, Start, draw_stack
from .lemmas_runs import ATTACK, Shape
from .theorem_range import check_range

SPEED = 2.0
"""eta d/n of the fast pace."""
STREAM = "benign/theory_regime"
EARLY = 10
"""Every step up to this one is measured, then eight per decade."""
MEASURES: dict[str, Literal["min", "max", "sum"]] = {
    "training error": "max",
    "loss ratio": "max",
    "span distance": "max",
    "clean signal low": "min",
    "clean signal high": "max",
    "noisy signal low": "min",
    "noisy signal high": "max",
    "lost pairs": "sum",
    "relative step": "min",
    "normalised margin": "min",
}
"""Measures of which a run keeps the worst over its steps t >= 1."""


class RegimeCase(lab.Case):
    """A stack of two-layer networks inside Assumption 1, with the constant C."""

    C: PositiveFloat
    pace: Literal["assumed", "fast"] = "assumed"
    activation: Shape = "relu"
    n: PositiveInt
    d: PositiveInt
    mu_norm: PositiveFloat
    alpha: PositiveFloat
    beta: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    width: PositiveInt
    delta: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    steps: PositiveInt = 5
    tests: PositiveInt = 500

    @model_validator(mode="after")
    def _in_the_theorems_range(self) -> "RegimeCase":
        check_range(self.n, self.d, self.mu_norm, self.alpha, self.width)
        return self

    @property
    def cost(self) -> float:
        return self.replicates * (self.steps + 50) * self.n * self.width**2 / 1e6

    @property
    def eta(self) -> float:
        return 1 / (self.C * self.d**2) if self.pace == "assumed" else SPEED * self.n / self.d

    @property
    def omega(self) -> float:
        """The largest that line (3) allows."""
        return self.eta / math.sqrt(self.width * self.d)

    @property
    def law(self) -> NoisyMixture:
        return NoisyMixture(n=self.n, d=self.d, mu_norm=self.mu_norm, beta=self.beta, flips="count")

    @property
    def ball(self) -> Ball:
        return Ball(norm="l2", radius=self.alpha)


def regime_run(case: RegimeCase) -> pl.DataFrame:
    """One row per seed: the worst of each measure over t >= 1, the start and the end."""
    start = Start(width=case.width, activation=case.activation, omega=case.omega)
    problem = draw_stack(
        case.law, start, generators(STREAM, f"C = {case.C:g}", seeds=case.seeds), case.tests
    )
    run, standard = _train(case, problem), _standard_training(case, problem)
    errors = measures.errors(run.model, problem.test, case.ball, ATTACK)
    active = torch.minimum(run.log.probe("active of examples"), run.log.probe("active of neurons"))
    losses = run.log.probe("L_rob")
    columns = {
        "good": _good(case, problem),
        **{name: _worst(run.log.probe(name)[1:], how) for name, how in MEASURES.items()},
        "first training error": run.log.probe("training error")[1],
        "active": active[:2].amin(0),
        "activation gain": run.log.probe("activation gain")[0],
        "move": run.log.probe("move")[0],
        "cosine": _cosines(run, standard).amin(0),
        "L_rob": losses[-1],
        "largest loss ratio of steps": (losses[1:] / losses[:-1]).amax(0),
        "noisy training error": run.log.probe("noisy training error")[-1],
        "clean error": errors.clean,
        "robust error": errors.robust,
    }
    fixed = {"eta": case.eta, "omega": case.omega}
    seeds = {"seed": list(case.seeds), "step": [case.steps] * case.replicates}
    found = {name: values.to("cpu").numpy() for name, values in columns.items()}
    return pl.DataFrame({**seeds, **found}).with_columns(
        **{name: pl.lit(value) for name, value in fixed.items()}
    )


def _noted(last: int) -> set[int]:
    exponents = np.arange(0, 8 * math.log10(last) + 1e-9) / 8
    spread = set(np.round(10**exponents).astype(int).tolist())
    return {*range(min(EARLY, last) + 1), *spread, last}


def _train(case: RegimeCase, problem: MixtureProblem) -> Fit:
    mu = case.law.model_copy(update={"d": problem.train.x.shape[-1]}).mu()
    every = measures.probes(
        problem.train, mu, ball=case.ball, attack=ATTACK, eta=case.eta, d=case.d,
        test=problem.test, rng=generators("balls", seeds=case.seeds),
    )  # fmt: skip
    names = (*MEASURES, "active of examples", "active of neurons", "activation gain", "move",
             "L_rob", "noisy training error")  # fmt: skip
    probes: dict[str, ProbeFunction] = {name: every[name] for name in names}
    probes["weight"] = _weight
    objective = TwoLayerAdversarial(loss="logistic", ball=case.ball, attack=ATTACK)
    return fit(
        copy.deepcopy(problem.model), problem.train.x, problem.train.y, steps=case.steps,
        lr=case.eta, objective=objective, hooks=[Probe(probes, at=_noted(case.steps))],
    )  # fmt: skip


def _standard_training(case: RegimeCase, problem: MixtureProblem) -> Fit:
    """Training without an attack from the same start."""
    return fit(
        copy.deepcopy(problem.model), problem.train.x, problem.train.y, steps=case.steps,
        lr=case.eta, loss="logistic", hooks=[Probe({"weight": _weight}, at=_noted(case.steps))],
    )  # fmt: skip


def _weight(model: torch.nn.Module) -> Tensor:
    return model.get_parameter("weight")


def _cosines(run: Fit, standard: Fit) -> Tensor:
    """The cosine with the weights of standard training, at the measured steps t >= 1."""
    net = Networks.of(run.model)
    pairs = zip(run.log.probes["weight"][1:], standard.log.probes["weight"][1:], strict=True)

    def scaled(weight: Tensor) -> Networks:
        # Weights of size 1e-20 have cosines too, which torch takes for 0.
        return Networks(weight / weight.norm(dim=(1, 2), keepdim=True), net.top, net.activation)

    return torch.stack([
        measures.trajectory_cosine(scaled(one), scaled(other)) for one, other in pairs
    ])  # fmt: skip


def _good(case: RegimeCase, problem: MixtureProblem) -> Tensor:
    """Which replicates are good runs (Lemmas B.3, B.4, B.19)."""
    weight = problem.model.get_parameter("weight").detach()
    found = good_run(
        problem.train, weight, d=case.d, kappa=case.law.kappa, delta=case.delta, alpha=case.alpha,
        beta=case.beta, omega=case.omega,
    )  # fmt: skip
    return found.holds


def _worst(values: Tensor, how: Literal["min", "max", "sum"]) -> Tensor:
    return {"min": values.amin, "max": values.amax, "sum": values.sum}[how](0)
