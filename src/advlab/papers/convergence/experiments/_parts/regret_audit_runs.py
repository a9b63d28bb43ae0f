"""Runs that are audited against a comparator found beforehand.

The comparator W* is where a longer training against PGD ends, from the same start and, in deep
networks, in the same balls. The inequalities hold for every comparator; this one has a small
worst-case loss and lies near.
"""

import math
from typing import ClassVar

import numpy as np
import polars as pl
import torch
from pydantic import NonNegativeInt, PositiveFloat
from torch import nn

from .....core.errors import AdvlabError
from .....core.randomness import generators
from .....losses import LIPSCHITZ
from .....measure.audit import Audit, Report
from .....models import SHAPES, Stack
from .....training import Adversarial, AttackedObjective, LayerBalls
from ...models import DeepReLU
from ...theory.descent import Descent, two_layer_bound
from . import two_layer_runs
from .two_layer_runs import loss_under, train

NAME = "convergence/a6"


class Case(two_layer_runs.Case):
    """A two-layer run, or with `depth` the deep network of Theorem 4.1 and its balls B(R)."""

    dtype: ClassVar[torch.dtype] = torch.float64
    depth: NonNegativeInt = 0
    R: PositiveFloat | None = None
    """Of the balls of a deep network; None is no projection."""

    @property
    def cost(self) -> float:
        deep = 0.01 * self.depth * self.steps * self.replicates * (1 + (self.width / 300) ** 2)
        return deep if self.depth else 4 * super().cost

    @property
    def lr(self) -> float:
        """alpha: the rate itself for two layers, over m H for deep networks."""
        return self.rate / (self.width * self.depth) if self.depth else self.rate

    @property
    def objective(self) -> type[AttackedObjective]:
        return Adversarial if self.depth else super().objective

    @property
    def projection(self) -> LayerBalls | None:
        return None if self.R is None else LayerBalls(radius=self.R, width=self.width)

    def networks(self, name: str, dtype: torch.dtype | None = None) -> Stack:
        if self.depth == 0:
            return super().networks(name, dtype)
        rngs = generators(name, "deep", self.width, self.depth, seeds=self.seeds)
        return Stack.draw(lambda rng: DeepReLU.draw(self.d, self.width, self.depth, rng), rngs)

    @property
    def longer(self) -> "Case":
        """The run that finds the comparator: twice as long, or if slow ten times as fast."""
        slow = not self.depth and self.rate < 0.5
        change = {"rate": 10 * self.rate} if slow else {"steps": 2 * self.steps}
        return self.model_copy(update={"attack": "pgd", **change})


def audited(case: Case) -> pl.DataFrame:
    """One row per shown number of steps and seed: all that the audit says of the steps so far."""
    goal = train(case.longer, NAME).model
    audit = Audit(goal, projection=case.projection)
    train(case, NAME, audit)
    report = audit.report()
    table = _so_far(case, report)
    return table if case.depth else _with_theorem(case, table, report, goal)


def _so_far(case: Case, report: Report) -> pl.DataFrame:
    """`step` counts the steps so far; `best` is their smallest loss, `residual` the largest gap
    between the two sides of the identity, `violations` those of the whole run."""
    terms = report.terms
    broken = np.bincount([one.replicate for one in report.violations], minlength=case.replicates)
    extra = {
        "best": terms.loss.cummin(0).values,
        "residual": terms.residual.abs().cummax(0).values,
        "start": terms.distance[:1].sqrt().expand_as(terms.loss),
    }
    table = report.table().with_columns(
        step=pl.col("step") + 1,
        seed=pl.col("replicate") + case.seed,
        violations=pl.col("replicate").replace_strict(dict(enumerate(broken.tolist()))),
        **{name: pl.Series(value.flatten().numpy()) for name, value in extra.items()},
    )
    kept = ["step", "seed", "loss", "mean_loss", "bound", "violations", *extra]
    parts = [name for name in table.columns if name.endswith("_part")]
    return table.filter(pl.col("step").is_in(shown(case.steps))).select(*kept, *parts)


def _with_theorem(case: Case, table: pl.DataFrame, report: Report, goal: nn.Module) -> pl.DataFrame:
    """With Theorem 5.1's explicit bound (`theorem`) for these steps, its W*'s worst-case loss, and
    the smallest slack so far of the step inequality it rests on (`slack`)."""
    run = descent(case.width, case.lr)
    terms = report.terms
    slack = (1 + run.growth) * terms.distance + 2 * case.lr * (terms.comparator - terms.loss)
    slack = (slack + 2 * case.lr * run.jitter - terms.after).cummin(0).values
    worst = dict(zip(case.seeds, loss_under(goal, case.oracle, case, NAME).tolist(), strict=True))
    rows = [
        {
            **row,
            "worst": worst[row["seed"]],
            "theorem": two_layer_bound(run, row["step"], row["start"], worst[row["seed"]]),
            "slack": float(slack[row["step"] - 1, row["seed"] - case.seed]),
        }
        for row in table.iter_rows(named=True)
    ]
    return pl.DataFrame(rows)


def descent(width: int, rate: float) -> Descent:
    """The constants of Theorem 5.1 for the networks and the loss of this paper's experiments."""
    shape = SHAPES[two_layer_runs.ACTIVATION]()
    if shape.bound is None or shape.lipschitz is None:
        raise AdvlabError("an activation with a bounded slope", two_layer_runs.ACTIVATION)
    return Descent(width, rate, shape.bound, shape.lipschitz, LIPSCHITZ["pseudo_huber"])


def shown(steps: int) -> list[int]:
    """Numbers of steps, evenly on a log axis, up to all."""
    return sorted({round(math.exp(k / 24 * math.log(steps))) for k in range(25)})
