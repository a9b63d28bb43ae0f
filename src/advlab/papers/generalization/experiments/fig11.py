"""Higher dimension without surrogate (Figure 11, Appendix A.4.1).

As Figure 9 with d = 5000 and eta = 0.0002. Together with the runs of Figures 9 and 10 it decides
how the gradient difference depends on xi, on d and on eps (eq. 13: in proportion to eps).
"""

import altair as alt
import numpy as np
import polars as pl

from .... import lab
from ....report import Claims, Verdict, empirical
from ._parts import high_dimension_runs
from ._parts.high_dimension_runs import Case as Case
from ._parts.high_dimension_runs import compute as _compute

ABOUT = lab.About(
    paper="generalization",
    item="Figure 11",
    title="d = 5000, xi = 0: the gradient difference against xi, d and eps",
    seconds={"smoke": 4, "laptop": 12, "paper": 60},
    looks=1,
    claims={
        "10a": empirical(
            "adversarial training interpolates at d = 5000, xi = 0.0: its training loss ends below "
            "1 % of v^2"
        ),
        "10b": empirical(
            "and the adversarial test risk is that of the zero model at d = 5000, xi = 0.0, up to "
            "5 % of v^2"
        ),
        "12a": empirical("the gradient difference is smaller with xi = 0.5 at d = 5000"),
        "12b": empirical("it is smaller at d = 5000 than at d = 1000 for xi = 0"),
        "12c": empirical("it grows like eps to a power within 0.1 of 1"),
    },
)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return high_dimension_runs.cases(scale, seeds, [(5000, 0.0), (5000, 0.5), (1000, 0.0)])


def compute(case: Case) -> pl.DataFrame:
    return _compute(case)


def figure(table: pl.DataFrame) -> alt.ConcatChart:
    return high_dimension_runs.panels(table.filter(d=5000, xi=0.0))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, wide, plain = Claims(ABOUT.claims), table.filter(d=5000), table.filter(xi=0.0)
    return [
        *high_dimension_runs.interpolation_verdicts(claims, wide.filter(xi=0.0)),
        high_dimension_runs.smaller_gap(claims, "12a", wide, "xi", 0.5, 0.0),
        high_dimension_runs.smaller_gap(claims, "12b", plain, "d", 5000, 1000),
        claims.equal(
            "12c",
            _exponents(table),
            1.0,
            0.1,
            what="log10 of the gap at eps = 0.1 over that at 0.01",
        ),
    ]


def _exponents(table: pl.DataFrame) -> dict[str, np.ndarray]:
    found = {}
    runs = high_dimension_runs.moving(table)
    for (d, xi), part in runs.group_by("d", "xi", maintain_order=True):
        small, large = (part.filter(eps=eps) for eps in (0.01, 0.1))
        both = large.join(small, on="seed", suffix="_small").sort("seed")
        ratio = both["largest_gap"] / both["largest_gap_small"]
        found[f"d = {d}, xi = {xi}"] = np.log10(ratio.to_numpy())
    return found
