"""Medians over replicates with their quartiles: a picture that a log axis does not distort.

A mean less a standard deviation may be negative, and then has no place on a log axis; quartiles
always have one. What is zero is left out, not moved to the foot of the axis.
"""

from typing import Any

import altair as alt
import polars as pl

from .....report import charts
from .....report.charts import HEIGHT, WIDTH


def quantiles(
    table: pl.DataFrame,
    x: str,
    y: str,
    color: str | None = None,
    *,
    theory: pl.DataFrame | None = None,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> alt.LayerChart:
    """The median of y at each x, in a band from the lower to the upper quartile of the rows there.

    Args:
        table: one row per replicate, x and colour.
        x: column of the horizontal axis. y: of the vertical one. color: of the lines, if many.
        theory: predictions with the columns x and y, drawn dashed.
        title: of the panel. x_title, y_title: of its axes.
        log_x, log_y: whether an axis is logarithmic.
    """
    kept = table.filter(pl.col(y) > 0) if log_y else table
    by = [x, *([color] if color else [])]
    rows = kept.group_by(by, maintain_order=True).agg(
        y=pl.col(y).median(),
        low=pl.col(y).quantile(0.25, "linear"),
        high=pl.col(y).quantile(0.75, "linear"),
        replicates=pl.len(),
    )
    rows = rows.rename({x: "x"})
    axes: dict[str, Any] = {
        "x": alt.X("x:Q", title=x_title or x, scale=_scale(log_x), axis=charts._axis(log_x))
    }
    if color:
        rows = rows.rename({color: "color"}).with_columns(pl.col("color").cast(pl.String))
        names = list(dict.fromkeys(table.sort(color)[color].cast(pl.String)))
        legend = alt.Legend(symbolType="circle", symbolOpacity=1)
        axes["color"] = alt.Color("color:N", title=color, sort=names, legend=legend)
    base = alt.Chart(rows, width=WIDTH, height=HEIGHT).encode(**axes)
    vertical = {"title": y_title or y, "scale": _scale(log_y), "axis": charts._axis(log_y)}
    band = base.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", **vertical), y2="high")
    line = base.mark_line(point=alt.OverlayMarkDef(size=18)).encode(
        y=alt.Y("y:Q", **vertical), tooltip=["x", "y", "low", "high", "replicates"]
    )
    layers = [band, line]
    if theory is not None:
        foretold = theory.select(x=pl.col(x), y=pl.col(y), line=pl.lit(charts.DASHED)).sort("x")
        dashed = alt.Chart(foretold, width=WIDTH, height=HEIGHT).mark_line(
            strokeWidth=1.8, color="gray", clip=True
        )
        dash = alt.StrokeDash("line:N", title=None).scale(range=[[5, 4]])
        dash = dash.legend(symbolType="stroke", symbolSize=250)
        layers.append(dashed.encode(x=axes["x"], y=alt.Y("y:Q", **vertical), strokeDash=dash))
    return alt.LayerChart(layer=layers, title=title or alt.Undefined)


def _scale(log: bool) -> alt.Scale:
    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False)
