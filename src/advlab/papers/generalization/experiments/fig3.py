"""High dimension: adversarial training interpolates and learns nothing (Theorem 5, Figure 3).

n = 20, d = 1000, theta0 ten ones, sigma2 = 1, eps = 0, 0.01, 0.1, xi = 0.5, eta = 0.001, zero
start, 100 replicates. The three training curves overlap and go to zero; the test risk goes to about
v^2 = 11, the risk of the zero model. The limit is the min-norm interpolator (Lemma 1).
"""

import altair as alt
import polars as pl

from .... import lab, linear
from ....report import Claims, Verdict
from ._parts import high_dimension_runs
from ._parts.high_dimension_runs import Case as Case
from ._parts.high_dimension_runs import compute as _compute

ABOUT = lab.About(
    paper="generalization",
    item="Figure 3",
    title="High dimension: training interpolates, test risk is that of the zero model",
    seconds={"smoke": 2, "laptop": 8, "paper": 8},
    looks=1,
    claims={
        "10a": "adversarial training interpolates at d = 1000, xi = 0.5: "
        "its training loss vanishes",
        "10b": "and the adversarial test risk is that of the zero model at d = 1000, xi = 0.5",
        "11a": "|theta(y)|^2 has the expectation that Lemma 1 gives",
        "11b": "the standard risk of theta(y) has the expectation of Lemma 1",
        "13a": "the stopping time T of Theorem 5 is finite for every seed",
        "13b": "the residual |X theta - y| falls at every step up to T",
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return high_dimension_runs.cases(scale, seeds, [(1000, 0.5)])


def compute(case: Case) -> pl.DataFrame:
    return _compute(case)


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    return high_dimension_runs.panels(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    one = table.filter(step=0, eps=0.0).sort("seed")
    data = Case(d=1000, xi=0.5, eps=0.0).data
    expected = linear.minnorm_expectations(data.n, data.theta0_vector(), data.sigma2)
    moments = {
        "11a": ("interpolator_norm2", expected.norm2, "|theta(y)|^2"),
        "11b": ("interpolator_risk", expected.standard_risk, "standard risk of theta(y)"),
    }
    claims = Claims(ABOUT.claims)
    return [
        *high_dimension_runs.interpolation_verdicts(claims, table),
        *(
            claims.within(
                label,
                _standard_errors(one[column], value),
                -3.0,
                3.0,
                what=f"distance of the mean of {what} from {value:.4f} in standard errors",
            )
            for label, (column, value, what) in moments.items()
        ),
        *high_dimension_runs.stopping_verdicts(claims, table),
    ]


def _standard_errors(values: pl.Series, expected: float) -> float:
    found = values.to_numpy()
    return float((found.mean() - expected) / (found.std(ddof=1) / len(found) ** 0.5))
