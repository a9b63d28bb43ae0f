"""Points side by side: what coincides at one place of the x axis is seen all the same."""

import altair as alt
import polars as pl

from .....report import aggregate
from .....report.axes import Axes, layered


def dodged_points(
    table: pl.DataFrame,
    x: str,
    y: str,
    color: str,
    *,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    log_y: bool = False,
    y_domain: tuple[float, float] | None = None,
) -> alt.LayerChart:
    """`charts.points` for names on the x axis, with the colours of each beside each other.

    Args:
        table: one row per replicate.
        x, y, color: its columns.
        title, x_title, y_title: words of the chart.
        log_y: a log axis.
        y_domain: the ends of the axis, where panels are to have the same.
    """
    rows = aggregate.means(table, x, y, color, log_y=log_y)
    axes = Axes(table, x, y, color, x_title, y_title, log_y=log_y, beside=True, y_domain=y_domain)
    rows = axes.floored(rows)
    bars = axes.chart(rows).mark_rule(strokeWidth=1.5).encode(y=axes.y("low"), y2="high")
    dots = axes.chart(rows).mark_point(filled=True, size=60, opacity=1)
    return layered([bars, dots.encode(y=axes.y("y"), tooltip=axes.tooltip(rows))], title)
