"""Runs in the setting of the theorems: Algorithm 1 from a symmetric start, measured by its lemmas.

Everything is drawn and trained in the few coordinates that training can reach, which changes no
number (`reductions.mixture_law`, `reductions.two_layer_training`). One seed has the same data and
start in all runs of one dimension, up to the size of the start.
"""

import copy
import math
from collections.abc import Iterable
from typing import Annotated, Literal

import numpy as np
import polars as pl
import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor, nn

from ..... import lab
from .....attacks import PGD, Attacked
from .....attacks.base import Loss
from .....core.randomness import Rng, generators
from .....losses import ModelLoss
from .....threats import Ball, Threat
from .....training import Fit, Probe, ProbeFunction, fit
from ... import measures
from ...data import NoisyMixture
from ...measures import Networks
from ...reductions import TwoLayerAdversarial, attacked
from ...reductions.mixture_law import MixtureProblem, Start, draw_stack
from ...theory import averaging_accuracy, certificate
from .theorem_range import check_range

Shape = Literal["smoothed_leaky_relu", "leaky_relu", "relu"]
SHAPES: tuple[Shape, ...] = ("smoothed_leaky_relu", "leaky_relu", "relu")
SPEED = 0.8
"""eta = 0.8 n/d: 0.0053 at d = 3000, 0.002 at d = 8000. Assumption 1 wants 1/(C d^2), far less."""
STREAM = "benign/lemmas decisive"
"""Not the stream of the trials that chose rules and replicates."""
FRESH = ("normalised margin", "aligned", "secant error", "fresh slack", "decomposition")
"""Measures on many fresh points, too dear for every step."""
WORST: dict[str, Literal["min", "max", "sum"]] = {
    "loss ratio": "max",
    "training error": "max",
    "noisy training error": "max",
    "sandwich": "min",
    "alignment": "min",
    "gradient": "max",
    "span distance": "max",
    "attack cosine": "min",
    "clean signal low": "min",
    "clean signal high": "max",
    "noisy signal low": "min",
    "noisy signal high": "max",
    "lost pairs": "sum",
    "scaled step low": "min",
    "scaled step high": "max",
    "relative step": "min",
    "growth": "max",
    "averaged": "max",
}
"""What a row says of these: the worst since the row before. Others are as they are at its step."""


class LemmasCase(lab.Case):
    """A stack of two-layer networks in the setting of the theorems."""

    kind: Literal["main", "radius", "dimension", "start", "beyond"] = "main"
    activation: Shape = "smoothed_leaky_relu"
    n: PositiveInt = 20
    d: PositiveInt = 3000
    mu_norm: PositiveFloat = 10.0
    beta: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    width: PositiveInt = 50
    alpha: PositiveFloat = 1.0
    ratio: PositiveFloat = 1.0
    """omega sqrt(m d)/eta, at most 1 by Assumption 1."""
    steps: PositiveInt = 300
    tests: PositiveInt = 2000

    @model_validator(mode="after")
    def _in_the_theorems_range(self) -> "LemmasCase":
        check_range(self.n, self.d, self.mu_norm, self.alpha, self.width)
        return self

    @property
    def cost(self) -> float:
        return self.replicates * (self.steps * (3 if self.kind == "main" else 1) + 300)

    @property
    def eta(self) -> float:
        return SPEED * self.n / self.d

    @property
    def law(self) -> NoisyMixture:
        return NoisyMixture(n=self.n, d=self.d, mu_norm=self.mu_norm, beta=self.beta, flips="count")

    @property
    def start(self) -> Start:
        omega = self.ratio * self.eta / math.sqrt(self.width * self.d)
        return Start(width=self.width, activation=self.activation, omega=omega)

    @property
    def ball(self) -> Ball:
        return Ball(norm="l2", radius=self.alpha)


class SpanPGD(PGD):
    """The paper's PGD from the clean inputs, by `reductions.attacked`: no autograd."""

    step_size: PositiveFloat = 0.2
    random_start: bool = False
    jump: bool = False

    def __call__(self, loss: Loss, x: Tensor, ball: Threat, *, rng: Rng) -> Attacked:
        if not isinstance(loss, ModelLoss):
            return super().__call__(loss, x, ball, rng=rng)
        return attacked(loss.model, x, loss.y, ball, self, loss.loss)


ATTACK = SpanPGD()


def measured_run(case: LemmasCase) -> pl.DataFrame:
    """One row per kept step and seed: all measures; at the last step also the errors.

    The main runs are measured at every step, the others at the kept ones.
    """
    problem = draw_stack(case.law, case.start, generators(STREAM, seeds=case.seeds), case.tests)
    seldom, kept = _steps(case.steps, 8), _steps(case.steps, 24 if case.kind == "main" else 8)
    noted = range(case.steps + 1) if case.kind == "main" else kept
    standard = _standard_training(case, problem, seldom) if case.kind == "radius" else None
    run = _train(case, problem, noted, seldom)
    table = run.log.table(case.seeds).drop("loss")
    table = table.with_columns(**_sums(case, run), **_parts(case, run))
    if standard is not None:
        table = table.with_columns(cosine=_cosines(run, standard))
    return _rows(table, kept).join(_ends(case, problem, run), on=["step", "seed"], how="left")


def _steps(last: int, per_decade: int) -> list[int]:
    """0, the first few, and some of every decade; those of 8 per decade are among those of 24."""
    exponents = np.arange(0, per_decade * math.log10(last) + 1e-9) / per_decade
    spread = np.round(10**exponents).astype(int).tolist()
    return sorted({0, 1, 2, 3, 100, last, *spread} & set(range(last + 1)))


def _train(
    case: LemmasCase, problem: MixtureProblem, noted: Iterable[int], seldom: list[int]
) -> Fit:
    mu = case.law.model_copy(update={"d": problem.train.x.shape[-1]}).mu()
    probes = measures.probes(
        problem.train, mu, ball=case.ball, attack=ATTACK, eta=case.eta, d=case.d,
        kappa=case.law.kappa, test=problem.test, rng=generators("balls", seeds=case.seeds),
    )  # fmt: skip
    dear = {name: probes.pop(name) for name in FRESH}
    if case.kind == "radius":
        dear["weight"] = _weight
    steps = sorted(set(noted))
    probes |= {name: _only_at(probe, steps, seldom) for name, probe in dear.items()}
    return fit(
        copy.deepcopy(problem.model), problem.train.x, problem.train.y, steps=case.steps,
        lr=case.eta, objective=TwoLayerAdversarial(loss="logistic", ball=case.ball, attack=ATTACK),
        hooks=[Probe(probes, at=set(steps))],
    )  # fmt: skip


def _only_at(probe: ProbeFunction, noted: list[int], wanted: list[int]) -> ProbeFunction:
    """The probe at some of the noted steps, in their order; not a number at the others."""
    steps, blank = iter(noted), []

    def some(model: nn.Module) -> Tensor:
        if next(steps) not in wanted:
            return blank[0]
        found = torch.as_tensor(probe(model))
        blank[:] = [torch.full_like(found, torch.nan)]
        return found

    return some


def _weight(model: nn.Module) -> Tensor:
    return model.get_parameter("weight")


def _standard_training(
    case: LemmasCase, problem: MixtureProblem, at: list[int]
) -> dict[int, Tensor]:
    """The weights of standard training from the same start, at some steps."""
    run = fit(
        copy.deepcopy(problem.model), problem.train.x, problem.train.y, steps=case.steps,
        lr=case.eta, loss="logistic", hooks=[Probe({"weight": _weight}, at=set(at))],
    )  # fmt: skip
    return dict(zip(run.log.probe_steps, run.log.probes["weight"], strict=True))


def _cosines(run: Fit, standard: dict[int, Tensor]) -> np.ndarray:
    """The cosine with the weights of standard training, at its steps."""
    net = Networks.of(run.model)
    nowhere = torch.full((len(net.weight),), torch.nan, dtype=net.weight.dtype)

    def cosine(step: int, weight: Tensor) -> Tensor:
        if step not in standard:
            return nowhere
        pair = (Networks(w, net.top, net.activation) for w in (weight, standard[step]))
        return measures.trajectory_cosine(*pair)

    steps = zip(run.log.probe_steps, run.log.probes["weight"], strict=True)
    return torch.stack([cosine(*one) for one in steps]).flatten().numpy()


def _sums(case: LemmasCase, run: Fit) -> dict[str, pl.Series]:
    """The growth of Lemma B.12 and L_rob over its averaged bound, which need every step."""
    if case.kind != "main":
        return {}
    G, norms, L = (run.log.probe(name) for name in ("G_rob", "norm", "L_rob"))
    growth = measures.norm_growth(norms, G, case.eta, case.d, case.n)
    found = {"growth": growth, "averaged": L / measures.averaged_bound(G)}
    return {name: pl.Series(values.flatten().numpy()) for name, values in found.items()}


def _parts(case: LemmasCase, run: Fit) -> dict[str, pl.Series]:
    """The four parts of Lemma B.30 over eta ||mu||^2 G_rob/sqrt(m), numbers of order one."""
    unit = case.eta * case.mu_norm**2 / math.sqrt(case.width)
    parts = run.log.probe("decomposition") / (unit * run.log.probe("G_rob"))[..., None]
    return {f"B{k + 1}": pl.Series(parts[..., k].flatten().numpy()) for k in range(4)}


def _rows(table: pl.DataFrame, kept: list[int]) -> pl.DataFrame:
    """The kept steps, each with the worst of the steps since the one before."""
    place = np.searchsorted(kept, table["step"].to_numpy())
    grouped = table.with_columns(step=np.asarray(kept)[place]).group_by(
        "step", "seed", maintain_order=True
    )
    return grouped.agg(
        getattr(pl.col(name), WORST[name])() if name in WORST else pl.col(name).last()
        for name in table.columns
        if name not in ("step", "seed")
    ).with_columns(pl.col(pl.Float64).fill_nan(None))


def _ends(case: LemmasCase, problem: MixtureProblem, run: Fit) -> pl.DataFrame:
    """Test errors, the certificate of Lemma B.2 and its condition, and q, at the last step."""
    net = Networks.of(run.model)
    found = measures.errors(run.model, problem.test, case.ball, ATTACK)
    margins, norm = measures.class_margins(net, problem.test), measures.spectral_norm(net)
    bound = certificate(margins.numpy(), norm.numpy(), case.alpha, case.beta, lam=case.law.lam)
    q = averaging_accuracy(case.n, case.d, case.mu_norm, case.alpha, case.beta).q
    return pl.DataFrame(
        {
            "step": [case.steps] * case.replicates,
            "seed": list(case.seeds),
            "clean error": found.clean.numpy(),
            "robust error": found.robust.numpy(),
            "certificate": bound,
            "certified": (margins.amin(1) >= case.alpha * norm).numpy(),
            "q": [float(q)] * case.replicates,
        },
        schema_overrides={"step": pl.Int64, "seed": pl.Int64},
    )
