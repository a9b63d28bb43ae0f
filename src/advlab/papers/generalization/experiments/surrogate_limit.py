"""What the surrogate algorithm converges to: a ridge point of its own, not theta*.

Section 2.1 asks for xi -> 0; A.2 says that "due to the existence of xi" the limit is not R*(eps).
The zero of the frozen-attack gradient is known exactly (derived here, `algorithm_limit`): it
lies on the ridge path at kappa_alg, and its excess risk grows with xi. A large sample shows
gradient descent going there and not to the minimiser's kappa. Both are computed from the sample's
own least squares, noise and covariance, so that its randomness does not blur the comparison.
"""

from typing import Literal

import altair as alt
import numpy as np
import polars as pl

from .... import lab, linear
from ....report import Assumption, Claims, Verdict, charts, ours
from ....threats import Ball
from .. import theory
from ..data import LinearModel
from ._parts import assumptions as conditions
from ._parts.linear_runs import Trajectory, draw, train

ABOUT = lab.About(
    paper="generalization",
    item="Section 2.1 and A.2",
    title="The limit of the surrogate algorithm and the price of xi",
    seconds={"smoke": 3, "laptop": 15, "paper": 120},
    looks=3,
    claims={
        "6a": ours(
            "the excess risk of the algorithm's limit increases with xi, from 0.01 to 1 and at "
            "eps = 0.1, 0.5 and 1"
        ),
        "6b": ours("gradient descent ends within 1 % of kappa_alg"),
        "6c": ours("and ten times as near to it as to the kappa of the minimiser theta*"),
    },
)
NAME = "generalization/surrogate_limit"
SETTINGS = ((0.5, 1.0), (1.0, 0.5))
"""(eps, xi): mild attack with much smoothing, strong attack with some."""
STRENGTHS, SMOOTHINGS = (0.1, 0.5, 1.0), (0.01, 0.03, 0.1, 0.3, 1.0)
"""Where claim 6a is judged."""


class Case(lab.Case):
    """`descent` trains; `limit` computes the excess risk of the limit, without data."""

    part: Literal["descent", "limit"] = "descent"
    eps: float
    xi: float
    n: int = 1
    lr: float = 0.015
    steps: int = 600

    @property
    def data(self) -> LinearModel:
        return LinearModel(n=self.n, d=10)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    n, default = {"smoke": (2000, 3), "laptop": (50_000, 12), "paper": (200_000, 10)}[scale]
    return [
        *(
            Case(eps=eps, xi=xi, n=n, **block)
            for eps, xi in SETTINGS
            for block in lab.blocks(seeds or default, 1)
        ),
        *(Case(part="limit", eps=eps, xi=xi) for eps in STRENGTHS for xi in SMOOTHINGS),
    ]


def compute(case: Case) -> pl.DataFrame:
    data = case.data
    if case.part == "limit":
        limit = theory.algorithm_limit(data.theta0_vector(), data.sigma2, case.eps, case.xi)
        return pl.DataFrame({"seed": list(case.seeds), "excess": [float(limit.excess)]})
    x, y = draw(data, NAME, case.seeds)
    ball = Ball(norm="l2", radius=case.eps)
    path = train(x, y, ball=ball, xi=case.xi, lr=case.lr, steps=case.steps, note_every=25)
    # Against the sample's own least squares and covariance sampling noise cancels in kappa.
    own = [_own_law(a, b) for a, b in zip(x.numpy(), y.numpy(), strict=True)]
    return path.table(
        case.seeds,
        kappa=np.stack([_kappa(path.theta[:, r].numpy(), *law) for r, law in enumerate(own)], 1),
        limit=_each_step(path, [_limit(case, *law) for law in own]),
        best=_each_step(path, [_best(case, *law) for law in own]),
    )


def _own_law(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """theta0, sigma2 and Sigma as the sample shows them."""
    fit = linear.min_norm(x, y)
    return fit, float(np.mean((x @ fit - y) ** 2)), x.T @ x / len(x)


def _kappa(theta: np.ndarray, theta0: np.ndarray, sigma2: float, cov: np.ndarray) -> np.ndarray:
    """The ridge parameter of each step: Sigma (theta0 - theta) = kappa theta on the ridge path."""
    pull = (theta * ((theta0 - theta) @ cov)).sum(1)
    size = (theta**2).sum(1)
    return np.divide(pull, size, out=np.full_like(pull, np.nan), where=size > 0)


def _limit(case: Case, theta0: np.ndarray, sigma2: float, cov: np.ndarray) -> float:
    return float(theory.kappa_alg(theta0, sigma2, case.eps, case.xi, cov=cov))


def _best(case: Case, theta0: np.ndarray, sigma2: float, cov: np.ndarray) -> float:
    return float(linear.optimal_path(theta0, sigma2, np.array([case.eps]), cov=cov).kappa[0])


def _each_step(path: Trajectory, values: list[float]) -> np.ndarray:
    return np.broadcast_to(np.array(values), path.loss.shape)


def _excess_lines(xis: np.ndarray) -> pl.DataFrame:
    """Excess risk of the limit over xi, for each strength."""
    data = LinearModel(n=1, d=10)
    parts = []
    for eps in STRENGTHS:
        limit = theory.algorithm_limit(data.theta0_vector(), data.sigma2, eps, xis)
        parts.append(pl.DataFrame({"eps": eps, "xi": xis, "excess": limit.excess}))
    return pl.concat(parts)


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    data = LinearModel(n=1, d=10)
    panels = []
    for eps, xi in SETTINGS:
        runs = table.filter(pl.col("step") > 0, part="descent", eps=eps, xi=xi)
        limits = {
            "its limit": theory.kappa_alg(data.theta0_vector(), data.sigma2, eps, xi),
            "theta*": linear.optimal_path(data.theta0_vector(), data.sigma2, np.array([eps])).kappa[
                0
            ],
        }
        levels = pl.DataFrame({"limit": list(limits), "kappa": [float(k) for k in limits.values()]})
        panels.append(
            charts.curves(
                runs.with_columns(limit=pl.lit("descent")),
                "step",
                "kappa",
                "limit",
                theory=levels,
                title=f"eps = {eps}, xi = {xi}",
                x_title="iteration",
            )
        )
    excess = _excess_lines(np.geomspace(0.01, 3, 60))
    panels.append(
        charts.curves(
            excess,
            "xi",
            "excess",
            "eps",
            log_x=True,
            log_y=True,
            title="excess risk of the limit",
            y_title="risk - R*",
        )
    )
    return charts.panels(panels)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return [conditions.low_dimension(int(table["n"].to_numpy().max()), 10), conditions.gaussian()]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    descent = table.filter(part="descent")
    last = descent.filter(pl.col("step") == pl.col("step").max())
    near, far = {}, {}
    for eps, xi in SETTINGS:
        runs = last.filter(eps=eps, xi=xi).sort("seed")
        name = f"eps = {eps}, xi = {xi}"
        near[name] = runs["kappa"] / runs["limit"]
        apart = [(runs["kappa"] - runs[end]).abs() for end in ("limit", "best")]
        far[name] = apart[0] / apart[1]
    gains = {
        f"eps = {eps}": float(np.diff(part.sort("xi")["excess"].to_numpy()).min())
        for (eps,), part in table.filter(part="limit").group_by("eps", maintain_order=True)
    }
    claims = Claims(ABOUT.claims)
    return [
        claims.above(
            "6a",
            gains,
            0.0,
            what="smallest change of the limit's excess risk along xi = 0.01 ... 1",
        ),
        # xi in place of xi/2 (the proofs' reading) is 14 % off or more, the minimiser's kappa 16 %.
        claims.equal("6b", near, 1.0, 0.01, what="kappa reached / kappa_alg"),
        claims.below(
            "6c",
            far,
            0.1,
            what="distance of kappa reached from kappa_alg / that from the minimiser's kappa",
        ),
    ]
