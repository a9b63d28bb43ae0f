"""Synthetic tables in few lines: settings crossed, values that wobble, rows that change."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import polars as pl


def cross(**levels: Iterable[Any]) -> pl.DataFrame:
    """One row for each combination of the levels, the last one fastest."""
    return pl.DataFrame(list(product(*levels.values())), schema=list(levels), orient="row")


def wobble(rows: pl.DataFrame, size: float, seed: int = 0) -> pl.Series:
    """1 plus noise of this size, one value per row."""
    return pl.Series(1 + size * np.random.default_rng(seed).normal(size=len(rows)))


def when(rows: pl.DataFrame, where: pl.Expr, **values: Any) -> pl.DataFrame:
    """The table with other values in the rows that a condition picks."""
    return rows.with_columns(
        pl.when(where).then(value).otherwise(name).alias(name) for name, value in values.items()
    )
