"""Rows of a table as the samples that `decide` judges: by setting, by level, at the end."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from .rules import sample


def ends(table: pl.DataFrame) -> pl.DataFrame:
    """The last step of each run."""
    return table.filter(pl.col("step") == pl.col("steps"))


def groups(table: pl.DataFrame, value: str, *by: str) -> dict[str, Any]:
    """One value per replicate for each setting of the columns `by`."""
    parts = table.partition_by(*by, as_dict=True, maintain_order=True)
    return {_named(by, levels): sample(rows, value) for levels, rows in parts.items()}


def changes(table: pl.DataFrame, x: str, value: str, *by: str) -> dict[str, Any]:
    """The change of a value from each level of x to the next, within each replicate and group."""
    change = (pl.col(f"{value} after") - pl.col(value)).alias("change")
    found = {}
    for levels, rows in table.partition_by(*by, as_dict=True, maintain_order=True).items():
        for first, second in pairwise(rows[x].unique().sort()):
            before, after = (rows.filter(pl.col(x) == level) for level in (first, second))
            pairs = before.join(after, on="seed", suffix=" after").select("seed", change)
            name = f"{_named(by, levels)}, {x} from {first} to {second}"
            found[name] = sample(pairs, "change")
    return found


def slopes(table: pl.DataFrame, x: str, y: str) -> list[float]:
    """Of each replicate, in their order, the least-squares slope of log y against log x."""
    return [
        float(np.polyfit(np.log(rows[x].to_numpy()), np.log(rows[y].to_numpy()), 1)[0])
        for _, rows in sorted(table.partition_by("seed", as_dict=True).items())
    ]


def _named(by: Sequence[str], levels: Sequence[object]) -> str:
    return ", ".join(f"{name} {level}" for name, level in zip(by, levels, strict=True))
