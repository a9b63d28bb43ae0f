"""Tables of `benign/lemmas` and `benign/theory_regime` in which their claims hold."""

import math
from functools import cache

import numpy as np
import polars as pl
from nulls import Null, Specimen

from advlab.papers.benign.experiments import theory_regime
from advlab.papers.benign.experiments._parts.lemmas_runs import SHAPES

SEEDS = 40
CASE = {"n": 20, "d": 3000, "mu_norm": 10.0, "beta": 0.1, "width": 50, "alpha": 1.0, "ratio": 1.0,
        "tests": 2000}  # fmt: skip
ROW = {
    "training error": 0.0,
    "noisy training error": 0.0,
    "loss ratio": 2.0,
    "relative step": 0.01,
    "clean signal low": 0.8,
    "clean signal high": 1.1,
    "noisy signal low": -1.1,
    "noisy signal high": -0.9,
    "lost pairs": 0.0,
    "activation gain": 0.0,
    "active of examples": 0.05,
    "active of neurons": 0.2,
    "move": 4.0,
}
NOT_READ_AT_0 = {"loss ratio": 15.0, "relative step": -1.0, "clean signal low": -1.0,
                 "clean signal high": 5.0, "noisy signal low": -5.0, "lost pairs": 3.0}  # fmt: skip
"""Of the start no rule reads these: their range is what coin flips are drawn from."""
NOT_READ_LATE = {"activation gain": -2.0, "active of examples": 0.0, "move": 0.01}
COIN = ("clean error", "robust error", "training error", "noisy training error")
LAST = {"clean error": 0.1, "robust error": 0.1, "certificate": 0.3, "certified": True}
SETTINGS = [
    {"kind": "main", "steps": 1000, "q": 5.5},
    *({"kind": "radius", "d": 8000, "alpha": alpha, "q": 3.7} for alpha in (1.0, 5.0, 10.0)),
    *({"kind": "dimension", "d": d, "q": 4.0} for d in (1000, 2000, 4000)),
    *({"kind": "start", "ratio": ratio, "q": 5.5} for ratio in (0.1, 1.0, 10.0, 100.0)),
    {"kind": "beyond", "alpha": 10.0, "q": 5.5, "steps": 300},
]


def rows_of(case: dict, seed: int, wobble: float) -> list[dict]:
    far = case["alpha"] == 10
    measured = {
        "span distance": min(0.005 * case["ratio"], 0.9) * (1 + wobble),
        "attack cosine": 0.95 - 0.005 * case["ratio"] + wobble,
        "normalised margin": 0.3 * 100 * math.sqrt(20 / case["d"]),
        "cosine": 0.9995 - 0.01 * (case["alpha"] - 1) + wobble
        if case["kind"] == "radius"
        else None,
    }
    end = LAST | {"q": case["q"], "robust error": 1.0 if far else 0.1, "certified": not far}
    steps = [0, 1, 10, 100, 300, 600, case["steps"]]

    def unread(step: int) -> dict:
        if step > 1:
            return NOT_READ_LATE
        return {} if step else {**NOT_READ_AT_0, "span distance": 50.0, "normalised margin": 0.0}

    return [
        case | ROW | measured | {"seed": seed, "step": step} | unread(step)
        | {"L_rob": 2 * (1 + wobble) / max(step, 2)}
        | (end if step == case["steps"] else dict.fromkeys(end))
        for step in sorted({step for step in steps if step <= case["steps"]})
    ]  # fmt: skip


@cache
def true_rows() -> list[dict]:
    noise, rows = np.random.default_rng(0), []
    for shape in SHAPES:
        for setting in SETTINGS:
            case = {"steps": 300, "activation": shape} | CASE | setting
            for seed in range(SEEDS):
                rows += rows_of(case, seed, 1e-3 * noise.standard_normal())
    return rows


def lemmas_table(where=lambda row: False, **what) -> pl.DataFrame:
    """A table in which every claim is true; rows of `where` get `what` instead."""
    changed = [row | what if where(row) else row for row in true_rows()]
    return pl.DataFrame(changed, infer_schema_length=None)


def lemmas() -> Specimen:
    table = lemmas_table()
    measured = (*ROW, "span distance", "attack cosine", "normalised margin", "cosine", "L_rob",
                *(name for name in LAST if name != "certified"))  # fmt: skip
    root = pl.col("span distance") * pl.col("ratio") ** -0.5
    slow = 2 * pl.col("step").cast(pl.Float64).clip(lower_bound=2) ** -0.4
    late = pl.when(pl.col("step") > 300).then(3.0).otherwise(pl.col("loss ratio"))
    return Specimen(
        table=table,
        measured=measured,
        chance=dict.fromkeys(COIN, 0.5),
        controls={
            "a distance like the root of omega": Null(
                table.with_columns(root.alias("span distance")), ("9b",)
            ),
            "a loss like t^-0.4": Null(table.with_columns(L_rob=slow), ("15", "2a", "21")),
            "harmful overfitting": Null(
                table.with_columns(pl.col("clean error") + 0.02), ("4", "5b", "21")
            ),
            "errors below the noise rate": Null(
                table.with_columns(pl.col("clean error") - 0.02, pl.col("robust error") - 0.04),
                ("5b", "6a", "6b"),
            ),
            "loss gradients that drift apart": Null(
                table.with_columns(late.alias("loss ratio")), ("8a",)
            ),
            "no effect of the radius": Null(table.with_columns(cosine=pl.lit(0.98)),
                                            ("16a", "16b")),
        },
    )  # fmt: skip


REGIME_BAD = {"good": False, "training error": 0.1, "span distance": 1e9, "clean signal low": -1.0,
              "clean signal high": 9.0, "noisy signal low": -9.0, "noisy signal high": 1.0,
              "lost pairs": 5.0, "relative step": -1.0, "normalised margin": 0.0, "active": 0.0,
              "activation gain": -3, "move": 0.0, "cosine": 0.1, "L_rob": 2.0,
              "largest loss ratio of steps": 2.0, "noisy training error": 1.0,
              "clean error": 0.5, "robust error": 0.5}  # fmt: skip
REGIME_GOOD = {"good": True, "training error": 0.0, "span distance": 0.0, "clean signal low": 0.9,
               "clean signal high": 1.1, "noisy signal low": -1.1, "noisy signal high": -0.9,
               "lost pairs": 0.0, "relative step": 0.01, "normalised margin": 5.0, "active": 0.1,
               "activation gain": 0, "move": 1e6, "cosine": 0.999, "L_rob": 0.005,
               "largest loss ratio of steps": 0.9, "noisy training error": 0.0,
               "clean error": 0.1, "robust error": 0.1}  # fmt: skip


def regime_table(C: float = 0.0, **what) -> pl.DataFrame:
    """The runs of the laptop recipe: bad at C = 0.03, good elsewhere, `what` from C on."""
    rows = []
    for case in theory_regime.recipe("laptop"):
        setting = case.model_dump(exclude={"seed", "replicates"})
        found = REGIME_BAD if case.C < 0.1 else REGIME_GOOD
        changed = what if what and case.C >= C else {}
        row = {**setting, "eta": case.eta, "omega": case.omega, "step": case.steps}
        rows += [{**row, **found, **changed, "seed": seed} for seed in case.seeds]
    return pl.DataFrame(rows, infer_schema_length=None)


def regime() -> Specimen:
    return Specimen(
        table=regime_table(),
        measured=tuple(REGIME_GOOD),
        controls={
            "errors at the first step": Null(regime_table(10, **{"training error": 0.05}),
                                             ("1", "21")),
            "few active": Null(regime_table(10, active=0.04), ("13a",)),
            "lost pairs": Null(regime_table(10, **{"lost pairs": 1.0}), ("13c",)),
            "another path": Null(regime_table(10, cosine=0.98), ("16a", "16c")),
            "bad draws": Null(regime_table(10, good=False), ("good",)),
            "harmful overfitting": Null(regime_table(10, **{"clean error": 0.15}), ("21",)),
        },
    )  # fmt: skip
