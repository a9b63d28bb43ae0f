"""Specimen of cgro: linear regions of trained networks."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

from advlab.papers.cgro import theory
from advlab.papers.cgro.experiments import linear_regions


def region_table() -> pl.DataFrame:
    """Twenty seeds: a tenth of the cells inside the cube, more cells and pieces after PGD."""
    sizes = pl.DataFrame({"d": [3, 5], "n": [6, 10]})
    cells = [theory.most_cells(n, d) for d, n in sizes.iter_rows()]
    rows = cross(kind=linear_regions.KINDS, seed=range(20))
    rows = rows.join(
        sizes.with_columns(cells=pl.Series(cells), signs=2 ** pl.col("n")), how="cross"
    )
    j = wobble(rows, 0.05)
    pieces = pl.when(pl.col("kind") == "adversarial").then(0.06).otherwise(0.02)
    share = pl.when(pl.col("kind") == "adversarial").then(0.2).otherwise(0.1)
    whole = pl.when(pl.col("kind") == "start").then("cells").otherwise(None)
    rows = rows.with_columns(
        regions=(share * pl.col("cells") * pl.lit(j)).round(),
        pieces=(pieces * pl.col("cells") * pl.lit(j)).round(),
        everywhere=whole,
    )
    deep = pl.col("kind").str.starts_with("deep")
    return rows.with_columns(
        shown="regions", affine=pl.col("regions") - pl.when(deep).then(1).otherwise(0)
    )


def regions() -> Specimen:
    table, one = region_table(), (pl.col("seed") == 3) & (pl.col("n") == 10)
    every, robust = pl.lit(True), pl.col("kind") == "adversarial"
    return Specimen(
        table=table,
        measured=("regions", "pieces", "everywhere", "shown", "affine"),
        chance={"regions": 1024.0, "affine": 1024.0},  # every pattern of signs
        controls={
            "one network of more functions than signs": Null(
                when(table, one, affine=1025.0), ("D.5",)),
            "every sign": Null(when(table, every, regions=pl.col("signs") * 1.0),
                               ("count", "cells", "more")),
            "clean training twice": Null(
                when(table, robust, pieces=0.02 * pl.col("cells"),
                     regions=(0.1 * pl.col("cells")).round()), ("pieces", "more")),
            "as many after clean training": Null(
                when(table, pl.col("kind") == "clean", regions=0.2 * pl.col("cells")), ("more",)),
        },
        bugs={
            "linear programmes that always find a point": Null(
                when(table, one, regions=pl.col("signs") * 1.0), ("count",)),
            "a region is missed": Null(when(table, one, regions=pl.col("regions") - 1), ("count",)),
            "a cell is missed": Null(
                when(table, one & (pl.col("kind") == "start"), everywhere=pl.col("cells") - 1),
                ("Zaslavsky",)),
        },
    )  # fmt: skip


REGIONS: dict[str, Callable[[], Specimen]] = {"cgro/linear_regions": regions}
