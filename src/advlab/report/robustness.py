"""The figure of a robustness curve: the robust error over eps between its two bounds."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

WIDTH, HEIGHT = 460, 280
BOUNDS = {"at_most": "at most (proved)", "at_least": "at least (found by attack)"}


def robustness_chart(table: Sequence[Mapping[str, float]], norm: str, n: int) -> alt.LayerChart:
    """Both bounds of the robust error over eps, what lies between them, and the 95 % interval.

    Args:
        table: one row per radius: eps, at_least, at_most, low, high, as `RobustnessCurve.table()`.
        norm: the norm of the perturbations, for the axis.
        n: how many examples, for the title.

    Example:
        from advlab.report.robustness import robustness_chart
        robustness_chart(found.table(), found.norm, found.n).save("curve.html")
    """
    wide = pl.DataFrame(list(table))
    x = alt.X("eps:Q", title=f"ε ({norm})", scale=alt.Scale(nice=False, zero=True))
    interval = alt.Chart(wide).mark_area(opacity=0.12).encode(x=x, y=_y("low"), y2="high")
    between = alt.Chart(wide).mark_area(opacity=0.25).encode(x=x, y=_y("at_least"), y2="at_most")
    long = wide.unpivot(index=["eps", "low", "high"], on=list(BOUNDS), variable_name="bound")
    long = long.with_columns(pl.col("bound").replace(BOUNDS))
    lines = (
        alt.Chart(long)
        .mark_line(point=True)
        .encode(
            x=x,
            y=_y("value"),
            color=alt.Color("bound:N", title=None, sort=list(BOUNDS.values())),
            tooltip=["eps", "bound", "value", "low", "high"],
        )
    )
    title = f"Robust error of {n} examples, with a 95 % interval"
    chart: alt.LayerChart = alt.layer(interval, between, lines)  # type: ignore[assignment]
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)


def _y(column: str) -> alt.Y:
    return alt.Y(f"{column}:Q", title="robust error", scale=alt.Scale(domain=[0, 1]))
