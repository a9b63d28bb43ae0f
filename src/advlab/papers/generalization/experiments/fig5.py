"""Low dimension: adversarial training reaches the least adversarial risk, and pays in accuracy.

Theorem 2: with d^2 log^2 n / n -> 0 the surrogate algorithm gets to R*(eps), the least adversarial
risk of any linear model. So it moves away from theta0 and its standard risk stays above that of
least squares ("adversarial training hurts standard testing performance"). Figure 5 and A.1:
d = 10, theta0 = 1, sigma2 = 1, xi = 0.1, eta = 0.01, zero start, 100 replicates.

The paper gives neither n nor the strengths; n = 1000 and eps = 0, 0.1, 0.5 are drawn, and n = 100
and n = 10,000 show the limit.
"""

from functools import partial

import altair as alt
import numpy as np
import polars as pl

from .... import lab, linear
from ....report import Claims, Verdict, charts, sample
from ....threats import Ball
from ..data import LinearModel
from ._parts.linear_runs import draw, risks, train

EPS = (0.0, 0.1, 0.5)
ABOUT = lab.About(
    paper="generalization",
    item="Figure 5",
    title="Low dimension: training reaches the least adversarial risk",
    seconds={"smoke": 2, "laptop": 45, "paper": 60},
    looks=1,
    claims={
        "4a": "at n = 1000 the adversarial test risk is at R* up to 1 % of v^2",
        "4b": "at n = 10,000 it is at R* up to 0.2 % of v^2",
        "4c": "the distance to theta* falls as n grows",
        "5a": "standard risk exceeds that of least squares by v^2 c(eps)",
        "5b": "the price of robustness grows with eps",
    },
)
NAME = "generalization/fig5"


class Case(lab.Case):
    n: int
    eps: float
    xi: float = 0.1
    lr: float = 0.01
    steps: int = 1000

    @property
    def data(self) -> LinearModel:
        return LinearModel(n=self.n, d=10)

    @property
    def cost(self) -> float:
        return self.n * self.replicates


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    if scale == "smoke":
        replicates, steps = {100: 4, 1000: 4}, 300
    else:
        replicates, steps = {100: 100, 1000: 100, 10_000: 100}, 1000
    # Blocks small enough to stay in a core's cache.
    return [
        Case(n=n, eps=eps, steps=steps, **block)
        for n, default in replicates.items()
        for eps in EPS
        for block in lab.blocks(seeds or default, 50 if n <= 1000 else 5)
    ]


def compute(case: Case) -> pl.DataFrame:
    data = case.data
    x, y = draw(data, NAME, case.seeds)
    ball = Ball(norm="l2", radius=case.eps)
    path = train(x, y, ball=ball, xi=case.xi, lr=case.lr, steps=case.steps, note_every=10)
    best = linear.optimal(data.theta0_vector(), data.sigma2, ball)
    distance = np.linalg.norm(path.theta.numpy() - best.theta, axis=2) / np.sqrt(data.v2)
    fits = np.stack([linear.min_norm(a, b) for a, b in zip(x.numpy(), y.numpy(), strict=True)])
    least_squares = linear.standard_risk(fits, data.theta0_vector(), data.sigma2)
    return path.table(
        case.seeds,
        distance=distance,
        least_squares=np.broadcast_to(least_squares, distance.shape),
        **risks(path, data),
    )


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    shown = table.filter(n=1000)
    data = LinearModel(n=1000, d=10)
    best = linear.optimal_path(data.theta0_vector(), data.sigma2, np.array(EPS))
    target = pl.DataFrame({"eps": EPS, "test": best.risk})
    curve = partial(charts.curves, shown, "step", color="eps", x_title="iteration", y_title="loss")
    return charts.panels(
        [
            curve("train", title="adversarial training loss"),
            curve("test", title="adversarial test loss, dashed R*(eps)", theory=target),
            curve("standard", title="standard test loss"),
        ]
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    data = LinearModel(n=1000, d=10)
    best = linear.optimal_path(data.theta0_vector(), data.sigma2, np.array(EPS))
    least = pl.DataFrame({"eps": EPS, "least": best.risk})
    last = table.filter(pl.col("step") == pl.col("step").max()).join(least, on="eps")
    last = last.with_columns(
        excess=(pl.col("test") - pl.col("least")) / data.v2,
        price=pl.col("standard") - pl.col("least_squares"),
    )
    largest = last.filter(pl.col("n") == pl.col("n").max())
    price = linear.cost_of_robustness(data.theta0_vector(), data.sigma2, np.array(EPS)) * data.v2
    ratio = {
        f"eps = {eps}": largest.filter(eps=eps).sort("seed")["price"] / expected
        for eps, expected in zip(EPS, price, strict=True)
        if eps > 0
    }
    claims = Claims(ABOUT.claims)
    return [
        *(
            claims.below(
                label,
                sample(last.filter(n=n), "excess", by="eps"),
                bound,
                what=f"(adversarial test risk - R*)/v^2 at n = {n}",
            )
            for label, n, bound in (("4a", 1000, 0.01), ("4b", 10_000, 0.002))
        ),
        claims.decreasing(
            "4c",
            last.filter(eps=EPS[-1]),
            "n",
            "distance",
            what=f"|theta - theta*|/v at eps = {EPS[-1]}",
        ),
        claims.within(
            "5a",
            ratio,
            0.9,
            1.1,
            what=f"(standard risk - that of least squares)/(v^2 c(eps)) at n = {largest['n'][0]}",
        ),
        claims.increasing(
            "5b", largest, "eps", "price", what="standard risk - that of least squares"
        ),
    ]
