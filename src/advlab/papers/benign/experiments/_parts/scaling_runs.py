"""Runs of Algorithm 1 whose n, d, ||mu|| and alpha are swept, with errors however small they are.

The law of the reduced problem makes every d as cheap as any other, and importance sampling measures
errors of e^(-10,000) as well as those of 0.1.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from scipy.special import log_ndtr
from torch import Tensor, nn

from ..... import lab
from .....attacks import Attack, Attacked, Identity
from .....attacks.base import Loss
from .....core.errors import AdvlabError
from .....core.randomness import Rng, generators
from .....losses import ModelLoss
from .....threats import Ball, Threat
from .....training import fit
from ... import measures
from ...data import Clusters, NoisyMixture
from ...reductions import TwoLayerAdversarial
from ...reductions.mixture_law import Start, draw_stack
from ...theory import averaging_accuracy
from .lemmas_runs import ATTACK, Shape
from .theorem_range import check_range

Route = Literal[
    "base", "n", "d", "mu", "alpha", "grid", "ratio", "order",
    "inside", "inside_n", "inside_d", "inside_mu", "inside_alpha",
]  # fmt: skip
"""What is swept: one of them from the base; S and alpha; n ||mu||^2/d, or that inside Assumption 1
with alpha in proportion to S; and one of them from a base inside Assumption 1."""
INSIDE = ("order", "inside", "inside_n", "inside_d", "inside_mu", "inside_alpha")
"""The routes of which every run is inside Assumption 1, C >= 10."""
SPEED = 2.0
"""eta d/n; line (4) of Assumption 1 wants less, 1/(C d n)."""
STREAM = "benign/scaling_law, inside and without flips"
FEWEST = 10.0
"""Effective draws of an error that decides. With ten its standard error is a third of it, 0.1 of a
margin of 3 and less of a larger one."""
PLAIN = 5
"""How many times the draws under attack are drawn without one, where a draw is 20 times as
cheap."""


class LipschitzBound(Identity):
    """No attack, but what none can exceed: the loss at x and the radius times ||W||_2.

    phi is 1-Lipschitz and ||a||/sqrt(m) = 1, so that |f(x) - f(x~)| <= ||W||_2 alpha (Lemma B.2).
    """

    def __call__(self, loss: Loss, x: Tensor, ball: Threat, *, rng: Rng) -> Attacked:
        if not isinstance(loss, ModelLoss) or not isinstance(loss.model, nn.Module):
            raise AdvlabError("the margin of a network", type(loss).__name__)
        slope = measures.spectral_norm(measures.Networks.of(loss.model))
        return Attacked(
            x, loss(x) + float(ball.radius) * slope.repeat_interleave(len(x) // len(slope))
        )


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
    """Fresh points per class under attack."""
    batches: PositiveInt = 1
    """How often they are drawn: with kinks few points carry the weight of a rare error."""
    plain_batches: PositiveInt = 1
    """How often points without an attack are."""

    @model_validator(mode="after")
    def _in_the_theorems_range(self) -> "ScalingCase":
        check_range(self.n, self.d, self.mu_norm, self.alpha, self.width)
        return self

    @property
    def cost(self) -> float:
        points = self.draws * (4 * self.batches + self.plain_batches) * self.n / 80
        return self.replicates * (self.steps * self.n + points) * self.width / 1e5

    @property
    def eta(self) -> float:
        return SPEED * self.n / self.d

    @property
    def omega(self) -> float:
        """The largest that line (3) allows."""
        return self.eta / math.sqrt(self.width * self.d)


def scaling_run(case: ScalingCase) -> pl.DataFrame:
    """One row per seed: errors on clean labels, clean and robust, after training.

    `log_robust` is of the points that PGD finds, a lower bound; `log_certified`, inside Assumption
    1, of those that Lemma B.2 cannot exclude, an upper bound. `fitted` is the share of flipped
    examples with y f > 0.
    """
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

    def rare(radius: float, attack: Attack, draws: int) -> measures.RareErrors:
        around = Ball(norm="l2", radius=radius)
        return measures.rare_errors(run.model, case.mu_norm, around, attack, rngs, draws)

    plain = PLAIN * case.draws
    clean = together([rare(0.0, ATTACK, plain) for _ in range(case.plain_batches)])
    robust = together([rare(case.alpha, ATTACK, case.draws) for _ in range(case.batches)])
    nothing = torch.full_like(clean.log_error, math.nan)
    certified = measures.RareErrors(nothing, nothing)
    if case.route in INSIDE:
        certified = rare(case.alpha, LipschitzBound(), plain)
    columns = {
        "log_clean": clean.log_error,
        "log_robust": robust.log_error,
        "log_certified": certified.log_error,
        "clean_margin": clean.margin,
        "robust_margin": robust.margin,
        "clean_draws": clean.effective,
        "robust_draws": robust.effective,
        "certified_draws": certified.effective,
        "fitted": _fitted(run.model, problem.train),
        "L_rob": run.log.losses()[-1],
    }
    found = {name: values.numpy() for name, values in columns.items()}
    fixed = {"eta": pl.lit(case.eta), "omega": pl.lit(case.omega)}
    return pl.DataFrame({"seed": list(case.seeds), **found}).with_columns(**fixed)


def together(found: Sequence[measures.RareErrors]) -> measures.RareErrors:
    """Equal batches as one: the mean of their errors, with (sum w)^2/sum w^2 over all of them."""
    logs = torch.stack([one.log_error for one in found])
    squares = 2 * logs - torch.stack([one.effective for one in found]).log()
    effective = (2 * logs.logsumexp(0) - squares.logsumexp(0)).exp()
    return measures.RareErrors(logs.logsumexp(0) - math.log(len(found)), effective)


def _fitted(model: nn.Module, train: Clusters) -> Float[Tensor, " R"]:
    """Of the flipped examples the share with y f > 0; not a number without any."""
    right = train.y * measures.Networks.of(model).value(train.x) > 0
    flipped = train.y != train.y_clean
    return (right & flipped).sum(1) / flipped.sum(1)


def strengths(table: pl.DataFrame) -> pl.DataFrame:
    """With S and its rounded level, n ||mu||^2/d, and the exponent E of each run.

    log LBD of the tight form of Theorem 3.2 without flips is `log_best`; E compares the excess
    robust error (1 - 2 beta) p with the printed form, LBD - beta = (1 - 2 beta)/2
    Phi(-(||mu|| - alpha)). Flipped points that an attack wins over can add beta p to that excess,
    a factor of 9/8 at beta = 0.1 in errors of 1e-5 and less. `averaging` is the E of the averaging
    classifier, `bound` that of Theorem 3.1 (3) with c = 1/2 and the C of the network's own clean
    margins.
    """
    n, d, mu, alpha, beta, clean = (
        table[name].to_numpy().astype(float)
        for name in ("n", "d", "mu_norm", "alpha", "beta", "clean_margin")
    )
    flips = np.log1p(-2 * beta)
    best = log_ndtr(alpha - mu)
    below = best + flips - math.log(2)
    q = averaging_accuracy(n, d, mu, 0.0, beta).q
    columns = {
        "S": np.sqrt(n / d) * mu**2,
        "ratio": n * mu**2 / d,
        "log_best": best,
        "exponent": (table["log_robust"].to_numpy() + flips) / below,
        "averaging": (log_ndtr(alpha - q) + flips) / below,
        "bound": (math.log(2) - np.maximum(clean - alpha, 0) ** 2 / 2) / below,
    }
    swept = pl.col("route").is_in(["ratio", "order"])
    level = pl.when(swept).then(pl.col("ratio")).otherwise(pl.col("S"))
    return table.with_columns(
        **{name: pl.Series(one) for name, one in columns.items()}
    ).with_columns(level=level.round(3))


def trusted(runs: pl.DataFrame) -> pl.DataFrame:
    """Without the errors and margins that rest on fewer than `FEWEST` effective draws.

    They are missing then, and a claim about them is undecided.
    """
    judged = {
        "clean_draws": ("log_clean", "clean_margin", "bound"),
        "robust_draws": ("log_robust", "robust_margin", "exponent"),
        "certified_draws": ("log_certified",),
    }
    return runs.with_columns(
        pl.when(pl.col(draws) >= FEWEST).then(name).alias(name)
        for draws, names in judged.items()
        for name in names
    )
