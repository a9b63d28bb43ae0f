"""Training against FGM, and the objective of Theorems F.1 and F.4 along it."""

from math import log

import polars as pl
import torch
from torch import nn

from .....models import Stack
from .....report import Claim, Claims, Verdict, ours, sample, theorem
from .....training import Probe
from ... import measures
from .conditions import THEOREMS
from .lemma_orders import exponents
from .lemma_sides import objective
from .presets import PAPER_FGM, SparseProblem

PROBES = 60
"""How often the objective is measured in training against FGM."""
LOG2 = log(2)
"""What a network that says nothing pays."""


def against_fgm(problem: SparseProblem, nets: Stack, clean: measures.Nets) -> pl.DataFrame:
    """Algorithm 2 with FGM, and the objective of Theorem F.1 along it.

    Args:
        problem: the data.
        nets: the networks after clean training; they are trained.
        clean: the same, as they were.
    """
    steps = problem.preset.adversarial.steps
    # The mean is over t = T_f to T_f + T - 1: the last network is not one of them.
    due = {round(part * steps / PROBES) for part in range(PROBES)}

    def paid(model: nn.Module) -> torch.Tensor:
        return objective(problem, measures.Nets.of(model), attacked=True)

    run = problem.train_adversarial(nets, Probe({"objective": paid}, at=due), attack=PAPER_FGM)
    first = pl.DataFrame({
        "seed": list(problem.seeds),
        "clean objective": objective(problem, clean, attacked=False).double().numpy(),
        "clean objective, attacked": objective(problem, clean, attacked=True).double().numpy(),
    })  # fmt: skip
    rows = run.log.table(problem.seeds).filter(pl.col("step").is_in(due)).drop("loss")
    return rows.with_columns(share=pl.col("step") / steps).join(first, on="seed")


def objective_claims(label: str) -> dict[str, Claim]:
    """Of Theorem F.1 (l2) or F.4 (linf), by its label, and of the two questions about it."""
    return {
        label: theorem("Along training against FGM the objective is on average at most that of the "
                       "clean network, + o(1)", THEOREMS),
        f"{label}/falls": ours("Over the d of the run that mean less the clean objective falls: "
                               "exponent below 0"),
        f"{label}/chance": ours("At each d the mean is below log 2, what a network pays that says "
                                "nothing, and less than half of what the clean network pays at FGM "
                                "points"),
    }  # fmt: skip


def objective_verdicts(claims: Claims, label: str, rows: pl.DataFrame) -> list[Verdict]:
    """The mean objective along training against FGM, and the clean one.

    Args:
        claims: those of `objective_claims`.
        label: F.1 or F.4.
        rows: those of `against_fgm`, with their d.
    """
    mean = rows.group_by("d", "seed").agg(pl.col("objective").mean(),
                                          pl.col("^clean objective.*$").first())  # fmt: skip
    mean = mean.with_columns(excess=pl.col("objective") - pl.col("clean objective"))
    mean = mean.with_columns(half=pl.col("clean objective, attacked") / 2 - pl.col("objective"),
                             chance=LOG2 - pl.col("objective")).sort("d", "seed")  # fmt: skip
    parts = {f"{words}, {d}": values
             for words, name in (("log 2 less the mean", "chance"),
                                 ("half of the clean network's less the mean", "half"))
             for d, values in by_d(mean, name).items()}  # fmt: skip
    return [
        claims.trend(label, by_d(mean, "excess"), what="mean objective less the clean one"),
        claims.below(f"{label}/falls", exponents(mean, "excess"), 0,
                     what="exponent in d of the mean less the clean one"),
        claims.above(f"{label}/chance", parts, 0, what="what is left to the bound"),
    ]  # fmt: skip


def by_d(rows: pl.DataFrame, column: str) -> dict[str, pl.Series]:
    """One sample per d, one value per seed."""
    return {
        f"d = {d}": sample(rows.filter(d=d), column)  # type: ignore[dict-item]
        for d in sorted(rows["d"].unique().to_list())
    }
