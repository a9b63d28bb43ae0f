r"""Adversarial training of a linear model jitters for ever; the surrogate attack makes it smooth.

The worst-case loss has a kink at theta = 0, and for a strong attack (eps = 3, above eps_0 = 1.195)
the minimiser is exactly there (Proposition 1). Gradient descent on it never settles; with the
surrogate attack, xi = 0.05, the loss falls smoothly (Figure 1). The paper gives neither step size
nor start. Both runs use eta = 5e-4, which is stable for xi = 0.05
($\eta < \xi_{\mathrm{eff}}/(\epsilon v^2)$), from |theta| = 0.25; a larger step makes both jitter.

Theorem 2 says more: the population's surrogate risk R_{L,xi} falls at every iteration. It is judged
at the theorem's own schedule (n = 10^6, xi = v^2 (d/sqrt n) log n, T = v^2 (log log n)/xi), with L
such that eta is half of the largest stable step. What the proof shows to fall is the potential R~,
and that up to a slack of the order of xi^2 (eq. 10). Claim 7c asks the same of runs as they are
made in practice, n = 1000 and a small xi, which the theorem does not cover.
"""

from typing import Literal

import altair as alt
import numpy as np
import polars as pl
import torch

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, charts, empirical, ours, theorem
from ....threats import Ball
from .. import theory
from ..data import LinearModel
from ._parts import assumptions as conditions
from ._parts.linear_runs import draw, risks, train

ABOUT = lab.About(
    paper="generalization",
    item="Figure 1",
    title="The surrogate attack makes adversarial training smooth",
    seconds={"smoke": 2, "laptop": 20, "paper": 90},
    looks=2,
    claims={
        "3a": empirical(
            "without surrogate (xi = 0) the training loss comes down and goes on fluctuating: in "
            "every run it rises by more than 1e-4 of itself at least 10 times in the last 50 "
            "iterations"
        ),
        "3b": empirical(
            "with xi = 0.05 the training loss rises by no more than 1e-6 of itself in any "
            "iteration of any run"
        ),
        "7a": theorem(
            "at the schedule of Theorem 2 the potential R~ of the population rises by no more than "
            "a thousandth of itself in any iteration (its proof leaves a slack of order xi^2)",
            "low dimension", "step size", "start",
        ),
        "7b": theorem(
            "at the schedule of Theorem 2 the surrogate risk R_{L,xi} of the population falls at "
            "each iteration (rises below 1e-9 of it are rounding)",
            "low dimension", "step size", "start",
        ),
        "7c": ours(
            "at n = 1000 and xi = 0.1 or 0.05 the surrogate risk of the population falls at each "
            "of 1000 iterations (rises below 1e-9 of it are rounding)"
        ),
    },
)  # fmt: skip
NAME = "generalization/fig1"
START = 0.25
RISE, TOLERANCE, SLACK, ROUNDING = 1e-4, 1e-6, 1e-3, 1e-9
"""Jitter counts above 1e-4; its absence is judged at 1e-6, far above rounding (1e-16) and far below
the rises of xi = 0. (xi/v^2)^2 is 0.02 at the schedule, so 7a asks for much less than eq. 10 does.
A run at rest moves by rounding alone."""


class Case(lab.Case):
    eps: float = 3.0
    xi: float
    lr: float = 5e-4
    steps: int = 100
    n: int = 1000
    purpose: Literal["figure", "descent", "theorem"] = "figure"

    @property
    def data(self) -> LinearModel:
        return LinearModel(n=self.n, d=10)

    @property
    def cost(self) -> float:
        return self.replicates * self.n * (self.steps + 100) / 1e6


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    steps = 60 if smoke else 100
    blocks = lab.blocks(seeds or (3 if smoke else 100), 25)
    figure = [Case(xi=xi, steps=steps, **block) for xi in (0.0, 0.05) for block in blocks]
    descent = [
        Case(purpose="descent", eps=eps, xi=xi, lr=_step(eps, xi), steps=10 * steps, **block)
        for eps, xi in ((0.5, 0.1), (3.0, 0.05))
        for block in blocks
    ]
    return figure + descent + _theorem_cases(smoke, seeds)


def _theorem_cases(smoke: bool, seeds: int | None) -> list[Case]:
    """Theorem 2's xi and T; d^2 log^2 n / n is small only for many samples."""
    n = 10_000 if smoke else 1_000_000
    law = LinearModel(n=n, d=10)
    schedule = theory.theorem2_schedule(n, law.d, law.v2)
    return [
        Case(purpose="theorem", n=n, eps=eps, xi=schedule.xi, lr=_step(eps, schedule.xi),
             steps=schedule.steps, **block)
        for eps in (0.5, 3.0)
        for block in lab.blocks(seeds or (3 if smoke else 20), 1)
    ]  # fmt: skip


def _step(eps: float, xi: float) -> float:
    """Half of the largest step that is stable at theta = 0."""
    return _stable(eps, xi) / 2


def _stable(eps: float, xi: float) -> float:
    law = LinearModel(n=1, d=10)
    return float(theory.stable_eta(law.theta0_vector(), law.sigma2, eps, xi))


def compute(case: Case) -> pl.DataFrame:
    data = case.data
    x, y = draw(data, NAME, case.seeds)
    ball = Ball(norm="l2", radius=case.eps)
    direction = torch.stack(
        [
            torch.randn(data.d, generator=g, dtype=x.dtype)
            for g in generators(NAME, "start", seeds=case.seeds)
        ]
    )
    start = START * direction / direction.norm(dim=1, keepdim=True)
    path = train(x, y, ball=ball, xi=case.xi, lr=case.lr, steps=case.steps, start=start)
    law = (path.theta.numpy(), data.theta0_vector(), data.sigma2, case.eps, case.xi)
    return path.table(
        case.seeds,
        potential=theory.potential(*law),
        surrogate=theory.surrogate_risk(*law),
        **risks(path, data),
    )


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    """One run, as in the paper, and its end magnified: solid test loss, dashed training loss."""
    one = table.filter(pl.col("seed") == pl.col("seed").min(), purpose="figure")
    lines = one.unpivot(["train", "test"], index=["step", "xi"], variable_name="loss")
    last = lines.filter(pl.col("step") >= 0.6 * pl.col("step").max())
    return charts.panels(
        [_lines(lines, "as in the paper"), _lines(last, "the last iterations, magnified")]
    )


def _lines(rows: pl.DataFrame, title: str) -> alt.Chart:
    chart = alt.Chart(rows, width=380, height=280, title=title).mark_line(strokeWidth=1.6)
    return chart.encode(
        x=alt.X("step:Q", title="iteration", scale=alt.Scale(zero=False, nice=False)),
        y=alt.Y("value:Q", title="adversarial loss", scale=alt.Scale(zero=False)),
        color=alt.Color("xi:N", title="xi"),
        strokeDash=alt.StrokeDash("loss:N", title=None, sort=["test", "train"]),
        tooltip=["step", "xi", "loss", alt.Tooltip("value:Q", format=".4f")],
    )


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    runs = table.filter(purpose="theorem").unique(["n", "eps", "xi", "lr"], maintain_order=True)
    law = LinearModel(n=int(runs["n"].to_numpy().min()), d=10)
    shares = [row["lr"] / _stable(row["eps"], row["xi"]) for row in runs.iter_rows(named=True)]
    return [
        conditions.low_dimension(law.n, law.d),
        conditions.smooth_step(shares),
        conditions.start(START, law.v2),
        conditions.gaussian(),
    ]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    plain, smooth = (table.filter(purpose="figure", xi=xi) for xi in (0.0, 0.05))
    scheduled, practical = (table.filter(purpose=name) for name in ("theorem", "descent"))
    claims = Claims(ABOUT.claims)
    return [
        claims.every(
            "3a",
            _jitters(plain),
            what="loss below half of its first excess over its least value, then 10 or more rises "
            "above 1e-4 of it in the last 50 iterations, xi = 0,",
        ),
        claims.every(
            "3b",
            _falls(_by_seed(smooth, "train")) & (_rises(smooth, "train") <= TOLERANCE),
            what="loss ends below its start and no rise is above 1e-6 of it, xi = 0.05,",
        ),
        claims.every(
            "7a",
            {
                name: _falls(_by_seed(runs, "potential")) & (_rises(runs, "potential") <= SLACK)
                for name, runs in _settings(scheduled).items()
            },
            what="R~ ends below its start and no rise is above 1e-3 of it",
        ),
        *(
            claims.every(
                label,
                {
                    name: _falls(_by_seed(rows, "surrogate"))
                    & (_rises(rows, "surrogate") <= ROUNDING)
                    for name, rows in _settings(runs).items()
                },
                what="R_{L,xi} ends below its start and no rise is above 1e-9 of it",
            )
            for label, runs in (("7b", scheduled), ("7c", practical))
        ),
    ]


def _jitters(runs: pl.DataFrame) -> np.ndarray:
    """Whether a seed's loss has come down and still rises, again and again, at the end."""
    losses = _by_seed(runs, "train")
    last, least = losses[:, -51:], losses.min(axis=1)
    down = (last.max(axis=1) - least) < (losses[:, 0] - least) / 2
    rises = (np.diff(last, axis=1) > RISE * last[:, :-1]).sum(axis=1)
    return down & (rises >= 10)


def _falls(values: np.ndarray) -> np.ndarray:
    return values[:, -1] < values[:, 0]


def _rises(runs: pl.DataFrame, column: str) -> np.ndarray:
    """Of each seed, the largest relative rise in one iteration; below 0 where all steps fall."""
    values = _by_seed(runs, column)
    return (np.diff(values, axis=1) / values[:, :-1]).max(axis=1)


def _settings(runs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    parts = runs.partition_by("eps", "xi", as_dict=True, maintain_order=True)
    return {f"eps = {eps:g}, xi = {xi:.3g}": part for (eps, xi), part in parts.items()}


def _by_seed(runs: pl.DataFrame, column: str) -> np.ndarray:
    wide = runs.sort("seed", "step").group_by("seed", maintain_order=True).agg(column)
    return np.stack(wide[column].to_list())
