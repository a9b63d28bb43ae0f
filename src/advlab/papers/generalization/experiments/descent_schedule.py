"""Theorem 2's own schedule, trained: descent, its limit, inequality (10) and Lemma 2.

xi = v^2 (d/sqrt n) log n, T = v^2 (log log n)/xi, and eta half of the largest stable step (the
theorem's large L), with d = 2, so that log n sqrt(d^2/n) is small at sizes that can be run. Two
attacks: eps = 0.3, where theta* is not zero, and eps = 1.5, where it is; a start of length v/2.
Measured in closed form, in the population: R_{L,xi}, which the theorem says falls at each
iteration; the potential R~, for which its proof has inequality (10); the distance from theta*. On
samples: Lemma 2's deviation of gradients, as the largest over a net in the ball (a lower bound of
its supremum). The controls leave the schedule: three times the largest stable step, and xi = 0.

Inequality (10) is judged with constants of each run: L = xi/(2 eta), B_2 the largest gradient,
delta the largest deviation on the path, and 1/B_3 the largest of
||grad R_xi - grad R~|| / (xi ||grad R~||). The proof takes B_3 to be one constant. Where the
algorithm rests grad R_xi = 0, so 1/B_3 is 1/xi there: no B_3 serves all xi (claim d7).
"""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from .... import lab, linear
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, charts, ours, theorem
from ....report.samples import groups, slopes
from ....threats import Ball
from .. import theory
from ..data import LinearModel
from ..measures.gradient_deviation import largest_deviation, sample_gradients
from ._parts import assumptions as conditions
from ._parts.linear_runs import train

ABOUT = lab.About(
    paper="generalization",
    item="Theorem 2, Lemma 2",
    title="Theorem 2's schedule: descent, limit, and uniform convergence of gradients",
    seconds={"smoke": 2, "laptop": 60, "paper": 600},
    claims={
        "d1": theorem(
            "at the theorem's schedule |theta(T) - theta*|/v falls as n grows, at each eps",
            "low dimension", "step size", "start",
        ),
        "d2": theorem(
            "at the theorem's schedule R_{L,xi} of the population falls at each iteration, at the "
            "largest n (rises below 1e-9 of it are rounding)",
            "low dimension", "step size", "start",
        ),
        "d3": ours(
            "off the schedule, eps = 1.5, it rises in every run, by more than 1e-3 v^2 in an "
            "iteration and ten times as much as ever on the schedule: with three times the largest "
            "stable step, and with xi = 0",
        ),
        "d4": theorem(
            "inequality (10) holds at each iteration of every run, with the run's own constants",
            "low dimension", "step size", "start",
        ),
        "d5": theorem(
            "Lemma 2: the largest deviation of gradients over the ball falls like n to a power "
            "within 0.1 of -1/2 (up to log n), at each eps",
        ),
        "d6": theorem(
            "and so fast that delta v/xi, which the proof of Theorem 2 needs to vanish, falls as n "
            "grows",
        ),
        "d7": ours(
            "no B_3 of the proof serves all xi: where the algorithm rests, the least 1/B_3 is "
            "1/xi up to 1 %",
        ),
    },
)  # fmt: skip
NAME = "generalization/descent_schedule decisive"
"""Not the streams of the trials that chose sizes."""
START, ROUNDING, STRONG = 0.5, 1e-9, 1.5
Schedule = Literal["theorem", "large step", "xi = 0"]


class Case(lab.Case):
    schedule: Schedule = "theorem"
    n: PositiveInt
    eps: PositiveFloat
    xi: NonNegativeFloat
    lr: PositiveFloat
    steps: PositiveInt

    @property
    def cost(self) -> float:
        return self.replicates * self.n * (3 * self.steps + 100) / 2e8

    @property
    def law(self) -> LinearModel:
        return _law(self.n)


def _law(n: int) -> LinearModel:
    return LinearModel(n=n, d=2, theta0="unit")


def _stable(eps: float, xi: float) -> float:
    law = _law(1)
    return float(theory.stable_eta(law.theta0_vector(), law.sigma2, eps, xi))


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    sizes = (1000, 4000) if smoke else (3000, 30_000, 300_000)
    blocks = lab.blocks(seeds or {"smoke": 3, "laptop": 20, "paper": 100}[scale], 5)
    settings = []
    for n in sizes:
        plan = theory.theorem2_schedule(n, 2, _law(n).v2)
        runs = [("theorem", eps, plan.xi, 0.5) for eps in (0.3, STRONG)]
        if n == sizes[1]:
            runs += [("large step", STRONG, plan.xi, 3.0), ("xi = 0", STRONG, 0.0, 0.5)]
        settings += [
            {"schedule": name, "n": n, "eps": eps, "xi": xi, "steps": plan.steps,
             "lr": share * _stable(eps, plan.xi)}
            for name, eps, xi, share in runs
        ]  # fmt: skip
    return [Case(**one, **block) for one in settings for block in blocks]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate and iteration; Lemma 2's deviation once per replicate."""
    law = case.law
    theta0, v = law.theta0_vector(), float(np.sqrt(law.v2))
    x, y = law.sample_stack(generators(NAME, case.n, seeds=case.seeds))
    start = torch.stack(
        [torch.randn(2, generator=g, dtype=x.dtype)
         for g in generators(NAME, "start", seeds=case.seeds)]
    )  # fmt: skip
    start = START * v * start / start.norm(dim=1, keepdim=True)
    ball = Ball("l2", case.eps)
    path = train(x, y, ball=ball, xi=case.xi, lr=case.lr, steps=case.steps, start=start)
    theta = path.theta.numpy()
    best = linear.optimal(theta0, law.sigma2, ball)
    at = (theta0, law.sigma2, case.eps, case.xi)
    table = path.table(
        case.seeds,
        surrogate=theory.surrogate_risk(theta, *at),
        potential=theory.potential(theta, *at),
        distance=np.linalg.norm(theta - best.theta, axis=2) / v,
    ).with_columns(least=best.risk, v=v)
    if case.schedule != "theorem":
        return table
    pairs = list(zip(x.numpy(), y.numpy(), strict=True))
    sample = np.stack(
        [sample_gradients(theta[:, r], *one, case.eps, case.xi) for r, one in enumerate(pairs)], 1
    )
    length = lambda vectors: np.linalg.norm(vectors, axis=2)  # noqa: E731
    smooth, frozen = theory.potential_gradient(theta, *at), theory.frozen_gradient(theta, *at)
    columns = {
        "gradient": length(smooth),
        "frozen": length(frozen),
        "gap": length(theory.gradient_gap(theta, *at)),
        "deviation": length(sample - frozen),
    }
    lemma2 = [largest_deviation(*one, theta0, law.sigma2, case.eps, case.xi, v) for one in pairs]
    rest = theory.algorithm_limit(*at).theta
    gap, whole = theory.gradient_gap(rest, *at), theory.potential_gradient(rest, *at)
    return table.with_columns(rest=float(np.linalg.norm(gap) / np.linalg.norm(whole))).with_columns(
        pl.Series("lemma2", np.tile(lemma2, case.steps + 1)),
        *(pl.Series(name, values.ravel()) for name, values in columns.items()),
    )


def figure(table: pl.DataFrame) -> charts.AnyChart:
    scheduled = table.filter(schedule="theorem")
    largest = scheduled.filter(n=scheduled["n"].max())
    strong = pl.concat([scheduled.filter(n=scheduled["n"].unique().sort()[1], eps=STRONG),
                        table.filter(pl.col("schedule") != "theorem")], how="diagonal")  # fmt: skip
    strong = strong.with_columns(excess=pl.col("surrogate") / pl.col("v") ** 2)
    once = scheduled.filter(step=0)
    bound = pl.DataFrame(
        {"n": (sizes := scheduled["n"].unique().sort().to_list()),
         "lemma2": [float(once["v"][0] * np.sqrt(4 * np.log(n) / n)) for n in sizes]}
    )  # fmt: skip
    axes: dict[str, Any] = {"x_title": "iteration", "y_title": "R_{L,ξ} / v²"}
    return charts.panels(
        [
            charts.curves(largest.with_columns(risk=pl.col("surrogate") / pl.col("v") ** 2), "step",
                          "risk", "eps", title="Theorem 2's schedule", **axes),
            charts.curves(strong, "step", "excess", "schedule", title="Off the schedule, ε = 1.5",
                          band="quartiles", **axes),
            charts.points(scheduled.filter(pl.col("step") == pl.col("steps")), "n", "distance",
                          "eps", log_x=True, log_y=True, title="Distance to θ*",
                          x_title="samples n", y_title="‖θ(T) − θ*‖ / v"),
            charts.points(once, "n", "lemma2", "eps", theory=bound, log_x=True, log_y=True,
                          title="Lemma 2; dashed: v √(d² log n / n)", x_title="samples n",
                          y_title="largest deviation of gradients"),
        ],
        columns=2,
    )  # fmt: skip


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """At the largest n, where d2 is judged; step and start at every n."""
    runs = table.filter(schedule="theorem").unique(["n", "eps", "xi", "lr"], maintain_order=True)
    shares = [row["lr"] / _stable(row["eps"], row["xi"]) for row in runs.iter_rows(named=True)]
    law = _law(int(runs["n"].to_numpy().max()))
    return [
        conditions.low_dimension(law.n, law.d),
        conditions.smooth_step(shares),
        conditions.start(START * float(np.sqrt(law.v2)), law.v2),
        conditions.gaussian(),
    ]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    scheduled = table.filter(schedule="theorem")
    largest = scheduled.filter(n=scheduled["n"].max())
    ends = scheduled.filter(pl.col("step") == pl.col("steps"))
    ends = ends.with_columns(run=pl.concat_str("eps", pl.lit("/"), "seed"))
    once = scheduled.filter(step=0).with_columns(
        needed=pl.col("lemma2") * pl.col("v") / pl.col("xi"),
        run=pl.concat_str("eps", pl.lit("/"), "seed"),
    )
    by_eps = largest.partition_by("eps", maintain_order=True)
    claims = Claims(ABOUT.claims)
    return [
        claims.decreasing("d1", ends, "n", "distance", replicate="run",
                          what="|theta(T) - theta*|/v"),
        claims.every("d2", _together(_rise(rows) <= ROUNDING for rows in by_eps),
                     what="R_{L,xi} falls at each iteration, for both eps,"),
        claims.every("d3", _together(_jumps(table, name) for name in ("large step", "xi = 0")),
                     what="R_{L,xi} rises off the schedule, far more than on it,"),
        claims.every("d4", _together(_inequality(rows) for rows in
                                     scheduled.partition_by("n", "eps", maintain_order=True)),
                     what="inequality (10) holds at each iteration, for each n and eps,"),
        claims.equal("d5", {f"eps = {eps}": slopes(once.filter(eps=eps), "n", "lemma2")
                            for eps in once["eps"].unique().sort()}, -0.5, 0.1,
                     what="the power of n in the largest deviation"),
        claims.decreasing("d6", once, "n", "needed", replicate="run", what="delta v/xi"),
        claims.equal("d7", groups(once, "rest", "n", "eps"), 1.0, 0.01,
                     what="xi / B_3 at the rest point"),
    ]  # fmt: skip


def _together(flags: Iterable[np.ndarray]) -> np.ndarray:
    """One flag per seed: whether it holds in all settings."""
    return np.logical_and.reduce(list(flags))


def _rise(rows: pl.DataFrame) -> np.ndarray:
    """Of each seed, the largest rise of R_{L,xi} in an iteration, over R_{L,xi} itself."""
    risks = _by_seed(rows, "surrogate")
    return (np.diff(risks, axis=1) / risks[:, :-1]).max(axis=1)


def _jumps(table: pl.DataFrame, name: str) -> np.ndarray:
    """Of each seed, whether a control rises, and ten times as much as the schedule's own run."""
    off = table.filter(schedule=name)
    on = table.filter(schedule="theorem", n=off["n"][0], eps=off["eps"][0])
    rise, usual = (np.diff(_by_seed(rows, "surrogate"), axis=1).max(axis=1) for rows in (off, on))
    return (rise > 1e-3 * off["v"][0] ** 2) & (rise > 10 * usual)


def _inequality(rows: pl.DataFrame) -> np.ndarray:
    """(10), of each seed: R~(t+1) <= R~(t) - (xi/4L) |grad R~|^2 + xi^2 B_2^2/(L B_3) +
    xi delta B_2/(2L), with eta = xi/(2L)."""
    names = ("potential", "gradient", "frozen", "gap", "deviation")
    potential, gradient, frozen, gap, deviation = (_by_seed(rows, name) for name in names)
    eta = float(rows["lr"][0])
    largest = np.maximum(gradient, frozen).max(axis=1, keepdims=True)
    share = (gap / gradient).max(axis=1, keepdims=True)  # xi / B_3
    slack = 2 * eta * share * largest**2 + eta * deviation.max(axis=1, keepdims=True) * largest
    fall = eta / 2 * gradient[:, :-1] ** 2
    return (potential[:, 1:] <= potential[:, :-1] - fall + slack + 1e-12).all(axis=1)


def _by_seed(rows: pl.DataFrame, column: str) -> np.ndarray:
    wide = rows.sort("seed", "step").group_by("seed", maintain_order=True).agg(column)
    return np.stack(wide[column].to_list())
