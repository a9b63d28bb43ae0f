"""High dimension (n = 20, d = 1000 or 5000): what Figures 3, 9, 10 and 11 share.

Adversarial gradient descent follows standard gradient descent to the min-norm interpolator: the
training loss goes to zero, the test risk to v^2, that of the zero model (Lemma 1, Theorem 5).
Training never leaves the span of the inputs, so it runs in n + 1 coordinates
(`reductions.Subspace`).
"""

from functools import partial
from typing import Literal

import altair as alt
import numpy as np
import polars as pl
import torch

from ..... import lab, linear
from .....report import Assumption, Claims, Verdict, charts, sample
from .....report.samples import changes
from .....threats import Ball
from ... import theory
from ...data import LinearModel, SparseVector
from ...reductions import Subspace
from . import assumptions as conditions
from .linear_runs import Trajectory, draw, gradients, train

EPS = (0.0, 0.01, 0.1)
STEP = {1000: 1e-3, 5000: 2e-4}
N = 20
V2 = 11.0
"""Ten ones in theta0, and unit noise."""


class Case(lab.Case):
    """`training` runs Algorithm 1; `interpolator` draws data and fits them, without training."""

    d: int
    xi: float = 0.5
    eps: float = 0.0
    n: int = N
    steps: int = 100
    lr: float
    part: Literal["training", "interpolator"] = "training"

    @property
    def data(self) -> LinearModel:
        return LinearModel(n=self.n, d=self.d, theta0=SparseVector(k=10))

    @property
    def cost(self) -> float:
        return self.d * self.replicates * (1.0 if self.part == "training" else 0.05)


def cases(
    scale: str, seeds: int | None, settings: list[tuple[int, float]], slower: float = 1.0
) -> list[Case]:
    """Every strength for each (d, xi); the paper's 100 replicates are cheap enough for a laptop.

    `slower` divides the figure's step size, and multiplies the number of steps.
    """
    seeds = seeds or (4 if scale == "smoke" else 100)
    steps = round((30 if scale == "smoke" else 100) * slower)
    return [
        Case(d=d, xi=xi, eps=eps, steps=steps, lr=STEP[d] / slower, **block)
        for d, xi in settings
        for eps in EPS
        for block in lab.blocks(seeds, 25)
    ]


def compute(case: Case) -> pl.DataFrame:
    data = case.data
    # The same data for Figures 3, 9, 10 and 11 at one dimension, so that they can be compared.
    name = {"training": "interpolation", "interpolator": "interpolator"}[case.part]
    x, y = draw(data, f"generalization/{name}", case.seeds)
    theta0 = torch.from_numpy(data.theta0_vector())
    span = Subspace.of(x, theta0)
    small, truth = span.into(x), span.into(theta0.expand(len(x), -1))
    if case.part == "interpolator":
        return _interpolators(case, small, y, truth)
    ball = Ball(norm="l2", radius=case.eps)
    path = train(small, y, ball=ball, xi=case.xi, lr=case.lr, steps=case.steps)
    regimes = [theory.interpolation_regime(one.numpy(), case.lr) for one in x]
    literal = np.broadcast_to([one.literal_step for one in regimes], path.loss.shape)
    return path.table(
        case.seeds,
        train_exact=path.exact_loss(),
        test=_risk(path.theta, truth, data, ball),
        residual=path.residuals().norm(dim=2) / np.sqrt(data.v2 * data.n),
        literal_step=literal,
        **_gap(path, case.xi),
    )


def _interpolators(
    case: Case, x: torch.Tensor, y: torch.Tensor, truth: torch.Tensor
) -> pl.DataFrame:
    """|theta(y)|^2 and the standard risk of theta(y), one row per draw (Lemma 1)."""
    fitted = _min_norm(x, y)
    risk = _risk(fitted[None], truth, case.data, Ball(norm="l2", radius=0.0))[0]
    return pl.DataFrame(
        {"seed": list(case.seeds), "norm2": (fitted**2).sum(1).numpy(), "risk": risk.numpy()}
    )


def _min_norm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """theta(y) = X'(XX')^{-1} y of each replicate (Lemma 1).

    Not torch.linalg.lstsq: on wide matrices its answer varies from call to call.
    """
    return (x.mT @ torch.linalg.solve(x @ x.mT, y[:, :, None]))[:, :, 0]


def _risk(theta: torch.Tensor, truth: torch.Tensor, data: LinearModel, ball: Ball) -> torch.Tensor:
    """Eq. 5 in the coordinates of the span, where each replicate has its own theta0."""
    s = ((theta - truth).square().sum(2) + data.sigma2).sqrt()
    a = ball.radius * theta.norm(dim=2)
    return s**2 + a**2 + 2 * linear.C0 * a * s


def _gap(path: Trajectory, xi: float) -> dict[str, torch.Tensor]:
    """How far adversarial training steps away from standard training (eq. 13)."""
    adversarial, standard = gradients(path, xi)
    gap = (adversarial - standard).norm(dim=2)
    return {"gap": gap, "relative_gap": gap / standard.norm(dim=2)}


def panels(table: pl.DataFrame) -> alt.ConcatChart:
    """Training loss, test loss with its limits, gradient difference: one line per strength."""
    data = LinearModel(n=N, d=int(table["d"][0]), theta0=SparseVector(k=10))
    limit = linear.minnorm_expectations(N, data.theta0_vector(), data.sigma2)
    levels = pl.DataFrame({"eps": EPS, "test": limit.adversarial_risk(np.array(EPS))})
    curve = partial(charts.curves, x="step", color="eps", x_title="iteration")
    attacked = table.filter(pl.col("eps") > 0)
    test, gap = "test loss; dashed: interpolator", "gradient difference to standard"
    return charts.panels(
        [
            curve(
                table,
                y="train",
                y_title="loss",
                title="adversarial training loss",
                log_y=True,
                apart=True,
            ),
            curve(table, y="test", y_title="loss", title=test, theory=levels),
            curve(attacked, y="gap", y_title="norm", title=gap, log_y=True),
        ]
    )


def at_the_end(table: pl.DataFrame) -> pl.DataFrame:
    last = table.filter(pl.col("step") == pl.col("step").max())
    return last.with_columns(
        train_share=pl.col("train_exact") / V2, test_off=(pl.col("test") / V2 - 1).abs()
    )


def stopping(table: pl.DataFrame) -> pl.DataFrame:
    """Per run: T of Theorem 5, whether residuals fell up to it and stay there, the largest gap."""
    level = theory.stopping_level(N)
    run = ["d", "xi", "eps", "seed"]
    stop = (
        table.filter(pl.col("residual") < level)
        .group_by(run)
        .agg(pl.col("step").min().alias("stop"))
    )
    joined = table.sort("step").join(stop, on=run, how="left")
    after = joined.filter(pl.col("step") >= pl.col("stop"))
    stays = after.group_by(run).agg(stays=(pl.col("residual") < level).all())
    before = joined.filter(pl.col("step") <= pl.col("stop").fill_null(1_000_000))
    return (
        before.group_by(run, maintain_order=True)
        .agg(
            pl.col("stop").first(),
            (pl.col("residual").diff().drop_nulls() < 0).all().alias("falls"),
            pl.col("relative_gap").max().alias("largest_gap"),
        )
        .join(stays, on=run, how="left")
        .with_columns(pl.col("stays").fill_null(value=False))
        .sort(run)
    )


def moving(table: pl.DataFrame) -> pl.DataFrame:
    """The attacked runs of `stopping` without those that stop at their start, T = 0.

    There the answers are small by chance, theta is 0 and no gradient differs from another.
    """
    runs = stopping(table.filter(pl.col("eps") > 0))
    return runs.filter(pl.col("stop").is_null() | (pl.col("stop") > 0))


def interpolation_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    """10a and 10b for one (d, xi): nothing is left to fit, and nothing was learned."""
    last = at_the_end(table)
    train, test = (sample(last, value, by="eps") for value in ("train_share", "test_off"))
    return [
        claims.below("10a", train, 0.01, what="exact adversarial training loss / v^2"),
        claims.below("10b", test, 0.05, what="|adversarial test risk / v^2 - 1|"),
    ]


def stopping_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    """13a and 13b (Theorem 5)."""
    runs = stopping(table)
    groups = {f"eps = {eps}": part for (eps,), part in runs.group_by("eps", maintain_order=True)}
    return [
        claims.every(
            "13a",
            {name: part["stays"] for name, part in groups.items()},
            what="T within the run, and the residual below its level from then on",
        ),
        claims.every(
            "13b",
            {name: part["falls"] & part["stop"].is_not_null() for name, part in groups.items()},
            what="T within the run and strictly falling residual up to it",
        ),
    ]


def dimension_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    """10c and 10d: what becomes of the training loss and of the test risk when d grows."""
    last = at_the_end(table)
    return [
        claims.below(label, changes(last, "d", column, "eps"), 0.0, what=f"change of {words}")
        for label, column, words in (
            ("10c", "train_share", "exact adversarial training loss / v^2"),
            ("10d", "test_off", "|adversarial test risk / v^2 - 1|"),
        )
    ]


def regime(table: pl.DataFrame) -> list[Assumption]:
    """What the runs reach of Theorem 5's conditions."""
    return [
        conditions.high_dimension(N, int(table["d"].to_numpy().min())),
        conditions.interpolation_step(table["literal_step"].drop_nulls()),
        conditions.gaussian(),
    ]


def smaller_gap(
    claims: Claims, label: str, table: pl.DataFrame, column: str, small: float, large: float
) -> Verdict:
    """That the gradient gap up to T is smaller at `small` than at `large` of a column."""
    runs = moving(table)
    one, other = (runs.filter(pl.col(column) == value) for value in (small, large))
    keys = [name for name in ("d", "xi", "eps", "seed") if name != column]
    both = one.join(other, on=keys, suffix="_other").with_columns(
        ratio=pl.col("largest_gap") / pl.col("largest_gap_other")
    )
    return claims.below(
        label,
        sample(both, "ratio", by="eps"),
        1.0,
        what=f"relative gradient gap up to T at {column} = {small:g}, over that at {large:g},",
    )
