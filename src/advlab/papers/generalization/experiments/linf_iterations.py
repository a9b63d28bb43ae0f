"""L_inf adversarial training needs smaller steps and more iterations than l2 (Section 4).

"It is necessary to require that xi = o(1/d) to avoid overshrinkage of the L_inf attack. However ...
a smaller xi requires smaller learning rate and more training iterations, thus training under L_inf
attack is more difficult." Both attacks have l2 length 0.5 here: eps = 0.5, and 0.5/sqrt(d) in each
coordinate; the L_inf surrogate has xi/d where the l2 one has xi. d = 10, n = 1000, theta0 is five
ones and five zeros: the minimiser under L_inf attacks has zeros, where the risk has its kinks.

A step size is stable if the training loss of 300 iterations from zero ends below its start and goes
one way in the last 50 (Algorithm 1 may climb slowly near its limit, but it does not swing). The
largest stable one is found by bisection; iterations are counted at half of it, to the first
training loss within 0.001 v^2 of that after 1000.
"""

from functools import partial
from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from .... import lab, linear
from ....attacks import Surrogate
from ....core.randomness import generators
from ....models import Linear, Stack
from ....report import Claims, Verdict, charts, empirical
from ....report.samples import groups, slopes
from ....threats import Ball
from ....training import fit
from ..data import LinearModel, SparseVector
from ..reductions import LinearAdversarial
from .linf_attacks import OwnSteps

ABOUT = lab.About(
    paper="generalization",
    item="Section 4",
    title="How many iterations L_inf attacks need, and at which step",
    seconds={"smoke": 2, "laptop": 20, "paper": 170},
    looks=3,
    claims={
        "i1": empirical(
            "the largest stable step under the L_inf attack with xi/d is below half of that under "
            "the l2 attack with xi, at each xi"
        ),
        "i2": empirical(
            "and training, at half of these steps, needs more than three times the iterations"
        ),
        "i3": empirical(
            "a smaller xi needs a smaller step: under L_inf attacks it falls like xi to a power "
            "within 0.3 of 1"
        ),
        "i4": empirical(
            "and more iterations: their number grows under L_inf attacks like 1/xi to a power of "
            "0.5 or more"
        ),
        "i5": empirical(
            "with xi in place of xi/d the L_inf attack shrinks too far: at xi = 0.4 the excess "
            "risk is more than twice as large"
        ),
    },
)
NAME = "generalization/linf_iterations decisive 2"
"""Not the streams of the trials that chose sizes and thresholds."""
D, LENGTH, XIS = 10, 0.5, (0.4, 0.2, 0.1)
SHORT, WINDOW, SWING, NEAR = 300, 50, 1e-6, 1e-3


class Case(lab.Case):
    """xi is that of the l2 attack, whatever the attack's own is."""

    attack: Literal["l2", "linf, xi/d", "linf, xi"]
    xi: PositiveFloat
    n: PositiveInt = 1000
    steps: PositiveInt = 1000
    halvings: PositiveInt = 10

    @property
    def cost(self) -> float:
        return self.replicates * (self.steps + self.halvings * SHORT) / 2e4

    @property
    def law(self) -> LinearModel:
        return LinearModel(n=self.n, d=D, theta0=SparseVector(k=5))

    @property
    def ball(self) -> Ball:
        if self.attack == "l2":
            return Ball(norm="l2", radius=LENGTH)
        return Ball(norm="linf", radius=LENGTH / D**0.5)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    count = seeds or {"smoke": 2, "laptop": 12, "paper": 100}[scale]
    short = {"n": 100, "steps": 200, "halvings": 3} if scale == "smoke" else {}
    settings = [("l2", xi) for xi in XIS] + [("linf, xi/d", xi) for xi in XIS]
    settings.append(("linf, xi", XIS[0]))
    return [
        Case(attack=attack, xi=xi, **short, **block)  # type: ignore[arg-type]
        for attack, xi in settings
        for block in lab.blocks(count, 12)
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate; the same data for every attack."""
    law = case.law
    x, y = law.sample_stack(generators(NAME, "data", seeds=case.seeds))
    low, high = (np.full(case.replicates, bound) for bound in (1e-4, 2.0))
    for _ in range(case.halvings):
        middle = np.sqrt(low * high)
        good = stable(_train(case, x, y, middle, SHORT)[0]).numpy()
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    losses, theta = _train(case, x, y, low / 2, case.steps)
    theta0 = law.theta0_vector()
    risk = linear.adversarial_risk(theta.numpy(), theta0, law.sigma2, case.ball)
    least = linear.optimal(theta0, law.sigma2, case.ball).risk
    return pl.DataFrame(
        {
            "seed": list(case.seeds),
            "eta": low,
            "iterations": iterations(losses, NEAR * law.v2).double().numpy(),
            "excess": (risk - least) / law.v2,
        }
    )


def stable(losses: Tensor) -> Tensor:
    """Whether each replicate's loss ends below its start and goes one way in the last iterations.

    A loss that is not a number is no evidence of stability: the comparisons are then false.

    Args:
        losses: of each iteration and replicate.
    """
    tail = losses[-WINDOW - 1 :]
    swing = tail.diff(dim=0).abs().sum(0) - (tail[-1] - tail[0]).abs()
    return (swing <= SWING * tail[0]) & (tail[-1] < losses[0])


def iterations(losses: Tensor, near: float) -> Tensor:
    """The first iteration of each replicate whose loss is as near as this to the last one.

    Args:
        losses: of each iteration and replicate.
        near: the distance.
    """
    return ((losses - losses[-1]).abs() <= near).to(torch.int8).argmax(0)


def _train(case: Case, x: Tensor, y: Tensor, eta: np.ndarray, steps: int) -> tuple[Tensor, Tensor]:
    """Losses and last weights of Algorithm 1 from zero, each replicate with its own step."""
    xi = case.xi / D if case.attack == "linf, xi/d" else case.xi
    run = fit(
        Stack([Linear.zero(D) for _ in x]), x, y, steps=steps, lr=1.0,
        objective=LinearAdversarial(loss="squared", ball=case.ball, attack=Surrogate(xi=xi)),
        optimizer=partial(OwnSteps, rates=eta.tolist()),
    )  # fmt: skip
    return run.log.losses(), run.model.get_parameter("theta").detach()


def figure(table: pl.DataFrame) -> charts.AnyChart:
    axes = {"x_title": "xi of the l2 attack", "log_x": True, "log_y": True}
    return charts.panels(
        [
            charts.points(table, "xi", "eta", "attack", title="Largest stable step",
                          y_title="step size", **axes),
            charts.points(table, "xi", "iterations", "attack", title="Iterations at half of it",
                          y_title="iterations", **axes),
            charts.points(table, "xi", "excess", "attack", title="What they lead to",
                          y_title="(R − R*) / v²", **axes),
        ]
    )  # fmt: skip


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    linf, plain, wide = (table.filter(attack=name) for name in ("linf, xi/d", "l2", "linf, xi"))
    pairs = linf.join(plain, on=["xi", "seed"], suffix=" other").with_columns(
        step=pl.col("eta") / pl.col("eta other"),
        times=pl.col("iterations") / pl.col("iterations other"),
    )
    shrunk = wide.join(linf, on=["xi", "seed"], suffix=" other").with_columns(
        ratio=pl.col("excess") / pl.col("excess other").mean()
    )
    return [
        claims.below("i1", groups(pairs, "step", "xi"), 0.5, what="step over the l2 attack's"),
        claims.above("i2", groups(pairs, "times", "xi"), 3, what="iterations over the l2 attack's"),
        claims.equal("i3", slopes(linf, "xi", "eta"), 1, 0.3, what="the power of xi in the step"),
        claims.below("i4", slopes(linf, "xi", "iterations"), -0.5,
                     what="the power of xi in the iterations"),
        claims.above("i5", groups(shrunk, "ratio", "xi"), 2,
                     what="excess risk with xi over the mean with xi/d"),
    ]  # fmt: skip
