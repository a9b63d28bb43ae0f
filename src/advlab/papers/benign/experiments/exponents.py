r"""Figure 1's exponents beside each other: by training steps, accuracy level and trained layers.

The paper reads $d \sim \|\mu\|^4$ and $d \sim \|\mu\|^2$ off its heat maps and does not say at
which accuracy, nor which layers it trains. An exponent fitted to a contour (`fig1`) depends on all
three: on how long training goes on, on the level of the contour, and on whether both layers with
their biases are trained or the first one alone. Here one run gives all steps and levels, with and
without the second layer, on the same data.

At laptop scale the width is 500 of 1000, steps are 50, 200 and 500 (the paper: 1000), and the grid
follows the contour: four d, and five ||mu|| from 0.7 to 1.9 times 2.9 (d/1000)^(1/4) for each.
"""

from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import model_validator

from .... import lab
from ....report import Assumption, Claims, Verdict, ours
from ....report.charts import AnyChart, panels, points
from ._parts import synthetic_runs
from ._parts.contours import NEAR, crossings, exponents
from ._parts.synthetic_claims import check_sizes, reached, with_note
from ._parts.synthetic_runs import RELU, mixture

ABOUT = lab.About(
    paper="benign",
    item="Figure 1",
    title="The exponents of Figure 1 by steps, level and trained layers",
    seconds={"smoke": 5, "laptop": 470, "paper": 24000},
    looks=1,
    reduced={"laptop": "width 500 of 1000, at most 500 of 1000 steps, 6 seeds, four d"},
    claims={
        "clean_steps": ours(
            "At accuracy 0.8 the clean exponent is larger at the last step than at the first one "
            "measured, whichever layers are trained"
        ),
        "robust_steps": ours("and so is the robust exponent"),
        "clean_layers": ours(
            "At accuracy 0.8 the clean exponent is larger with the first layer alone trained than "
            "with both, at every number of steps"
        ),
        "robust_layers": ours("and so is the robust exponent"),
        "robust_square": ours(
            "The robust exponent is above 2.5 at every number of steps, level and choice of layers"
        ),
        "clean_fourth": ours(
            "At accuracy 0.8 the clean exponent is within 0.5 of 4 at every number of steps and "
            "choice of layers"
        ),
    },
)
NAME = "benign/exponents"
RATIO, BETA = 0.1, 0.1
LEVELS = (0.75, 0.8, 0.85)
MIDDLE = 0.8
FACTORS = (0.7, 0.9, 1.15, 1.45, 1.9)
KINDS = {"clean": "clean_error", "robust": "robust_error"}
Layers = Literal["both", "first"]
LAYERS: dict[Layers, dict[str, Any]] = {
    "both": RELU,
    "first": {"activation": "relu", "init": "torch"},
}


class Case(synthetic_runs.Case):
    """A run of Figure 1 with both layers and biases trained, or with the first layer's weights."""

    layers: Layers = "both"

    @model_validator(mode="after")
    def _sizes(self) -> "Case":
        check_sizes(self.n, self.d, self.ratio)
        return self


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    dims, times, usual, settings = {
        "smoke": ((50, 100, 200), (10, 20), 3, {"n": 20, "width": 20, "tested": 100}),
        "laptop": ((1000, 3000, 8000, 18000), (50, 200, 500), 6, {"width": 500}),
        "paper": ((1000, 2000, 4000, 8000, 18000), (50, 200, 500, 1000), 10, {}),
    }[scale]
    fixed = {"ratio": RATIO, "beta": BETA, "steps": times[-1], "measured_at": times[:-1]}
    return [
        Case(mu_norm=_length(factor, d), d=d, layers=layers, **fixed, **settings, **some)
        for some in lab.blocks(seeds or usual, 3 if scale == "smoke" else 1)
        for layers in LAYERS
        for d in dims
        for factor in FACTORS
    ]


def _length(factor: float, d: int) -> float:
    return round(factor * 2.9 * (d / 1000) ** 0.25, 3)


def compute(case: Case) -> pl.DataFrame:
    return mixture(case, NAME, LAYERS[case.layers])


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return reached(table)


def powers(table: pl.DataFrame) -> pl.DataFrame:
    """Rows (layers, step, kind, level, seed, exponent)."""
    rows = []
    for (layers, step), part in table.partition_by("layers", "step", as_dict=True).items():
        shown = part.with_columns((1 - pl.col(one)).alias(one) for one in KINDS.values())
        for kind, error in KINDS.items():
            for level in LEVELS:
                found = exponents(crossings(shown, "mu_norm", "d", error, level), "mu_norm", "d")
                rows += [
                    {"layers": layers, "step": step, "kind": kind, "level": level}
                    | {"seed": seed, "exponent": found.get(seed, float("nan"))}
                    for seed in sorted(part["seed"].unique())
                ]
    return pl.DataFrame(rows).sort("layers", "kind", "level", "step", "seed")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, found = Claims(ABOUT.claims), powers(table)
    middle = found.filter(pl.col("level") == MIDDLE)
    steps = sorted(found["step"].unique())
    return with_note(
        [
            claims.above(
                f"{kind}_steps",
                {
                    f"{layers} trained": _values(middle, kind, layers, steps[-1])
                    - _values(middle, kind, layers, steps[0])
                    for layers in LAYERS
                },
                0,
                what=f"{kind} exponent at the last step less that at the first",
            )
            for kind in KINDS
        ]
        + [
            claims.above(
                f"{kind}_layers",
                {
                    f"{step} steps": _values(middle, kind, "first", step)
                    - _values(middle, kind, "both", step)
                    for step in steps
                },
                0,
                what=f"{kind} exponent of the first layer alone less that of both",
            )
            for kind in KINDS
        ]
        + [
            claims.above("robust_square", _cells(found, "robust"), 2 + NEAR, what="exponent"),
            claims.equal("clean_fourth", _cells(middle, "clean"), 4, NEAR, what="exponent"),
        ]
    )


def _values(rows: pl.DataFrame, kind: str, layers: str, step: int) -> pl.Series:
    return rows.filter(kind=kind, layers=layers, step=step).sort("seed")["exponent"]


def _cells(rows: pl.DataFrame, kind: str) -> dict[str, pl.Series]:
    parts = rows.filter(kind=kind).partition_by("layers", "step", "level", as_dict=True)
    return {
        f"{layers} trained, {step} steps, accuracy {level:g}": one.sort("seed")["exponent"]
        for (layers, step, level), one in parts.items()
    }


def figure(table: pl.DataFrame) -> AnyChart:
    names = {"both": "both layers", "first": "first layer"}
    found = powers(table).with_columns(
        pl.col("exponent").fill_nan(None), trained=pl.col("layers").replace_strict(names)
    )
    charts = [
        points(
            found.filter(pl.col("kind") == kind, pl.col("level") == level),
            "step",
            "exponent",
            "trained",
            title=f"{kind.capitalize()}, accuracy {level:g}",
            x_title="training steps",
            y_title="p of d ~ ||mu||^p",
            log_x=True,
            band="standard error",
            theory=pl.DataFrame({"exponent": [paper]}),
            y_domain=_ends(found.filter(pl.col("kind") == kind), paper),
        )
        for kind, paper in (("clean", 4.0), ("robust", 2.0))
        for level in LEVELS
    ]
    return panels(charts, title=f"alpha = {RATIO} ||mu||, beta = {BETA}", columns=3)


def _ends(found: pl.DataFrame, paper: float) -> tuple[float, float]:
    """One axis for all levels of a kind of error: the fifths around their bars and the paper's."""
    mean = pl.col("exponent").mean()
    error = pl.col("exponent").std().fill_null(0.0) / pl.len().sqrt()
    bars = found.drop_nulls("exponent").group_by("level", "step", "trained").agg(
        low=mean - error, high=mean + error
    )  # fmt: skip
    values = np.r_[paper - 0.1, paper + 0.1, bars["low"].to_numpy(), bars["high"].to_numpy()]
    return float(np.floor(5 * values.min()) / 5), float(np.ceil(5 * values.max()) / 5)
