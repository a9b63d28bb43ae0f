"""Adversarial training of a linear model jitters for ever; the surrogate attack makes it smooth.

The worst-case loss has a kink at theta = 0, and for a strong attack (eps = 3, above eps_0 = 1.195)
the minimiser is exactly there (Proposition 1). Gradient descent on it never settles; with the
surrogate attack, xi = 0.05, the loss falls smoothly (Figure 1). Theorem 2 says more: the surrogate
loss falls at every iteration. What its proof shows to fall is the potential R~.

The paper gives neither step size nor start. Both runs use eta = 5e-4, which is stable for xi = 0.05
(eta < xi_eff/(eps v^2)), from |theta| = 0.25; a larger step makes both jitter. The runs that test
Theorem 2 use eta = xi_eff/(2 eps v^2).
"""

from typing import Literal

import altair as alt
import numpy as np
import polars as pl
import torch

from .... import lab
from ....core.randomness import generators
from ....report import Claims, Verdict
from ....threats import Ball
from .. import theory
from ..data import LinearModel
from ._parts.linear_runs import draw, risks, train

ABOUT = lab.About(
    paper="generalization",
    item="Figure 1",
    title="The surrogate attack makes adversarial training smooth",
    seconds={"smoke": 2, "laptop": 10, "paper": 10},
    looks=1,
    claims={
        "3a": "without surrogate (xi = 0) the training loss goes on fluctuating",
        "3b": "with xi = 0.05 it never rises",
        "7a": "the potential R~ falls at each iteration of the surrogate algorithm",
        "7b": "the surrogate loss falls at each iteration, up to a small drift",
    },
)
DATA = LinearModel(n=1000, d=10)
NAME = "generalization/fig1"


class Case(lab.Case):
    eps: float = 3.0
    xi: float
    lr: float = 5e-4
    steps: int = 100
    purpose: Literal["figure", "descent"] = "figure"

    @property
    def cost(self) -> float:
        return self.steps


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
    return figure + descent


def _step(eps: float, xi: float) -> float:
    return float(theory.xi_eff(xi)) / (2 * eps * DATA.v2)


def compute(case: Case) -> pl.DataFrame:
    x, y = draw(DATA, NAME, case.seeds)
    ball = Ball(norm="l2", radius=case.eps)
    direction = torch.stack(
        [
            torch.randn(DATA.d, generator=g, dtype=x.dtype)
            for g in generators(NAME, "start", seeds=case.seeds)
        ]
    )
    start = 0.25 * direction / direction.norm(dim=1, keepdim=True)
    path = train(x, y, ball=ball, xi=case.xi, lr=case.lr, steps=case.steps, start=start)
    return path.table(case.seeds, potential=path.potential(case.xi), **risks(path, DATA))


def figure(table: pl.DataFrame) -> alt.Chart:
    """One run, as in the paper: solid test loss, dashed training loss."""
    one = table.filter(pl.col("seed") == pl.col("seed").min(), purpose="figure")
    lines = one.unpivot(["train", "test"], index=["step", "xi"], variable_name="loss")
    chart = alt.Chart(lines, width=520, height=300).mark_line()
    return chart.encode(
        x=alt.X("step:Q", title="iteration"),
        y=alt.Y("value:Q", title="adversarial loss", scale=alt.Scale(zero=False)),
        color=alt.Color("xi:N", title="xi"),
        strokeDash=alt.StrokeDash("loss:N", title=None, sort=["test", "train"]),
        tooltip=["step", "xi", "loss", alt.Tooltip("value:Q", format=".4f")],
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    figure_runs = table.filter(purpose="figure")
    rises = {xi: _trailing_rises(figure_runs.filter(xi=xi)) for xi in (0.0, 0.05)}
    potential, surrogate = (
        _drift(table.filter(purpose="descent"), column) for column in ("potential", "train")
    )
    claims = Claims(ABOUT.claims)
    return [
        claims.every(
            "3a",
            rises[0.0] >= 10,
            what="10 or more rises of the training loss in the last 50 iterations, xi = 0,",
        ),
        claims.every(
            "3b",
            rises[0.05] == 0,
            what="no rise of the training loss in the last 50 iterations, xi = 0.05,",
        ),
        claims.every(
            "7a",
            {name: (step <= 1e-6) & (total <= 1e-4) for name, (step, total) in potential.items()},
            what="rises of R~ are at most 1e-6 of it in a step, 1e-4 after its minimum:",
        ),
        claims.every(
            "7b",
            {name: total <= 1e-3 for name, (_, total) in surrogate.items()},
            what="rise of the surrogate loss after its minimum is at most 1e-3 of it:",
        ),
    ]


def _trailing_rises(runs: pl.DataFrame) -> np.ndarray:
    """How often each seed's training loss rises in the last 50 iterations."""
    losses = _by_seed(runs, "train")
    return (np.diff(losses[:, -51:], axis=1) > 0).sum(axis=1)


def _drift(runs: pl.DataFrame, column: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The largest relative rise in one step, and the rise from the minimum to the end."""
    found = {}
    for (eps, xi), part in runs.group_by("eps", "xi", maintain_order=True):
        values = _by_seed(part, column)
        step = (np.diff(values, axis=1) / values[:, :-1]).max(axis=1)
        total = values[:, -1] / values.min(axis=1) - 1
        found[f"eps = {eps}, xi = {xi}"] = (step, total)
    return found


def _by_seed(runs: pl.DataFrame, column: str) -> np.ndarray:
    wide = runs.sort("seed", "step").group_by("seed", maintain_order=True).agg(column)
    return np.stack(wide[column].to_list())
