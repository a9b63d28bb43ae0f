"""A table of `benign/appendix_bounds` in which its claims hold, and what must break them."""

import numpy as np
import polars as pl
from nulls import Null, Specimen

from advlab.papers.benign.experiments import appendix_bounds

SHARES = ("B.7 gradient", "B.7 loss", "B.8", "B.8 low", "B.15", "eq. 5", "B.12", "loss", "averaged",
          "B.16", "B.13", "rho", "B.31", "B.32", "B.33")  # fmt: skip
OTHERS = {
    "secant error": 1e-13, "secant low": 0.05, "secant high": 0.5, "B.24": -0.1, "kept": 0.48,
    "C2": 0.73, "C2 of B.12": 0.7, "c7": 1.0, "c8": 0.005, "margin": 0.4,
}  # fmt: skip
FOOTNOTE = ("first margin", "training error", "first error", "clean error")
MEASURED = (*SHARES, *OTHERS, *FOOTNOTE)


def table(c: float = 0.8, lost: float = 0.9, end: float = 0.1, **what) -> pl.DataFrame:
    """Runs whose margin at t = 1 is 0 at alpha = c ||mu|| if the data are moved, with an error of
    `lost` beyond and `end` at the end; `what` replaces columns."""
    rng, rows = np.random.default_rng(0), []
    for case in appendix_bounds.recipe("laptop"):
        setting = case.model_dump(exclude={"seed", "replicates"})
        setting |= {"eta": case.eta, "omega": case.omega, "good": True}
        ratio = case.alpha / case.mu_norm
        for seed in case.seeds:
            noise = 0.01 * rng.standard_normal()
            if case.kind == "lemmas":
                found = dict.fromkeys(SHARES, 0.3 + noise) | OTHERS
                found |= {"c7": 1.0 + noise, "C2": 0.73 + noise, "margin": 0.4 + noise}
            else:
                moved = case.first == "against mu"
                first = 0.45 * (1 - ratio / c if moved else 1) + 0.1 * noise
                found = {"first margin": first, "first error": 0.1 if first > 0 else lost}
                found |= {"training error": 0.0, "margin": 0.4}
                found |= {"clean error": end if moved else 0.1}
            rows.append({**setting, **found, "seed": seed})
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        **{name.replace("_", " "): value for name, value in what.items()}
    )


def broken(column: str, value: float) -> pl.DataFrame:
    """One run of the deciding ones has another value."""
    where = (
        (pl.col("kind") == "lemmas") & (pl.col("C") == 10) & (pl.col("seed") == 3)
        & (pl.col("activation") == "smoothed_leaky_relu")
    )  # fmt: skip
    return table().with_columns(pl.when(where).then(value).otherwise(column).alias(column))


def appendix() -> Specimen:
    above = {"B7": "B.7 loss", "B8": "B.8", "B15": "B.15", "B12": "B.12", "loss": "loss",
             "averaged": "averaged", "norm": "B.16", "B31": "B.31", "B32": "B.32",
             "B33": "B.33"}  # fmt: skip
    everywhere = [("C2", 1.5), ("C2", 0.3), ("c7", 0.3), ("c7", 4.0), ("c8", 0.05),
                  ("margin", 0.2), ("margin", 0.6)]  # fmt: skip
    true = table()
    late = (pl.col("kind") == "footnote") & (pl.col("seed") == 2)
    missed = true.with_columns(
        **{"training error": pl.when(late).then(0.1).otherwise("training error")}
    )
    return Specimen(
        table=true,
        measured=MEASURED,
        chance={"kept": 0.0, "C2": 3.0, "c7": 5.0, "c8": 1.0, "margin": 0.02, "first error": 0.5,
                "clean error": 0.5, "first margin": 0.0},
        controls={
            **{f"one run above the bound of {label}": Null(broken(column, 1.1), (label,))
               for label, column in above.items()},
            "eq. 5 broken": Null(broken("eq. 5", 1.1), ("B12",)),
            "gradients too short": Null(broken("B.8 low", 1.1), ("B8",)),
            "descent against V": Null(broken("B.15", -0.5), ("B15",)),
            "a margin below 0": Null(broken("B.33", -0.5), ("B33",)),
            "gradients too long": Null(broken("B.7 gradient", 1.1), ("B7",)),
            "a fresh margin that falls": Null(broken("B.13", 1.1), ("B13",)),
            "rho below gamma^2": Null(broken("rho", 1.2), ("B13",)),
            "a secant above 1": Null(broken("secant high", 1.1), ("B24",)),
            "a secant below 0": Null(broken("secant low", -0.1), ("B24",)),
            "an own secant below its floor": Null(broken("B.24", 0.01), ("B24",)),
            "no neuron that stays open": Null(broken("kept", 0.0), ("kept",)),
            "a fifth stays open in one run": Null(broken("kept", 0.2), ("kept",)),
            "one fresh point with a wrong neuron": Null(broken("B.31", -1e-9), ("B31",)),
            **{f"{name} of {value}": Null(true.with_columns(pl.lit(value).alias(name)), (name,))
               for name, value in everywhere},
            "half of the radius costs the signal": Null(table(c=0.4), ("footnote", "c")),
            "a training error": Null(missed, ("footnote",)),
            "the first step does not matter": Null(table(c=2.0), ("footnote_c", "c")),
            "errors of 0.3 beyond c": Null(table(lost=0.3), ("footnote_c",)),
            "c of 1": Null(table(c=1.0), ("c",)),
            "nothing is restored": Null(table(end=0.9), ("restored",)),
        },
        bugs={
            "secants of the wrong weights": Null(
                true.with_columns(**{"secant error": pl.lit(0.02)}), ("secants",)
            ),
        },
    )  # fmt: skip
