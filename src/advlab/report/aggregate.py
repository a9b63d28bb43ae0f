"""Tables made small before they are drawn: one row per mark, at most ROWS rows."""

from typing import Literal

import numpy as np
import polars as pl

from ..core.errors import AdvlabError

ROWS = 2000
POINTS = 150
"""Points of one curve: more cannot be told apart in a panel."""
DIGITS = 5
"""Significant digits: more would only make the page longer."""
Band = Literal["standard deviation", "standard error", "quartiles"]
"""What the band shows: so far around the mean, or the quartiles around the median."""


def means(
    table: pl.DataFrame,
    x: str,
    y: str,
    color: str | None = None,
    *,
    log_x: bool = False,
    log_y: bool = False,
    band: Band = "standard deviation",
) -> pl.DataFrame:
    """Rows (x, color, y, low, high, replicates): the mean of y and one standard deviation each way.

    With `band="standard error"` it is one standard error of the mean each way. With "quartiles" y
    is the median and the band goes from the lower to the upper quartile, which no log axis
    distorts: what is not positive there is left out. A mean that is not a number, or not positive
    on a log axis, is null and leaves a gap. A band ends where the quantity ends (`ends`).
    """
    rows = _thin(_picked(table, x, y, color), log_x)
    value = pl.col("y")
    if band == "quartiles":
        rows = rows.filter(value > 0) if log_y else rows
        low, high = (value.quantile(share, "linear") for share in (0.25, 0.75))
        middle = value.median()
    else:
        spread = value.std().fill_null(0.0)
        spread = spread / pl.len().sqrt() if band == "standard error" else spread
        low, middle, high = value.mean() - spread, value.mean(), value.mean() + spread
    rows = rows.group_by("x", "color", "rank").agg(
        y=middle, low=low, high=high, replicates=pl.len()
    )
    drawn = pl.col("y").is_finite() & ((pl.col("y") > 0) if log_y else True)
    if log_y:
        # A band that reaches zero is drawn down to a little below the smallest mean.
        floor = pl.col("y").filter(drawn).min() / 2
        rows = rows.with_columns(low=pl.max_horizontal("low", floor))
    least, most = ends(table[y])
    rows = rows.with_columns(pl.col("low").clip(least, None), pl.col("high").clip(None, most))
    seen = pl.col("y", "low", "high").round_sig_figs(DIGITS)
    return rows.with_columns(pl.when(drawn).then(seen)).sort("rank", "x").drop("rank")


def lines(
    table: pl.DataFrame, x: str, y: str, color: str | None = None, *, log_x: bool = False
) -> pl.DataFrame:
    """Rows (x, color, y) of a curve without replicates; x is null if there is no such column."""
    if x not in table.columns:
        return _picked(table.with_columns(pl.lit(None).alias(x)), x, y, color).drop("rank")
    return _thin(_picked(table, x, y, color), log_x).sort("rank", "x").drop("rank")


def five_numbers(table: pl.DataFrame, x: str, y: str, color: str | None = None) -> pl.DataFrame:
    """Rows (x, color, low, q1, y, q3, high, replicates): extremes, quartiles and the median y."""
    rows = _picked(table, x, y, color).filter(pl.col("y").is_finite())
    quantile = {
        name: pl.col("y").quantile(share, "linear")
        for name, share in {"low": 0, "q1": 0.25, "y": 0.5, "q3": 0.75, "high": 1}.items()
    }
    rows = rows.group_by("x", "color", "rank").agg(**quantile, replicates=pl.len())
    return rows.sort("rank", "x").drop("rank")


def cells(table: pl.DataFrame, x: str, y: str, value: str) -> pl.DataFrame:
    """Rows (x, y, value): the mean of value in each cell of a grid."""
    _columns(table, x, y, value)
    rows = table.group_by(pl.col(x).alias("x"), pl.col(y).alias("y")).agg(
        value=pl.col(value).cast(pl.Float64).mean()
    )
    drawn = pl.when(pl.col("value").is_finite()).then("value").alias("value")
    return rows.with_columns(drawn).sort("x", "y")


def ends(values: pl.Series) -> tuple[float | None, float | None]:
    """Where a quantity ends, as far as its values tell: shares lie in [0, 1], sizes above 0.

    Args:
        values: all that were measured, one per replicate; means and bands of them stay inside.

    Returns:
        The lower and the upper end; None where there is none.
    """
    finite = values.cast(pl.Float64).drop_nulls().drop_nans()
    finite = finite.filter(finite.is_finite())
    if finite.is_empty() or float(finite.min()) < 0:  # pyright: ignore[reportArgumentType]
        return None, None
    return 0.0, 1.0 if float(finite.max()) <= 1 else None  # pyright: ignore[reportArgumentType]


def levels(table: pl.DataFrame, column: str) -> pl.Series:
    """The different values of a column in their order: numbers by size, text by first sight."""
    found = table[column].unique(maintain_order=True)
    return found.sort() if found.dtype.is_numeric() else found


def labels(table: pl.DataFrame, column: str) -> list[str]:
    return [label(level) for level in levels(table, column)]


def label(level: object) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _columns(table: pl.DataFrame, *names: str) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise AdvlabError(
            f"the table must have the column {', '.join(missing)}", ", ".join(table.columns)
        )


def _picked(table: pl.DataFrame, x: str, y: str, color: str | None) -> pl.DataFrame:
    """The columns to draw under short names, colours as text with their rank."""
    _columns(table, x, y, *([color] if color else []))
    rows = table.select(x=pl.col(x), y=pl.col(y).cast(pl.Float64))
    if color is None:
        return rows.with_columns(color=pl.lit(""), rank=pl.lit(0))
    named = levels(table, color)
    names = pl.DataFrame({"level": named, "color": [label(one) for one in named]})
    return rows.with_columns(level=table[color]).join(
        names.with_row_index("rank"), on="level", nulls_equal=True
    )


def _thin(rows: pl.DataFrame, log_x: bool) -> pl.DataFrame:
    """Only some levels of x, evenly spread on its axis, the first and the last among them."""
    if log_x:
        rows = rows.filter(pl.col("x") > 0)
    grid = rows["x"].unique().drop_nulls().sort()
    most = min(POINTS, max(2, ROWS // max(1, rows["color"].n_unique())))
    if len(grid) <= most or not grid.dtype.is_numeric():
        return rows
    place = grid.cast(pl.Float64).to_numpy()
    wanted = (np.geomspace if log_x else np.linspace)(place[0], place[-1], most)
    nearest = np.searchsorted((place[1:] + place[:-1]) / 2, wanted)
    kept = grid.gather(np.unique(np.r_[0, nearest, len(place) - 1]))
    return rows.filter(pl.col("x").is_in(kept.implode()))
