"""Runs of Algorithm 1 whose n, d, ||mu|| and alpha are swept, with errors however small they are.

The law of the reduced problem makes every d as cheap as any other, and importance sampling measures
errors of 1e-250 as well as those of 0.1.
"""

import math
from typing import Annotated, Literal

import polars as pl
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from scipy.special import log_ndtr

from ..... import lab
from .....core.randomness import generators
from .....threats import Ball
from .....training import fit
from ... import measures
from ...data import NoisyMixture
from ...reductions import TwoLayerAdversarial
from ...reductions.mixture_law import Start, draw_stack
from .lemmas_runs import ATTACK, Shape
from .theorem_range import check_range

Route = Literal["base", "n", "d", "mu", "alpha", "grid", "ratio", "inside"]
"""What is swept: one of them from the base, S and alpha, n ||mu||^2/d, or nothing, inside
Assumption 1."""
SPEED = 2.0
"""eta d/n; line (4) of Assumption 1 wants less, 1/(C d n)."""
STREAM = "benign/scaling_law, new draws"


class ScalingCase(lab.Case):
    """A stack of two-layer networks in the setting of the theorems."""

    route: Route
    activation: Shape
    n: PositiveInt
    d: PositiveInt
    mu_norm: PositiveFloat
    alpha: PositiveFloat
    beta: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    width: PositiveInt = 20
    steps: PositiveInt = 60
    draws: PositiveInt = 1000

    @model_validator(mode="after")
    def _in_the_theorems_range(self) -> "ScalingCase":
        check_range(self.n, self.d, self.mu_norm, self.alpha, self.width)
        return self

    @property
    def cost(self) -> float:
        return self.replicates * (self.steps * self.n + 4000) * self.width / 1e5

    @property
    def eta(self) -> float:
        return SPEED * self.n / self.d

    @property
    def omega(self) -> float:
        """The largest that line (3) allows."""
        return self.eta / math.sqrt(self.width * self.d)


def scaling_run(case: ScalingCase) -> pl.DataFrame:
    """One row per seed: errors on clean labels, clean and robust, after training."""
    law = NoisyMixture(n=case.n, d=case.d, mu_norm=case.mu_norm, beta=case.beta, flips="count")
    start = Start(width=case.width, activation=case.activation, omega=case.omega)
    name = (STREAM, case.n, case.d, f"{case.mu_norm:.6g}")
    problem = draw_stack(law, start, generators(*name, seeds=case.seeds), tested=1)
    ball = Ball(norm="l2", radius=case.alpha)
    run = fit(
        problem.model, problem.train.x, problem.train.y, steps=case.steps, lr=case.eta,
        objective=TwoLayerAdversarial(loss="logistic", ball=ball, attack=ATTACK),
    )  # fmt: skip
    rngs = generators("fresh", *name, seeds=case.seeds)
    clean, robust = (
        measures.rare_errors(run.model, case.mu_norm, around, ATTACK, rngs, case.draws)
        for around in (Ball(norm="l2", radius=0.0), ball)
    )
    columns = {
        "log_clean": clean.log_error,
        "log_robust": robust.log_error,
        "clean_margin": clean.margin,
        "robust_margin": robust.margin,
        "clean_draws": clean.effective,
        "robust_draws": robust.effective,
        "L_rob": run.log.losses()[-1],
    }
    found = {name: values.numpy() for name, values in columns.items()}
    fixed = {"eta": pl.lit(case.eta), "omega": pl.lit(case.omega)}
    return pl.DataFrame({"seed": list(case.seeds), **found}).with_columns(**fixed)


def strengths(table: pl.DataFrame) -> pl.DataFrame:
    """With S and its rounded level, n ||mu||^2/d, and the exponent E of each run.

    log LBD of the tight form of Theorem 3.2 without flips is `log_best`; E compares the excess
    robust error with the printed form, LBD - beta = (1 - 2 beta)/2 Phi(-(||mu|| - alpha)).
    """
    gap = (table["mu_norm"] - table["alpha"]).to_numpy()
    flips = (1 - 2 * table["beta"]).log()
    best = pl.Series(log_ndtr(-gap))
    S = (pl.col("n") / pl.col("d")).sqrt() * pl.col("mu_norm") ** 2
    ratio = pl.col("n") * pl.col("mu_norm") ** 2 / pl.col("d")
    level = pl.when(pl.col("route") == "ratio").then(ratio).otherwise(S)
    exponent = (table["log_robust"] + flips) / (best + flips - math.log(2))
    return table.with_columns(
        S=S, ratio=ratio, level=level.round(3), log_best=best, exponent=exponent
    )
