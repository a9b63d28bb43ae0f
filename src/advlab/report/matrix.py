"""A matrix of numbers: every cell says its value, and shades let the eye find the large ones."""

import altair as alt
import numpy as np
import polars as pl

from . import aggregate
from .axes import HEIGHT, WIDTH
from .formatting import RAISED

DARK = 0.55
"""Shades above this carry white letters."""


def matrix(
    table: pl.DataFrame,
    x: str,
    y: str,
    value: str,
    *,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    value_title: str = "",
    digits: int = 2,
) -> alt.LayerChart:
    """The mean of a value in each cell, written in it and shaded.

    Shades need no legend, and are no colours: beside other charts theirs keep one meaning.
    `digits` are those that count.
    """
    rows = aggregate.cells(table, x, y, value)
    text = rows.with_columns(
        pl.Series("share", _shares(rows["value"].to_numpy())),
        pl.Series("shown", [_short(one, digits) for one in rows["value"]]),
        *(pl.Series(name, [aggregate.label(level) for level in rows[name]]) for name in ("x", "y")),
    )
    chart = alt.Chart(text, width=WIDTH, height=HEIGHT).encode(
        x=alt.X("x:O", title=x_title or x, sort=aggregate.labels(table, x)).axis(
            grid=False, labelAngle=0
        ),
        y=alt.Y("y:O", title=y_title or y, sort=aggregate.labels(table, y)).axis(grid=False),
        tooltip=[
            alt.Tooltip("y", title=y_title or y),
            alt.Tooltip("x", title=x_title or x),
            alt.Tooltip("value:Q", title=value_title or value, format=".4~g"),
        ],
    )
    shade = alt.Fill("share:Q", legend=None).scale(scheme="blues", domain=[-0.15, 1])
    ink = alt.condition(alt.datum.share > DARK, alt.value("white"), alt.value("#222"))
    letters = chart.mark_text(fontSize=11).encode(text="shown:N", fill=ink)
    return alt.LayerChart(layer=[chart.mark_rect().encode(fill=shade), letters], title=title)


def _shares(values: np.ndarray) -> np.ndarray:
    """Where each value lies between the smallest and the largest, 0 to 1; missing ones at 0."""
    values = values.astype(float)
    low, high = np.nanmin(values), np.nanmax(values)
    share = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return np.where(np.isfinite(share), share, 0.0)


def _short(value: float | None, digits: int) -> str:
    """So many digits, of two 0.034 or 1.2×10⁻⁵."""
    if value is None:
        return ""
    shown, _, power = f"{value:.{digits}g}".replace("-", "−").partition("e")
    return f"{shown}×10{str(int(power.replace('−', '-'))).translate(RAISED)}" if power else shown
