"""Specimens of cgro: networks trained on the points of Theorem 5.3, and what they are held to."""

from collections.abc import Callable

import numpy as np
import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

from advlab.papers.cgro.experiments import trained_lower_bound

MEASURED = ("clean fresh", "robust train", "robust fresh", "agree attacked train",
            "agree attacked fresh", "distance balls fresh", "spread", "radius")  # fmt: skip
EXPLICIT = (0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, None)
NETWORKS = {
    "f_S": EXPLICIT,
    "adversarial": (0.03, 0.0, 0.65, 1.0, 0.9, 0.02, 0.65, 0.7),
    "clean": (0.0, 0.5, 0.75, 0.6, 0.6, 0.05, 1.1, 0.9),
    "robust": (0.0, 0.0, 0.0, 1.0, 0.0, 0.03, 1.0, 0.6),
    "start": (0.5, 0.65, 0.65, 0.5, 0.5, 0.3, 1.0, 0.9),
}


def explicit_radius(d: int) -> float:
    """Where the soft indicator of f_S is one half, in the slice; spacings are 1 and 1/2."""
    delta, height, spacing = {8: (0.3, 0.28, 1.0), 5: (0.245, 0.22, 0.5)}[d]
    return float(np.sqrt((delta**2 + (spacing - delta) ** 2) / 2 - height**2))


def networks_table() -> pl.DataFrame:
    """Ten seeds of two settings."""
    parts = []
    for name, found in NETWORKS.items():
        for d, delta, height in ((8, 0.3, 0.28), (5, 0.245, 0.22)):
            rows = cross(length=[0.0], seed=range(10))
            level = dict(zip(MEASURED, found, strict=True))
            if name == "f_S":
                level["radius"] = explicit_radius(d)
            rows = rows.with_columns(
                pl.Series(key, (value or 0.0) * wobble(rows, 0.01, k))
                for k, (key, value) in enumerate(level.items())
            )
            parts.append(rows.with_columns(network=pl.lit(name), d=d, delta=delta, height=height))
    table = pl.concat(parts)
    exact = ~pl.col("network").is_in(["clean", "start"])
    return when(table, exact, **{"agree attacked train": 1.0})


def distance() -> Specimen:
    table, mine = networks_table(), pl.col("network") == "adversarial"
    keys = ["d", "seed", "length"]

    def instead(name: str) -> pl.DataFrame:
        """The measurements of another network in place of the adversarial one's."""
        other = table.filter(network=name).select(*keys, *MEASURED)
        kept = table.filter(mine).drop(MEASURED).join(other, on=keys)
        return pl.concat([table.filter(~mine), kept.select(table.columns)])

    linear = pl.col("network") == "f_S"
    return Specimen(
        table=table,
        measured=MEASURED,
        chance={"clean fresh": 0.5, "robust train": 0.5, "robust fresh": 0.5, "spread": 0.2,
                "agree attacked train": 0.5, "agree attacked fresh": 0.5, "radius": 0.15,
                "distance balls fresh": 0.1},
        controls={
            "clean training": Null(instead("clean"), ("train", "gap", "inside", "inside/c",
                                                      "outside", "distance", "local")),
            "no training": Null(instead("start"), ("clean", "train", "gap", "inside", "outside",
                                                   "distance", "local")),
            "training on all points": Null(instead("robust"), ("gap", "test", "outside",
                                                               "local")),
            "as far as networks were": Null(
                when(table, mine, **{"agree attacked fresh": 0.57, "distance balls fresh": 0.14}),
                ("outside", "distance")),
            "not enough units": Null(
                when(table, pl.col("network") == "robust", **{"robust fresh": 0.2}), ("size",)),
            "x_D is not learnt": Null(when(table, mine, **{"clean fresh": 0.3}), ("clean",)),
        },
        bugs={
            "balls of radius sep/2": Null(
                when(table, linear, radius=pl.col("radius") * 1.1), ("radius/S",)),
            "distances that are not squared": Null(
                when(table, linear, radius=pl.col("radius") * 0.9), ("radius/S",)),
        },
    )  # fmt: skip


def ladder_table(power: float = 1.0, start: float = 3.0) -> pl.DataFrame:
    """The robust error of all points falls through 0.1 at width start 2^(power (D - 5))."""
    parts = []
    for d, widths in trained_lower_bound.LADDER.items():
        rows = cross(part=["ladder"], d=[d], width=widths, seed=range(6))
        middle = start * 2 ** (power * (d - 5)) * wobble(rows, 0.02, d)
        error = (0.1 - 0.25 * (rows["width"] / middle).log() / np.log(2)).clip(0, 0.5)
        parts.append(rows.with_columns(pl.Series("robust train", error)))
    return pl.concat(parts).with_columns(
        pl.lit(None, pl.Float64).alias(name) for name in ("clean test", "robust test")
    )


def lower_bound_table(**ladder: float) -> pl.DataFrame:
    """Width 2D solves samples, and loses more of all points with each dimension."""
    rows = cross(part=["sample", "all"], d=[8, 9, 10], width=[0], seed=range(12))
    rows = rows.with_columns(width=2 * pl.col("d"))
    sample, j = pl.col("part") == "sample", wobble(rows, 0.02)
    table = rows.with_columns(
        pl.Series("j", j),
        **{"robust train": pl.when(sample).then(0.0).otherwise(0.1 * (pl.col("d") - 6)),
           "clean test": pl.when(sample).then(0.05), "robust test": pl.when(sample).then(0.7)},
    )  # fmt: skip
    kept = ("robust train", "clean test", "robust test")
    table = table.with_columns(pl.col(kept) * pl.col("j")).drop("j")
    ladder_rows = ladder_table(**ladder).select(table.columns)
    return pl.concat([table, ladder_rows])


def lower_bound() -> Specimen:
    table = lower_bound_table()
    sample, every = (pl.col("part") == part for part in ("sample", "all"))
    alike = table.with_columns(
        pl.when(sample).then(0.3).otherwise("robust train").alias("robust train")
    )
    return Specimen(
        table=table,
        measured=("robust train", "clean test", "robust test"),
        chance={"robust train": 0.5, "clean test": 0.5, "robust test": 0.5},
        controls={
            "a sample is as hard as all points": Null(alike, ("train", "gap")),
            "no training": Null(
                when(table, sample, **{"robust train": 0.65, "clean test": 0.5}),
                ("train", "clean", "gap")),
            "all points are as easy as a sample": Null(
                when(table, every, **{"robust train": 0.01}), ("all", "more")),
            "x_D is not learnt": Null(when(table, sample, **{"clean test": 0.4}), ("clean",)),
            "robust on unseen points": Null(
                when(table, sample, **{"robust test": 0.3}), ("gap", "test")),
            "the same at each D": Null(when(table, every, **{"robust train": 0.3}), ("more",)),
            "polynomial in D": Null(lower_bound_table(power=0.2, start=6.0), ("order", "points")),
            "n^0.4": Null(lower_bound_table(power=0.4, start=5.0), ("points",)),
            "no width is enough": Null(
                when(table, pl.col("part") == "ladder", **{"robust train": 0.4}),
                ("order", "points")),
        },
    )  # fmt: skip


NETWORKS_SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "cgro/distance_to_explicit": distance,
    "cgro/trained_lower_bound": lower_bound,
}
