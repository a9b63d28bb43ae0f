"""Between the paper's regimes: adversarial training as d/n tends to a constant.

Theorem 2 has d^2/n -> 0, where training reaches R*; Theorem 5 has d/n -> infinity, where it ends at
the min-norm interpolator, whose risk is that of the zero model. At d/n = c neither speaks. The
minimiser of the adversarial training risk has a limit there (`theory.proportional_limit`), as have
least squares and the min-norm interpolator (`theory.min_norm_limit`, the limit of Lemma 1).
Both are held against exact minimisers on samples; |theta0|^2 = 2, unit noise.

Near d = n least squares explodes; robust training does not. For a weak attack and c well above 1
the two are the same, which is Theorem 5's message at finite c: up to some radius the robust
estimate is the interpolator itself. The same limit is asked of inputs with uniform entries
(cf. Remark 1), and correlated inputs have one of their own (`theory.correlated_limit`): AR(1) with
rho = 0.6, with theta0 along the vector of ones, scaled so that v^2 stays.

Near d = n risks vary most and are furthest from their limits, so samples are twice as large there.
"""

import numpy as np
import polars as pl
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from .... import lab, linear
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, ours, theorem
from ....report.charts import AnyChart, panels, points
from ....report.samples import groups
from ....threats import Ball
from .. import theory
from ..data import AR1, LinearModel
from ..data.regression import Law
from ._parts import assumptions as conditions

ABOUT = lab.About(
    paper="generalization",
    item="between Theorems 2 and 5",
    title="The proportional regime: d/n tends to a constant",
    seconds={"smoke": 2, "laptop": 75, "paper": 900},
    looks=1,
    claims={
        "r1": theorem(
            "the adversarial risk of least squares (d < n) and of the min-norm interpolator "
            "(d > n) is its limit up to 5 %, at each d/n and eps",
            "Gaussian",
        ),
        "r2": theorem(
            "the adversarial risk of the robust estimate is its limit up to 5 %, at each d/n and "
            "eps",
            "minimiser", "Gaussian",
        ),
        "r3": theorem(
            "so is its training risk, in units of v^2 up to 0.02", "minimiser", "Gaussian"
        ),
        "r4": theorem(
            "and the share of samples that it fits exactly, up to 0.03", "minimiser", "Gaussian"
        ),
        "r5": ours(
            "near d = n (d/n = 0.8 and 1.25) robust training at eps = 0.6 has less than half of "
            "the adversarial risk of least squares or the interpolator", "minimiser",
        ),
        "r6": ours(
            "at eps = 0.1 the robust estimate fits every sample from d/n = 2 on, and at eps = 0.6 "
            "not up to d/n = 2", "minimiser",
        ),
        "r7": ours(
            "with uniform in place of Gaussian entries the adversarial risk under the same "
            "formula, of the robust estimate, is within 5 % of the same limit", "minimiser",
        ),
        "r8": theorem(
            "with correlated inputs the adversarial risk of the robust estimate is its own limit "
            "up to 5 %, at each d/n and eps = 0.3",
            "minimiser", "Gaussian",
        ),
    },
)  # fmt: skip
NAME = "generalization/proportional_regime last"
"""Not the streams of the trials that chose sizes and tolerances."""
SIGNAL2, GAP, RHO = 2.0, 1e-8, 0.6
RADII, RATIOS = (0.1, 0.3, 0.6), (0.2, 0.5, 0.8, 1.25, 2.0, 4.0, 8.0)
NEAR, MIDDLE, CORRELATED = (0.8, 1.25), 0.3, (0.2, 0.5, 2.0, 4.0)
SEEDS = {"smoke": (3, 3), "laptop": (60, 200), "paper": (100, 400)}
"""Of most d/n, and from 0.5 to 1.25."""


class Case(lab.Case):
    ratio: PositiveFloat
    radii: tuple[PositiveFloat, ...] = RADII
    smaller: PositiveInt
    """The smaller one of n and d."""
    sigma2: PositiveFloat = 1.0
    law: Law = "gaussian"
    rho: NonNegativeFloat = 0.0
    """Of AR(1) inputs."""

    @property
    def n(self) -> int:
        return round(self.smaller / self.ratio) if self.ratio < 1 else self.smaller

    @property
    def d(self) -> int:
        return round(self.smaller * self.ratio) if self.ratio > 1 else self.smaller

    @property
    def cost(self) -> float:
        solves = 0.02 * len(self.radii) + 0.01
        return self.replicates * solves * (self.smaller / 240) ** 2 * max(self.n, self.d) / 300

    @property
    def model(self) -> LinearModel:
        theta0 = _truth(self.d, self.rho)
        cov = AR1(rho=self.rho) if self.rho else None
        return LinearModel(
            n=self.n, d=self.d, theta0=theta0, sigma2=self.sigma2, law=self.law, cov=cov
        )


def _truth(d: int, rho: float) -> tuple[float, ...]:
    """Equal entries, with theta0' Sigma theta0 = SIGNAL2."""
    cov = LinearModel(n=1, d=d, cov=AR1(rho=rho)).covariance()
    return tuple(np.full(d, np.sqrt(SIGNAL2 / cov.sum())).tolist())


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    smaller = {"smoke": 40, "laptop": 240, "paper": 1000}[scale]
    settings: list[dict] = [{"ratio": c} for c in (RATIOS[1::3] if smoke else RATIOS)]
    settings += [{"ratio": c, "radii": (MIDDLE,), "law": "uniform"} for c in (0.5, 2.0)]
    settings += [{"ratio": c, "radii": (MIDDLE,), "rho": RHO} for c in CORRELATED]
    few, many = SEEDS[scale]
    return [
        Case(smaller=(2 if one["ratio"] in NEAR else 1) * smaller, **one, **block)
        for one in settings
        for block in lab.blocks(seeds or (many if 0.5 <= one["ratio"] <= 1.25 else few), 20)
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate and radius: the two estimates and their limits."""
    model = case.model
    theta0, cov = model.theta0_vector(), model.covariance() if case.rho else None
    # The same samples for every radius.
    rngs = generators(NAME, case.law, case.rho, case.n, seeds=case.seeds)
    x, y = (one.numpy() for one in model.sample_stack(rngs))
    plain = np.stack([linear.min_norm(a, b) for a, b in zip(x, y, strict=True)])
    parts = []
    for radius in case.radii:
        found = [
            linear.solve_linear(a, b, radius, "l2", fit_intercept=False, tol=GAP)
            for a, b in zip(x, y, strict=True)
        ]
        robust = np.stack([one.coef for one in found])
        residual = np.abs(np.einsum("rnd,rd->rn", x, robust) - y)
        law = (theta0, case.sigma2, Ball("l2", radius), cov)
        rows = {
            "seed": list(case.seeds),
            "risk": linear.adversarial_risk(robust, *law),
            "risk_plain": linear.adversarial_risk(plain, *law),
            "train": [one.objective for one in found],
            "fitted": (residual <= 1e-7).mean(axis=1),
            "gap": [one.relative_gap for one in found],
        }
        limits = _limits(case.ratio, radius, case.rho, case.d)
        parts.append(pl.DataFrame(rows).with_columns(radius=radius, v2=model.v2, **limits))
    return pl.concat(parts)


def _limits(ratio: float, eps: float, rho: float = 0.0, d: int = 240) -> dict[str, float | None]:
    """What the estimates tend to; of least squares for uncorrelated inputs only."""
    if rho:
        model = LinearModel(n=1, d=d, theta0=_truth(d, rho), cov=AR1(rho=rho))
        law = (model.theta0_vector(), 1.0, eps, model.covariance())
        limit, simple = theory.correlated_limit(ratio, *law), None
    else:
        law = (ratio, float(np.sqrt(SIGNAL2)), 1.0, eps)
        limit, simple = theory.proportional_limit(*law), theory.min_norm_limit(*law).risk
    return {"limit": limit.risk, "limit_plain": simple, "limit_train": limit.training_risk,
            "limit_fitted": limit.fitted}  # fmt: skip


def figure(table: pl.DataFrame) -> AnyChart:
    table = table.rename({"radius": "eps"})
    entries = table.filter(rho=0.0, eps=MIDDLE).with_columns(
        entries=pl.col("law").replace("gaussian", "Gaussian")
    )
    table = table.filter(law="gaussian")
    rows = table.filter(rho=0.0)
    sides = np.geomspace(0.2, 0.9, 9), [0.95, 1.05], np.geomspace(1.1, 8.0, 16)
    grid = [float(c) for c in np.concatenate(sides)]
    curve = pl.DataFrame([{"ratio": c, "eps": eps, **_limits(c, eps)} for eps in RADII
                          for c in grid])  # fmt: skip
    # Least squares has a pole at d = n: an empty value there parts the line.
    away = pl.col("limit_plain").is_not_null() & (pl.col("ratio").log().abs() > 0.08)
    pole = pl.DataFrame({"ratio": [1.0] * 3, "eps": RADII, "risk_plain": [None] * 3},
                        schema_overrides={"risk_plain": pl.Float64})  # fmt: skip
    peak = curve.filter(away).select("ratio", "eps", risk_plain="limit_plain")
    peak = pl.concat([peak, pole]).sort("eps", "ratio")
    sigma = pl.when(pl.col("rho") > 0).then(pl.lit("AR(1)")).otherwise(pl.lit("I")).alias("Σ")
    both = table.filter(eps=MIDDLE).with_columns(sigma)
    kinds = pl.DataFrame([{"ratio": c, "risk": _limits(c, MIDDLE, rho)["limit"], "Σ": name}
                          for name, rho in (("I", 0.0), ("AR(1)", RHO)) for c in grid])  # fmt: skip
    x, v2 = {"x_title": "d / n", "log_x": True}, SIGNAL2 + 1.0
    return panels(
        [
            points(rows, "ratio", "risk", "eps",
                   theory=curve.select("ratio", "eps", risk="limit"),
                   title="Robust estimate", y_title="adversarial risk", **x),
            points(rows, "ratio", "risk_plain", "eps", theory=peak,
                   title="Least squares, interpolator", y_title="adversarial risk", **x),
            points(rows, "ratio", "fitted", "eps",
                   theory=curve.select("ratio", "eps", fitted="limit_fitted"),
                   title="Samples fitted exactly", y_title="share", **x),
            points(both, "ratio", "risk", "Σ", theory=kinds, title="Correlated inputs, ε = 0.3",
                   y_title="adversarial risk", **x),
            points(rows.with_columns(train=pl.col("train") / pl.col("v2")), "ratio", "train", "eps",
                   theory=curve.select("ratio", "eps", train=pl.col("limit_train") / v2),
                   title="Training risk of the robust estimate", y_title="training risk / v²",
                   **x),
            points(entries, "ratio", "risk", "entries", title="Law of the entries, ε = 0.3",
                   theory=curve.filter(eps=MIDDLE).select("ratio", risk="limit"),
                   y_title="adversarial risk", **x),
        ],
        columns=2,
    )  # fmt: skip


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return [conditions.gaussian(), conditions.certified(table["gap"].to_numpy(), GAP)]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = table.with_columns(
        robust=pl.col("risk") / pl.col("limit"),
        plain=pl.col("risk_plain") / pl.col("limit_plain"),
        training=(pl.col("train") - pl.col("limit_train")) / pl.col("v2"),
        fits=pl.col("fitted") - pl.col("limit_fitted"),
        gain=pl.col("risk") / pl.col("risk_plain"),
    )
    other, correlated = rows.filter(law="uniform"), rows.filter(pl.col("rho") > 0)
    rows = rows.filter(law="gaussian", rho=0.0)
    near = rows.filter(pl.col("ratio").is_in(NEAR), radius=RADII[-1])
    by = ("ratio", "radius")
    claims = Claims(ABOUT.claims)
    return [
        claims.equal("r1", groups(rows, "plain", *by), 1.0, 0.05, what="risk / limit"),
        claims.equal("r2", groups(rows, "robust", *by), 1.0, 0.05, what="risk / limit"),
        claims.equal("r3", groups(rows, "training", *by), 0.0, 0.02,
                     what="(training risk - limit) / v^2"),
        claims.equal("r4", groups(rows, "fits", *by), 0.0, 0.03, what="share fitted - limit"),
        claims.below("r5", groups(near, "gain", *by), 0.5, what="risk / risk of least squares"),
        claims.every("r6", _fits(rows), what="all fitted from d/n = 2 on at eps = 0.1, and not "
                     "all up to d/n = 2 at eps = 0.6,"),
        claims.equal("r7", groups(other, "robust", *by), 1.0, 0.05, what="risk / limit"),
        claims.equal("r8", groups(correlated, "robust", *by), 1.0, 0.05, what="risk / limit"),
    ]  # fmt: skip


def _fits(rows: pl.DataFrame) -> pl.Series:
    """Of each seed, whether both halves of r6 hold at every d/n that it was drawn for."""
    weak = (pl.col("ratio") >= 2) & (pl.col("radius") == RADII[0])
    strong = (pl.col("ratio") <= 2) & (pl.col("radius") == RADII[-1])
    asked = rows.filter(weak | strong)
    holds = pl.when(weak).then(pl.col("fitted") == 1).otherwise(pl.col("fitted") < 1)
    return asked.group_by("seed").agg(holds=holds.all()).sort("seed")["holds"]
