"""Between the paper's regimes: adversarial training as d/n tends to a constant.

Theorem 2 has d^2/n -> 0, where training reaches R*; Theorem 5 has d/n -> infinity, where it ends at
the min-norm interpolator, whose risk is that of the zero model. At d/n = c neither speaks. The
minimiser of the adversarial training risk has a limit there (`theory.proportional_limit`), as have
least squares and the min-norm interpolator (`theory.min_norm_limit`, the limit of Lemma 1).
Both are held against exact minimisers on samples; |theta0|^2 = 2, unit noise.

Near d = n least squares explodes; robust training does not. For a weak attack and c well above 1
the two are the same, which is Theorem 5's message at finite c: up to some radius the robust
estimate is the interpolator itself. The same limit is asked of inputs with uniform entries
(cf. Remark 1).
"""

import numpy as np
import polars as pl
from pydantic import PositiveFloat, PositiveInt

from .... import lab, linear
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, ours, theorem
from ....report.charts import AnyChart, panels, points
from ....report.samples import groups
from ....threats import Ball
from .. import theory
from ..data import LinearModel
from ..data.regression import Law
from ._parts import assumptions as conditions

ABOUT = lab.About(
    paper="generalization",
    item="between Theorems 2 and 5",
    title="The proportional regime: d/n tends to a constant",
    seconds={"smoke": 2, "laptop": 60, "paper": 1500},
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
    },
)  # fmt: skip
NAME = "generalization/proportional_regime decisive"
"""Not the streams of the trials that chose sizes and tolerances."""
SIGNAL2, GAP = 2.0, 1e-8
RADII, RATIOS = (0.1, 0.3, 0.6), (0.2, 0.5, 0.8, 1.25, 2.0, 4.0, 8.0)


class Case(lab.Case):
    ratio: PositiveFloat
    radius: PositiveFloat
    smaller: PositiveInt
    """The smaller one of n and d."""
    sigma2: PositiveFloat = 1.0
    law: Law = "gaussian"

    @property
    def n(self) -> int:
        return round(self.smaller / self.ratio) if self.ratio < 1 else self.smaller

    @property
    def d(self) -> int:
        return round(self.smaller * self.ratio) if self.ratio > 1 else self.smaller

    @property
    def cost(self) -> float:
        return self.replicates * 0.05 * (self.smaller / 300) ** 2 * max(self.n, self.d) / 300

    @property
    def model(self) -> LinearModel:
        theta0 = tuple(np.full(self.d, np.sqrt(SIGNAL2 / self.d)).tolist())
        return LinearModel(n=self.n, d=self.d, theta0=theta0, sigma2=self.sigma2, law=self.law)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    smaller = {"smoke": 40, "laptop": 240, "paper": 1000}[scale]
    blocks = lab.blocks(seeds or {"smoke": 3, "laptop": 60, "paper": 100}[scale], 20)
    settings = [(c, eps, "gaussian") for c in (RATIOS[1::3] if smoke else RATIOS) for eps in RADII]
    settings += [(c, 0.3, "uniform") for c in (0.5, 2.0)]
    return [
        Case(ratio=c, radius=eps, law=law, smaller=smaller, **block)  # type: ignore
        for c, eps, law in settings
        for block in blocks
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate: the two estimates and their limits."""
    model, ball = case.model, Ball("l2", case.radius)
    theta0 = model.theta0_vector()
    # The same samples for every radius.
    rngs = generators(NAME, case.law, case.n, seeds=case.seeds)
    x, y = (one.numpy() for one in model.sample_stack(rngs))
    found = [
        linear.solve_linear(a, b, case.radius, "l2", fit_intercept=False, tol=GAP)
        for a, b in zip(x, y, strict=True)
    ]
    plain = np.stack([linear.min_norm(a, b) for a, b in zip(x, y, strict=True)])
    robust = np.stack([one.coef for one in found])
    fitted = [
        float((np.abs(a @ one.coef - b) <= 1e-7).mean())
        for one, a, b in zip(found, x, y, strict=True)
    ]
    limits = (case.ratio, float(np.sqrt(SIGNAL2)), case.sigma2, case.radius)
    limit, simple = theory.proportional_limit(*limits), theory.min_norm_limit(*limits)
    return pl.DataFrame(
        {
            "seed": list(case.seeds),
            "risk": linear.adversarial_risk(robust, theta0, case.sigma2, ball),
            "risk_plain": linear.adversarial_risk(plain, theta0, case.sigma2, ball),
            "train": [one.objective for one in found],
            "fitted": fitted,
            "gap": [one.relative_gap for one in found],
        }
    ).with_columns(
        v2=model.v2, limit=limit.risk, limit_plain=simple.risk, limit_train=limit.training_risk,
        limit_fitted=limit.fitted,
    )  # fmt: skip


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(law="gaussian").rename({"radius": "eps"})
    curve = pl.DataFrame([_limits(c, eps) for eps in RADII for c in np.geomspace(0.2, 8, 25)])
    plain = curve.filter((pl.col("ratio") < 0.92) | (pl.col("ratio") > 1.08))
    peak = plain.drop("risk").rename({"risk_plain": "risk"})
    sides = pl.concat([peak.filter(pl.col("ratio") < 1), peak.filter(pl.col("ratio") > 1)])
    x = {"x_title": "d / n", "log_x": True}
    return panels(
        [
            points(rows, "ratio", "risk", "eps", theory=curve.select("ratio", "eps", "risk"),
                   title="Robust estimate", y_title="adversarial risk", **x),
            points(rows.drop("risk").rename({"risk_plain": "risk"}), "ratio", "risk", "eps",
                   theory=sides.select("ratio", "eps", "risk"),
                   title="Least squares, interpolator", y_title="adversarial risk", **x),
            points(rows, "ratio", "fitted", "eps", theory=curve.select("ratio", "eps", "fitted"),
                   title="Samples fitted exactly", y_title="share", **x),
        ]
    )  # fmt: skip


def _limits(ratio: float, eps: float) -> dict:
    law = (float(ratio), float(np.sqrt(SIGNAL2)), 1.0, eps)
    limit, plain = theory.proportional_limit(*law), theory.min_norm_limit(*law)
    return {"ratio": float(ratio), "eps": eps, "risk": limit.risk, "risk_plain": plain.risk,
            "fitted": limit.fitted}  # fmt: skip


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
    other, rows = rows.filter(law="uniform"), rows.filter(law="gaussian")
    near = rows.filter(pl.col("ratio").is_in([0.8, 1.25]), radius=RADII[-1])
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
    ]  # fmt: skip


def _fits(rows: pl.DataFrame) -> np.ndarray:
    weak = rows.filter(pl.col("ratio") >= 2, radius=RADII[0])
    strong = rows.filter(pl.col("ratio") <= 2, radius=RADII[-1])
    all_fit = weak.group_by("seed").agg((pl.col("fitted") == 1).all()).sort("seed")["fitted"]
    none_fit = strong.group_by("seed").agg((pl.col("fitted") < 1).all()).sort("seed")["fitted"]
    return (all_fit & none_fit).to_numpy()
