"""Theorem 2's own schedule, trained: descent, its limit, inequality (10) and Lemma 2.

xi = v^2 (d/sqrt n) log n, T = v^2 (log log n)/xi, and eta half of the largest stable step (the
theorem's large L), with d = 2, so that log n sqrt(d^2/n) is small at sizes that can be run. Two
attacks: eps = 0.3, where theta* is not zero, and eps = 1.5, where it is; a start of length v/2.
Measured in closed form, in the population: R_{L,xi}, which the theorem says falls at each
iteration; the potential R~, for which its proof has inequality (10); the distance from theta*. On
samples: Lemma 2's deviation of gradients, as the largest over a net in the ball (a lower bound of
its supremum), here and, without training, from d = 2 to 32. The controls leave the schedule: three
times the largest stable step, and xi = 0.

Inequality (10) with eta = xi/(2L) is

    R~(t+1) <= R~(t) - (eta/2) |grad R~|^2 + 2 eta gap B_2 + eta delta B_2,

where gap = |grad R_xi - grad R~| of the iteration, B_2 is the run's largest gradient and delta the
largest deviation on its path. The paper has (xi/B_3) B_2 for the gap, with 1/B_3 a bound on
gap/(xi |grad R~|). Where the algorithm rests grad R_xi = 0, so 1/B_3 is 1/xi there: no B_3 serves
all xi (claim d7), and with that of a whole run the slack is larger than every fall. With the gap
itself it is below the fall while the gradient is large; from there on (10) allows rises.
"""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from .... import lab, linear
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, charts, ours, theorem
from ....report.samples import groups, slopes
from ....threats import Ball
from .. import theory
from ..data import LinearModel
from ..measures.gradient_deviation import largest_deviation, sample_gradients
from ._parts import assumptions as conditions
from ._parts.inequality_10 import by_seed, inequality_10
from ._parts.linear_runs import train

ABOUT = lab.About(
    paper="generalization",
    item="Theorem 2, Lemma 2",
    title="Theorem 2's schedule: descent, limit, and uniform convergence of gradients",
    seconds={"smoke": 2, "laptop": 60, "paper": 600},
    looks=2,
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
            "inequality (10), with the gap of each iteration in place of (xi/B_3) B_2, holds at "
            "each iteration of every run, at each n and eps",
            "low dimension", "step size", "start", "slack",
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
        "d8": theorem(
            "Lemma 2 with one constant: on average the largest deviation is below "
            "4 v sqrt(d^2 log n/n), at each n (d = 2), and at n = 10,000 from d = 2 to 32, at each "
            "eps",
        ),
        "d9": theorem(
            "and over v sqrt(d^2 log n/n) it does not grow with d: a power below 0.05",
        ),
        "d10": ours(
            "it is smaller than Lemma 2 needs: it grows like d to a power within 0.15 of 1/2, "
            "where sqrt(d^2 log n/n) has 1",
        ),
    },
)  # fmt: skip
NAME = "generalization/descent_schedule decisive 4"
"""Not the streams of the trials that chose sizes."""
START, ROUNDING, STRONG = 0.5, 1e-9, 1.5
DIMENSIONS, SAMPLES = (2, 4, 8, 16, 32), 10_000
"""Where Lemma 2 is measured without training."""
Schedule = Literal["theorem", "large step", "xi = 0", "none"]


class Case(lab.Case):
    schedule: Schedule = "theorem"
    n: PositiveInt
    d: PositiveInt = 2
    eps: PositiveFloat
    xi: NonNegativeFloat
    lr: NonNegativeFloat = 0.0
    steps: NonNegativeInt = 0

    @property
    def cost(self) -> float:
        return self.replicates * self.n * (3 * self.steps + 10 * self.d**2 + 80) / 2e8

    @property
    def law(self) -> LinearModel:
        return _law(self.n, self.d)


def _law(n: int, d: int = 2) -> LinearModel:
    return LinearModel(n=n, d=d, theta0="unit")


def _stable(eps: float, xi: float) -> float:
    law = _law(1)
    return float(theory.stable_eta(law.theta0_vector(), law.sigma2, eps, xi))


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    sizes = (1000, 4000) if smoke else (3000, 30_000, 300_000, 1_000_000)
    blocks = lab.blocks(seeds or {"smoke": 3, "laptop": 40, "paper": 100}[scale], 5)
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
    xi = theory.theorem2_schedule(sizes[1], 2, _law(1).v2).xi
    settings += [
        {"schedule": "none", "n": sizes[0] if smoke else SAMPLES, "d": d, "eps": eps, "xi": xi}
        for d in DIMENSIONS for eps in (0.3, STRONG)
    ]  # fmt: skip
    return [Case(**one, **block) for one in settings for block in blocks]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate and iteration; Lemma 2's deviation once per replicate."""
    law = case.law
    theta0, v = law.theta0_vector(), float(np.sqrt(law.v2))
    x, y = law.sample_stack(generators(NAME, case.n, case.d, seeds=case.seeds))
    pairs = list(zip(x.numpy(), y.numpy(), strict=True))
    if case.schedule == "none":
        lemma2 = [_lemma2(case, *one) for one in pairs]
        once = {"seed": list(case.seeds), "step": [0] * case.replicates, "lemma2": lemma2}
        return pl.DataFrame(once).with_columns(v=v)
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
    lemma2 = [_lemma2(case, *one) for one in pairs]
    rest = theory.algorithm_limit(*at).theta
    gap, whole = theory.gradient_gap(rest, *at), theory.potential_gradient(rest, *at)
    return table.with_columns(rest=float(np.linalg.norm(gap) / np.linalg.norm(whole))).with_columns(
        pl.Series("lemma2", np.tile(lemma2, case.steps + 1)),
        *(pl.Series(name, values.ravel()) for name, values in columns.items()),
    )


def _lemma2(case: Case, x: np.ndarray, y: np.ndarray) -> float:
    law = case.law
    return largest_deviation(
        x, y, law.theta0_vector(), law.sigma2, case.eps, case.xi, float(np.sqrt(law.v2))
    )


def figure(table: pl.DataFrame) -> charts.AnyChart:
    scheduled = table.filter(schedule="theorem")
    largest = scheduled.filter(n=scheduled["n"].max())
    strong = pl.concat([scheduled.filter(n=scheduled["n"].unique().sort()[1], eps=STRONG),
                        table.filter(pl.col("schedule").is_in(["large step", "xi = 0"]))],
                       how="diagonal")  # fmt: skip
    strong = strong.with_columns(excess=pl.col("surrogate") / pl.col("v") ** 2)
    once = _deviations(scheduled)
    bound = pl.DataFrame(
        {"n": (sizes := scheduled["n"].unique().sort().to_list()),
         "lemma2": [float(once["v"][0] * np.sqrt(4 * np.log(n) / n)) for n in sizes]}
    )  # fmt: skip
    over_d = _deviations(table.filter(schedule="none"))
    first = over_d.filter(d=over_d["d"].min()).group_by("eps", maintain_order=True).agg(
        pl.col("constant").mean(), pl.col("d").first()
    )  # fmt: skip
    halves = first.join(pl.DataFrame({"to": over_d["d"].unique().sort()}), how="cross").select(
        "eps", constant=pl.col("constant") * (pl.col("d") / pl.col("to")).sqrt(), d="to"
    )
    axes: dict[str, Any] = {"x_title": "iteration", "y_title": "R_{L,ξ} / v²"}
    logs: dict[str, Any] = {"log_x": True, "log_y": True}
    return charts.panels(
        [
            charts.curves(largest.with_columns(risk=pl.col("surrogate") / pl.col("v") ** 2), "step",
                          "risk", "eps", title="Theorem 2's schedule", **axes),
            charts.curves(strong, "step", "excess", "schedule", title="Off the schedule, ε = 1.5",
                          band="quartiles", **axes),
            *(charts.curves(_promises(largest.filter(eps=eps)), "step", "fall", "what",
                            title=f"Inequality (10), n = {sizes[-1]:,}, ε = {eps:g}",
                            band="quartiles", x_title="iteration",
                            y_title="fall of the potential / v²",
                            theory=pl.DataFrame({"fall": [0.0]}))
              for eps in (0.3, STRONG)),
            charts.points(scheduled.filter(pl.col("step") == pl.col("steps")), "n", "distance",
                          "eps", title="Distance to θ*", x_title="samples n",
                          y_title="‖θ(T) − θ*‖ / v", **logs),
            charts.points(once, "n", "lemma2", "eps", theory=bound,
                          title="Lemma 2, d = 2; dashed: v √(d² log n / n)", x_title="samples n",
                          y_title="largest deviation δ of gradients", **logs),
            charts.points(over_d, "d", "constant", "eps", theory=halves,
                          title="Lemma 2 over d; dashed: d^(-1/2)", x_title="dimension d",
                          y_title="δ / (v √(d² log n / n))", **logs),
            charts.points(once, "n", "needed", "eps", title="What the proof needs to vanish",
                          x_title="samples n", y_title="δ v / ξ", **logs),
        ],
        columns=2,
    )  # fmt: skip


def _deviations(rows: pl.DataFrame) -> pl.DataFrame:
    """Lemma 2's deviation of each replicate, over its order and against xi."""
    n = pl.col("n").cast(float)
    return rows.filter(step=0).with_columns(
        constant=pl.col("lemma2") / (pl.col("v") * pl.col("d") * (n.log() / n).sqrt()),
        needed=pl.col("lemma2") * pl.col("v") / pl.col("xi"),
        run=pl.concat_str("eps", pl.lit("/"), "seed"),
    )


def _promises(rows: pl.DataFrame) -> pl.DataFrame:
    """What R~ falls by in the first iterations, and what (10) says that it falls by at least."""
    ten, v2 = inequality_10(rows), float(rows["v"][0]) ** 2
    both = {"measured": ten.change, "at least, by (10)": ten.fall - ten.slack}
    return pl.concat(
        pl.DataFrame(
            {"step": np.tile(np.arange(values.shape[1]), len(values)), "fall": values.ravel() / v2}
        ).with_columns(what=pl.lit(what))
        for what, values in both.items()
    ).filter(pl.col("step") <= 25)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """At the largest n, where d2 is judged; step and start at every n.

    (10) says something where its slack is below its fall: at the largest n, while the gradient is
    large.
    """
    runs = table.filter(schedule="theorem").unique(["n", "eps", "xi", "lr"], maintain_order=True)
    shares = [row["lr"] / _stable(row["eps"], row["xi"]) for row in runs.iter_rows(named=True)]
    law = _law(int(runs["n"].to_numpy().max()))
    largest = table.filter(schedule="theorem", n=law.n).partition_by("eps", maintain_order=True)
    slack = max(inequality_10(rows).largest_share() for rows in largest)
    return [
        conditions.low_dimension(law.n, law.d),
        conditions.smooth_step(shares),
        conditions.start(START * float(np.sqrt(law.v2)), law.v2),
        Assumption(
            name="slack",
            condition="slack of (10) / its fall < 1 while |grad R~|^2 is above a quarter of its "
            "largest, at the largest n",
            reached=slack, holds=slack < 1,
        ),
        conditions.gaussian(),
    ]  # fmt: skip


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    scheduled = table.filter(schedule="theorem")
    largest = scheduled.filter(n=scheduled["n"].max())
    ends = scheduled.filter(pl.col("step") == pl.col("steps"))
    ends = ends.with_columns(run=pl.concat_str("eps", pl.lit("/"), "seed"))
    once, over_d = _deviations(scheduled), _deviations(table.filter(schedule="none"))
    powers = {
        name: {f"eps = {eps}": slopes(over_d.filter(eps=eps), "d", name)
               for eps in over_d["eps"].unique().sort()}
        for name in ("constant", "lemma2")
    }  # fmt: skip
    by_eps = largest.partition_by("eps", maintain_order=True)
    claims = Claims(ABOUT.claims)
    return [
        claims.decreasing("d1", ends, "n", "distance", replicate="run",
                          what="|theta(T) - theta*|/v"),
        claims.every("d2", _together(_rise(rows) <= ROUNDING for rows in by_eps),
                     what="R_{L,xi} falls at each iteration, for both eps,"),
        claims.every("d3", _together(_jumps(table, name) for name in ("large step", "xi = 0")),
                     what="R_{L,xi} rises off the schedule, far more than on it,"),
        claims.every("d4", _together(inequality_10(rows).holds() for rows in
                                     scheduled.partition_by("n", "eps", maintain_order=True)),
                     what="inequality (10) holds at each iteration, for each n and eps,"),
        claims.equal("d5", {f"eps = {eps}": slopes(once.filter(eps=eps), "n", "lemma2")
                            for eps in once["eps"].unique().sort()}, -0.5, 0.1,
                     what="the power of n in the largest deviation"),
        claims.decreasing("d6", once, "n", "needed", replicate="run", what="delta v/xi"),
        claims.equal("d7", groups(once, "rest", "n", "eps"), 1.0, 0.01,
                     what="xi / B_3 at the rest point"),
        claims.below("d8", 
                     groups(pl.concat([once, over_d], how="diagonal"), "constant",
                            "schedule", "n", "d", "eps"), 4,
                     what="the largest deviation over v sqrt(d^2 log n/n)"),
        claims.below("d9", powers["constant"], 0.05,
                     what="the power of d in the deviation over v sqrt(d^2 log n/n)"),
        claims.equal("d10", powers["lemma2"], 0.5, 0.15,
                     what="the power of d in the largest deviation"),
    ]  # fmt: skip


def _together(flags: Iterable[np.ndarray]) -> np.ndarray:
    """One flag per seed: whether it holds in all settings."""
    return np.logical_and.reduce(list(flags))


def _rise(rows: pl.DataFrame) -> np.ndarray:
    """Of each seed, the largest rise of R_{L,xi} in an iteration, over R_{L,xi} itself."""
    risks = by_seed(rows, "surrogate")
    return (np.diff(risks, axis=1) / risks[:, :-1]).max(axis=1)


def _jumps(table: pl.DataFrame, name: str) -> np.ndarray:
    """Of each seed, whether a control rises, and ten times as much as the schedule's own run."""
    off = table.filter(schedule=name)
    on = table.filter(schedule="theorem", n=off["n"][0], eps=off["eps"][0])
    rise, usual = (np.diff(by_seed(rows, "surrogate"), axis=1).max(axis=1) for rows in (off, on))
    return (rise > 1e-3 * off["v"][0] ** 2) & (rise > 10 * usual)
