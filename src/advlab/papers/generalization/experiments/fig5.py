r"""Low dimension: adversarial training reaches the least adversarial risk, and pays in accuracy.

Theorem 2: with $d^2 \log^2 n / n \to 0$ the surrogate algorithm gets to $R^*(\epsilon)$, the least
adversarial risk of any linear model. So it moves away from theta0 and its standard risk stays above
that of least squares ("adversarial training hurts standard testing performance"). Figure 5 and A.1:
d = 10, theta0 = 1, sigma2 = 1, xi = 0.1, eta = 0.01, zero start, 100 replicates.

The paper gives neither n nor the strengths; n = 1000 and eps = 0, 0.1, 0.5 are drawn, and n = 100
and n = 10,000 show the limit.

"Near R*" is measured against theta0, the truth itself, which standard training would reach: at
eps = 0.1 its adversarial risk is only 0.1 % of v^2 above R*, at eps = 0.5 it is 6 %. A model that
has not heard of the attack must not pass. At eps = 0.1 and n = 1000 sampling noise is as large as
what theta0 loses; claim 4d asks about it.
"""

from functools import partial

import altair as alt
import numpy as np
import polars as pl

from .... import lab, linear
from ....report import Assumption, Claims, Verdict, charts, empirical, ours, sample
from ....report.samples import changes
from ....threats import Ball
from ..data import LinearModel
from ._parts import assumptions as conditions
from ._parts.linear_runs import draw, risks, train

EPS = (0.0, 0.1, 0.5)
ABOUT = lab.About(
    paper="generalization",
    item="Figure 5",
    title="Low dimension: training reaches the least adversarial risk",
    seconds={"smoke": 2, "laptop": 35, "paper": 60},
    looks=2,
    claims={
        "4a": empirical(
            "at n = 1000, eps = 0.5 the excess of the adversarial test risk over R* is below a "
            "tenth of that of theta0"
        ),
        "4b": empirical(
            "at n = 10,000 it is below a quarter of that of theta0, at eps = 0.1 and 0.5"
        ),
        "4c": empirical("the distance to theta* falls as n grows, at each eps"),
        "4d": ours("at n = 1000, eps = 0.1 the trained model is nearer to R* than theta0"),
        "5a": empirical(
            "at n = 10,000 standard risk exceeds that of least squares by v^2 c(eps), up to 10 %"
        ),
        "5b": empirical("the price of robustness grows with eps"),
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


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Theorem 2's regime at the largest n; the figure's xi and steps are not the theorem's."""
    return [conditions.low_dimension(int(table["n"].to_numpy().max()), 10), conditions.gaussian()]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    data = LinearModel(n=1000, d=10)
    theta0, strengths = data.theta0_vector(), np.array(EPS)
    best = linear.optimal_path(theta0, data.sigma2, strengths)
    unmoved = linear.adversarial_risks(theta0, theta0, data.sigma2, strengths)
    least = pl.DataFrame({"eps": EPS, "least": best.risk, "unmoved": unmoved - best.risk})
    last = table.filter(pl.col("step") == pl.col("step").max()).join(least, on="eps")
    last = last.with_columns(
        excess=(pl.col("test") - pl.col("least")) / pl.col("unmoved"),
        price=pl.col("standard") - pl.col("least_squares"),
    )
    largest = last.filter(pl.col("n") == pl.col("n").max())
    price = linear.cost_of_robustness(theta0, data.sigma2, strengths) * data.v2
    ratio = {
        f"eps = {eps}": largest.filter(eps=eps).sort("seed")["price"] / expected
        for eps, expected in zip(EPS, price, strict=True)
        if eps > 0
    }
    claims, excess = Claims(ABOUT.claims), "(adversarial test risk - R*) / (that of theta0 - R*)"
    near = {
        # No model is below R*: a negative excess is a bug, not a success.
        label: claims.within(label, sample(rows, "excess", by="eps"), 0.0, bound, what=excess)
        for label, rows, bound in (
            ("4a", last.filter(n=1000, eps=0.5), 0.1),
            ("4b", last.filter(pl.col("eps") > 0, n=10_000), 0.25),
            ("4d", last.filter(n=1000, eps=0.1), 1.0),
        )
    }
    return [
        near["4a"],
        near["4b"],
        claims.below(
            "4c",
            changes(last, "n", "distance", "eps"),
            0.0,
            what="change of |theta - theta*|/v from one n to the next",
        ),
        near["4d"],
        claims.equal(
            "5a",
            ratio,
            1.0,
            0.1,
            what=f"(standard risk - that of least squares)/(v^2 c(eps)) at n = {largest['n'][0]}",
        ),
        claims.increasing(
            "5b", largest, "eps", "price", what="standard risk - that of least squares"
        ),
    ]
