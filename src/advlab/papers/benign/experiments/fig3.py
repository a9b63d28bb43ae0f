"""Figure 3: in higher dimension the same robust accuracy needs a smaller attack.

Robust accuracy over dimension d from 500 to 6K and ratio alpha/||mu|| from 0.05 to 0.45, at
||mu|| = 5 (Appendix A). The paper: larger d needs a smaller ratio for equal robust accuracy. Lines:
the measured contour at accuracy 0.8, and that of the averaging classifier.

At laptop scale training stops after 200 of 1000 steps, with six seeds and a coarser grid. A seed
has the same labels and flips at every d.
"""

import numpy as np
import polars as pl
from scipy.optimize import root_scalar

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, theorem
from ....report.charts import AnyChart, heat
from ..theory import averaging_accuracy
from ._parts.contours import LEVEL, crossings, first_colour, ranks
from ._parts.synthetic_claims import (
    STANDS,
    checked,
    fits_robustly,
    is_not_beaten,
    reached,
    with_note,
)
from ._parts.synthetic_runs import Case as Case
from ._parts.synthetic_runs import mixture

ABOUT = lab.About(
    paper="benign",
    item="Figure 3",
    title="Larger dimension, smaller attack for the same robust accuracy",
    seconds={"smoke": 5, "laptop": 430, "paper": 11000},
    looks=2,
    reduced={"laptop": "200 of 1000 steps, 6 of 10 seeds, a coarser grid"},
    claims={
        "18": empirical(
            "Along the contours of robust accuracy 0.6, 0.7 and 0.8 the ratio falls as d rises: "
            "rank correlations below -0.8"
        ),
        "5E": empirical("Every network fits all its training points robustly, flipped or not"),
        "6E": theorem(STANDS),
    },
)
NAME = "benign/fig3 decisive"
MU, BETA = 5.0, 0.1
LEVELS = (0.6, 0.7, 0.8)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    dims, ratios, usual, settings = {
        "smoke": ((50, 100, 200), (0.1, 0.3, 0.45), 3, _SMOKE),
        "laptop": ((500, 1000, 2000, 3000, 4500, 6000), _LAPTOP, 6, {"steps": 200}),
        "paper": (range(500, 6001, 500), _RATIOS, 10, {}),
    }[scale]
    return checked(
        [
            Case(mu_norm=MU, d=d, ratio=ratio, beta=BETA, **settings, **block)
            for block in lab.blocks(seeds or usual, 3 if scale == "smoke" else 1)
            for d in dims
            for ratio in ratios
        ]
    )


_RATIOS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
_LAPTOP = (0.05, 0.1, 0.2, 0.3, 0.45)
_SMOKE = {"n": 20, "width": 20, "steps": 20, "tested": 100}


def compute(case: Case) -> pl.DataFrame:
    return mixture(case, NAME)


def figure(table: pl.DataFrame) -> AnyChart:
    shown = _accuracy(table)
    return heat(
        shown,
        "d",
        "ratio",
        "accuracy",
        domain=(first_colour(shown, "d", "ratio", "accuracy"), 1 - BETA),
        lines=_lines(table),
        title=f"Robust accuracy under PGD (upper bound), ||mu|| = {MU:g}",
        y_title="alpha/||mu||",
        log_x=True,
    )


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return reached(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, shown = Claims(ABOUT.claims), _accuracy(table)
    correlations = {
        f"accuracy {level:g}": ranks(shown, "ratio", "d", "accuracy", level) for level in LEVELS
    }
    what = "Spearman correlation of d and the ratio on the contour"
    return with_note(
        [
            claims.below("18", correlations, -0.8, what=what),
            fits_robustly(claims, "5E", table),
            is_not_beaten(claims, "6E", table),
        ]
    )


def _accuracy(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(accuracy=1 - pl.col("robust_error"))


def _lines(table: pl.DataFrame) -> pl.DataFrame:
    mean = _accuracy(table).group_by("d", "ratio").agg(pl.col("accuracy").mean())
    measured = crossings(mean.with_columns(seed=0), "ratio", "d", "accuracy").sort("d")
    levels, n = table["d"].to_numpy(), table["n"][0]
    dims = np.geomspace(levels.min(), levels.max(), 100)
    averaging = [_averaging_ratio(n, d) for d in dims]
    parts = {
        "measured": (measured["d"].cast(float).to_numpy(), measured["ratio"].to_numpy()),
        "averaging classifier": (dims, np.array(averaging)),
    }
    return pl.concat(
        pl.DataFrame({"d": x, "ratio": y, "line": [f"{name}, at {LEVEL:g}"] * len(x)})
        for name, (x, y) in parts.items()
    )


def _averaging_ratio(n: int, d: float) -> float:
    """The ratio at which the averaging classifier's robust accuracy is LEVEL."""

    def lead(ratio: float) -> float:
        return float(averaging_accuracy(n, d, MU, ratio * MU, BETA).robust_accuracy) - LEVEL

    return root_scalar(lead, bracket=(0.0, 2.0)).root if lead(0.0) > 0 else float("nan")
