"""Exact paths of linear adversarial training: ridge, lasso, square-root lasso, and the population.

The closed forms of the paper are about the population: l2 attacks give ridge points (Prop. 8), linf
 attacks points of the lasso path (derived here). On a sample the minimiser of the adversarial
training risk is found exactly, with a certificate, and held against:

- ridge: the sample solution under an l2 attack minimises a weighted ridge problem, and is near the
  ridge point of the same length where residuals are large against the attack;
- lasso: the same for linf attacks, in l1 length, with the same zeros for the most part;
- the square-root lasso: the thresholds max|X'y| / sum|y| and max|X'y| / (sqrt(n) |y|) have the
  ratio sqrt(pi/2) for Gaussian answers; just below them both select the same first feature;
- the population optimum theta*(eps), which the sample solution approaches as n grows;
- the thresholds: eps_0 of the sample approaches that of the population, and with more inputs than
  samples the solution fits every sample up to the interpolation threshold and not beyond.
"""

from typing import Literal

import numpy as np
import polars as pl
from pydantic import PositiveInt

from .... import lab, linear
from ....report import Assumption, Claims, Verdict, ours, sample, theorem
from ....report.charts import AnyChart, panels, points
from ....report.samples import groups
from ....threats import Ball
from ._parts import assumptions as conditions

ABOUT = lab.About(
    paper="generalization",
    item="Propositions 1 and 8, on samples",
    title="Exact paths: ridge, lasso, square-root lasso and the population optimum",
    seconds={"smoke": 3, "laptop": 15, "paper": 600},
    looks=1,
    claims={
        "p1": ours(
            "at a tenth of eps_0 the sample solution under l2 attacks is within 10 % (l2 distance) "
            "of the ridge point of its length",
            "minimiser",
        ),
        "p2": ours(
            "at a tenth of eps_0 the sample solution under linf attacks is within 10 % (l1 "
            "distance) of the lasso point of its l1 length",
            "minimiser",
        ),
        "p3": ours(
            "the thresholds of linf attacks and of the square-root lasso have the ratio "
            "sqrt(pi/2), up to 3 %",
        ),
        "p4": ours(
            "just below their thresholds both select one feature, the same", "minimiser"
        ),
        "p5": ours("the distance of the sample solution from theta*(eps) falls as n grows",
                   "minimiser"),
        "p6": theorem(
            "on samples theta is zero from eps_0 on, and not before; with more inputs than samples "
            "it fits every sample up to the interpolation threshold, and not beyond",
        ),
        "p7": ours("the sample's eps_0 is within 10 % of the population's, at the largest n"),
    },
)  # fmt: skip
NAME = "generalization/paths"
NORMS = ("l2", "linf")
SHARE, NEAR = 0.1, 0.1
GAP = 1e-8
Norm = Literal["l2", "linf"]


class Case(lab.Case):
    """`n` samples of 20 inputs, five of them in the truth; the thresholds also with 2n inputs."""

    n: PositiveInt
    d: PositiveInt = 20

    @property
    def cost(self) -> float:
        return self.replicates * (0.1 + self.n / 2000)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    sizes = (100, 400) if scale == "smoke" else (100, 400, 1600, 6400)
    default = {"smoke": 3, "laptop": 20, "paper": 100}[scale]
    return [Case(n=n, **block) for n in sizes for block in lab.blocks(seeds or default, 5)]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate, quantity and norm."""
    rows = [
        {"seed": seed, "norm": norm, **row}
        for seed in case.seeds
        for norm in NORMS
        for row in _measured(case, seed, norm)
    ]
    schema = {"seed": pl.Int64, "norm": pl.String, "quantity": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def _draw(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n, d, 19])
    theta0 = np.r_[np.ones(5), np.zeros(d - 5)]
    x = rng.normal(size=(n, d))
    return x, x @ theta0 + rng.normal(size=n), theta0


def _measured(case: Case, seed: int, norm: Norm) -> list[dict]:
    x, y, theta0 = _draw(seed, case.n, case.d)
    edge = linear.thresholds(x, y, norm, fit_intercept=False).zero
    truth = linear.eps_zero(theta0, 1.0, norm)
    found = _solved(x, y, SHARE * edge, norm)
    link = _ridge_point(x, y, found.coef) if norm == "l2" else _lasso_point(x, y, found.coef)
    order = 2 if norm == "l2" else 1
    away = np.linalg.norm(found.coef - link, ord=order) / np.linalg.norm(found.coef, ord=order)
    best = linear.optimal(theta0, 1.0, Ball(norm, SHARE * truth)).theta
    at_truth = _solved(x, y, SHARE * truth, norm)
    values = {
        "distance from the link": away,
        "distance from theta*": np.linalg.norm(at_truth.coef - best),
        "threshold over population": edge / truth,
        "thresholds hold": _thresholds_hold(seed, x, y, edge, norm),
        "gap": max(found.relative_gap, at_truth.relative_gap),
    }
    if norm == "linf":
        root = np.abs(x.T @ y).max() / (np.sqrt(case.n) * np.linalg.norm(y))
        values["threshold over square-root lasso"] = edge / root
        values["same first feature"] = _same_first(x, y, edge)
    return [{"quantity": name, "value": float(value)} for name, value in values.items()]


def _solved(x: np.ndarray, y: np.ndarray, eps: float, norm: str) -> linear.LinearSolution:
    return linear.solve_linear(x, y, eps, norm, fit_intercept=False, tol=GAP)


def _ridge_point(x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The ridge estimate of the same l2 length."""
    values, basis = np.linalg.eigh(x.T @ x)
    target, wanted = basis.T @ (x.T @ y), float(np.linalg.norm(theta))
    low, high = 1e-12 * values[-1], 1e6 * values[-1]
    for _ in range(200):
        ridge = np.sqrt(low * high)
        longer = np.linalg.norm(target / (values + ridge)) > wanted
        low, high = (ridge, high) if longer else (low, ridge)
    return basis @ (target / (values + ridge))


def _lasso_point(x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """The lasso estimate of the same l1 length: squared loss, no attack, an l1 penalty."""
    wanted = float(np.abs(theta).sum())
    low, high = 0.0, 2 * float(np.abs(x.T @ y).max()) / len(y)
    for _ in range(40):
        penalty = (low + high) / 2
        found = linear.solve_linear(x, y, 0.0, l1=penalty, fit_intercept=False).coef
        longer = np.abs(found).sum() > wanted
        low, high = (penalty, high) if longer else (low, penalty)
    return found


def _same_first(x: np.ndarray, y: np.ndarray, edge: float) -> bool:
    """Just below the threshold one feature is left, that of the largest |x_j'y|.

    It is the first of the square-root lasso too, by the same gradient at zero.
    """
    coef = _solved(x, y, edge * (1 - 1e-3), "linf").coef
    return bool((coef != 0).sum() == 1 and coef[np.abs(x.T @ y).argmax()] != 0)


def _thresholds_hold(seed: int, x: np.ndarray, y: np.ndarray, edge: float, norm: str) -> bool:
    zero = [_solved(x, y, edge * share, norm).coef.any() for share in (1 - 1e-3, 1 + 1e-3)]
    wide, answers, _ = _draw(seed, 30, 60)
    fits_up_to = linear.thresholds(wide, answers, norm, fit_intercept=False).interpolation
    miss = [
        np.abs(answers - wide @ _solved(wide, answers, fits_up_to * share, norm).coef).max()
        for share in (0.99, 1.01)
    ]
    return bool(zero[0] and not zero[1] and miss[0] < 1e-8 and miss[1] > 1e-6)


def figure(table: pl.DataFrame) -> AnyChart:
    titles = {
        "distance from the link": "From the ridge (l2) or lasso (linf) point",
        "distance from theta*": "From the population optimum",
        "threshold over population": "eps_0: sample over population",
    }
    return panels(
        [
            points(table.filter(quantity=name), "n", "value", "norm", title=title, log_x=True,
                   x_title="samples n", y_title="ratio" if "over" in name else "distance")
            for name, title in titles.items()
        ]
    )  # fmt: skip


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    gaps = table.filter(quantity="gap")["value"].to_numpy()
    return [conditions.gaussian(), conditions.certified(gaps, GAP)]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    def of(quantity: str, norm: str | None = None) -> pl.DataFrame:
        rows = table.filter(quantity=quantity)
        return rows if norm is None else rows.filter(norm=norm)

    largest = table["n"].max()
    root = of("threshold over square-root lasso")
    away, edge = of("distance from theta*"), of("threshold over population")
    away = away.with_columns(run=pl.concat_str("norm", "seed"))
    claims = Claims(ABOUT.claims)
    return [
        claims.below("p1", sample(of("distance from the link", "l2"), "value", by="n"), NEAR,
                     what="|theta - ridge| / |theta|"),
        claims.below("p2", sample(of("distance from the link", "linf"), "value", by="n"), NEAR,
                     what="|theta - lasso|_1 / |theta|_1"),
        claims.equal("p3", sample(root.filter(n=largest), "value"), float(np.sqrt(np.pi / 2)),
                     0.03 * float(np.sqrt(np.pi / 2)), what="ratio of thresholds"),
        claims.every("p4", _flags(of("same first feature")),
                     what="one feature, that of the largest |x'y|"),
        claims.decreasing("p5", away, "n", "value", replicate="run", what="|theta - theta*|"),
        claims.every("p6", _flags(of("thresholds hold")),
                     what="zero and interpolation change sides at the thresholds"),
        claims.equal("p7", groups(edge.filter(n=largest), "value", "norm"), 1.0, 0.1,
                     what="eps_0 of the sample / of the population"),
    ]  # fmt: skip


def _flags(rows: pl.DataFrame) -> pl.Series:
    """One flag per seed: whether it holds at every n and norm."""
    return rows.group_by("seed").agg((pl.col("value") == 1).all()).sort("seed")["value"]
