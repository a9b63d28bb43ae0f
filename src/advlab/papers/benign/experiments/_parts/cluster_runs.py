"""Runs of Algorithm 1 on clusters of any law: drawn in d dimensions, trained in their span."""

import math
from typing import Annotated, Literal

import polars as pl
import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from scipy.special import ndtri
from torch import Tensor

from ..... import lab
from .....attacks import PGD
from .....core.randomness import generator, generators
from .....models import Stack, TwoLayer
from .....threats import Ball
from .....training import fit
from ... import measures
from ...data import Clusters, NoisyMixture, Quartic, UnitLaw
from ...data.mixture import Scaled
from ...reductions import Reduced, reduce
from ...theory import averaging_accuracy
from .lemmas_runs import ATTACK, Shape
from .theorem_range import check_range

Law = Literal["gaussian", "quartic", "uniform", "signs", "laplace", "student"]
Route = Literal["base", "n", "d", "mu", "strong"]
"""What is moved from the base; "strong" is a signal so strong that errors vanish."""
LAWS: dict[Law, Scaled | Quartic | UnitLaw] = {
    "gaussian": Scaled(s=1.0),
    "quartic": Quartic(lam=1.0, c=1.0).of_unit_variance(),
    "uniform": UnitLaw(shape="uniform"),
    "signs": UnitLaw(shape="signs"),
    "laplace": UnitLaw(shape="laplace"),
    "student": UnitLaw(shape="student"),
}
"""All of variance 1. Definition 2.1 has the first two, up to units: they are strongly
log-concave."""
ACTIVATIONS: tuple[Shape, ...] = ("smoothed_leaky_relu", "relu")
SPEED = 2.0
"""eta d/n; line (4) of Assumption 1 wants less, 1/(C d n)."""
STREAM = "benign/other_clusters decisive"
PLAIN = PGD(steps=ATTACK.steps, step_size=ATTACK.step_size, random_start=False, jump=False)
ROWS = 50
"""Fresh points drawn at a time."""


class ClusterCase(lab.Case):
    """Stacks of two-layer networks, one of each activation, on clusters of one law."""

    law: Law
    route: Route
    n: PositiveInt
    d: PositiveInt
    mu_norm: PositiveFloat
    alpha: PositiveFloat
    beta: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    width: PositiveInt = 20
    steps: PositiveInt = 60
    tests: PositiveInt = 300

    @model_validator(mode="after")
    def _in_the_theorems_range(self) -> "ClusterCase":
        check_range(self.n, self.d, self.mu_norm, self.alpha, self.width)
        return self

    @property
    def cost(self) -> float:
        dear = {"quartic": 4.0, "student": 4.0, "laplace": 2.0}.get(self.law, 1.0)
        return self.replicates * (self.tests * self.d * (1 + dear) / 1e8 + self.steps / 1000)

    @property
    def eta(self) -> float:
        return SPEED * self.n / self.d

    @property
    def omega(self) -> float:
        """The largest that line (3) allows."""
        return self.eta / math.sqrt(self.width * self.d)

    @property
    def mixture(self) -> NoisyMixture:
        return NoisyMixture(
            n=self.n, d=self.d, mu_norm=self.mu_norm, beta=self.beta, flips="count",
            cluster=LAWS[self.law],
        )  # fmt: skip


def cluster_run(case: ClusterCase) -> pl.DataFrame:
    """One row per seed and activation: errors on clean labels, and how training ended."""
    name = (STREAM, case.law, case.n, case.d, f"{case.mu_norm:.6g}")
    data = case.mixture.sample_stack(generators("data", *name, seeds=case.seeds))
    ball = Ball(norm="l2", radius=case.alpha)
    networks = {
        shape: reduce(_start(case, shape, name), data, PLAIN, ball) for shape in ACTIVATIONS
    }
    # Both start from the same weights, so that one basis serves both.
    test = _fresh(case, networks[ACTIVATIONS[0]], name)
    return pl.concat([_trained(case, shape, data, networks[shape], test) for shape in ACTIVATIONS])


def _start(case: ClusterCase, shape: Shape, name: tuple) -> Stack:
    return Stack.draw(
        lambda rng: TwoLayer.draw(case.d, case.width, shape, rng, omega=case.omega),
        generators("start", *name, seeds=case.seeds),
    )


def _fresh(case: ClusterCase, small: Reduced, name: tuple) -> Clusters:
    """Fresh points without flips, in the coordinates of the span."""
    clean = case.mixture.model_copy(update={"beta": 0.0})
    rngs = [generator("fresh", *name, seed) for seed in case.seeds]
    parts: list[list[Tensor]] = [[], []]
    for first in range(0, case.tests, ROWS):
        some = clean.sample_stack(rngs, min(ROWS, case.tests - first))
        parts[0].append(small.into(some.x))
        parts[1].append(some.y)
    x, y = (torch.cat(part, 1) for part in parts)
    return Clusters(x, y, y, x)


def _trained(
    case: ClusterCase, shape: Shape, data: Clusters, small: Reduced, test: Clusters
) -> pl.DataFrame:
    run = fit(
        small.model, small.x, data.y, steps=case.steps, lr=case.eta, objective=small.objective
    )
    ball = Ball(norm="l2", radius=case.alpha)
    found = measures.errors(run.model, test, ball, ATTACK)
    inside = data._replace(x=small.x, noise=small.x)
    train = measures.errors(run.model, inside, ball, ATTACK)
    columns = {
        "clean_error": found.clean,
        "robust_error": found.robust,
        "train_error": train.robust,
        "L_rob": run.log.losses()[-1],
    }
    values = {name: one.numpy() for name, one in columns.items()}
    fixed = {"activation": shape, "eta": case.eta, "omega": case.omega}
    return pl.DataFrame({"seed": list(case.seeds), **values}).with_columns(
        **{name: pl.lit(value) for name, value in fixed.items()}
    )


def strengths(table: pl.DataFrame) -> pl.DataFrame:
    """With S = sqrt(n/d) ||mu||^2, the q of the averaging classifier, and margins
    m = -Phi^(-1)(error), half an error added."""
    S = (pl.col("n") / pl.col("d")).sqrt() * pl.col("mu_norm") ** 2
    tests = table["tests"].to_numpy()
    margins = {
        f"{kind}_margin": -ndtri((table[f"{kind}_error"].to_numpy() * tests + 0.5) / (tests + 1))
        for kind in ("clean", "robust")
    }
    q = averaging_accuracy(
        *(table[name].to_numpy() for name in ("n", "d", "mu_norm", "alpha", "beta"))
    ).q
    return table.with_columns(
        S=S,
        q=pl.Series(q),
        level=S.round(2),
        **{name: pl.Series(one) for name, one in margins.items()},
    )
