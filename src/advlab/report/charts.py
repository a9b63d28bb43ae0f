"""Charts in one look: means over replicates with one standard deviation, theory dashed.

Colours and fonts come from `theme`, which the page applies when it draws; a chart holds none.
"""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from . import aggregate
from .axes import HEIGHT as HEIGHT
from .axes import WIDTH as WIDTH
from .axes import Axes, layered
from .heat_map import heat as heat
from .theme import layers

DASHES: list[dict[str, Any]] = [
    {"strokeDash": [12, 8]},
    {"strokeDash": [5, 15], "strokeDashOffset": -3.5},
    {"strokeDash": [2, 18], "strokeDashOffset": -14},
]
"""Of the second and further of lines that lie on each other; the first is whole."""
AnyChart = alt.Chart | alt.LayerChart | alt.ConcatChart | alt.VConcatChart


def curves(
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
    band: aggregate.Band = "standard deviation",
    y_domain: tuple[float, float] | None = None,
    apart: bool = False,
) -> alt.LayerChart:
    """The mean of y at each x, in a band of one standard deviation over the rows there, or of one
    standard error; with `band="quartiles"` the median between the quartiles.

    `theory` has the same columns and is drawn dashed; without the column x it is level lines.
    `y_domain` are the ends of the axis, where panels are to have the same. With `apart` lines
    after the first have gaps, so that all are seen where they lie on each other.
    """
    rows = aggregate.means(table, x, y, color, log_x=log_x, log_y=log_y, band=band)
    axes = Axes(
        table, x, y, color, x_title, y_title, log_x, log_y, theory=theory, y_domain=y_domain
    )
    rows = axes.floored(rows)
    axes = axes.around(rows)
    several = axes.names() if apart and color and not axes.is_scale() else []
    if several:
        rows = rows.with_columns(place=pl.Series([several.index(one) for one in rows["color"]]))
    around = axes.chart(rows, "fill").mark_area(opacity=0.16).encode(y=axes.y("low"), y2="high")
    line = axes.chart(rows, "stroke").encode(y=axes.y("y"))
    told = axes.tooltip(rows)
    # Only points carry a tooltip of their own place, so the line has invisible ones.
    if several:
        dots = line.mark_point(opacity=0, size=90).encode(tooltip=told)
        lines = [*_with_gaps(line, len(several)), dots]
    else:
        lines = [line.mark_line(point=alt.OverlayMarkDef(opacity=0, size=90)).encode(tooltip=told)]
    return layered([around, *lines, *axes.dashed(theory)], title)


def _with_gaps(line: alt.Chart, several: int) -> list[alt.Chart]:
    """Each line by itself, chosen by its number, as names are typeset."""
    return [
        line.transform_filter(f"datum.place == {place}").mark_line(
            **(DASHES[(place - 1) % len(DASHES)] if place else {})
        )
        for place in range(several)
    ]


def points(
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
    band: aggregate.Band = "standard deviation",
    y_domain: tuple[float, float] | None = None,
) -> alt.LayerChart:
    """The mean of y at each x as a point, with an error bar of one standard deviation or error."""
    rows = aggregate.means(table, x, y, color, log_x=log_x, log_y=log_y, band=band)
    axes = Axes(
        table, x, y, color, x_title, y_title, log_x, log_y, 14, theory=theory, y_domain=y_domain
    )
    rows = axes.floored(rows)
    axes = axes.around(rows)
    bars = axes.chart(rows, "stroke").mark_rule(strokeWidth=1.5).encode(y=axes.y("low"), y2="high")
    dots = axes.chart(rows, "fill").mark_point(filled=True, size=60, opacity=1)
    dots = dots.encode(y=axes.y("y"), tooltip=axes.tooltip(rows))
    return layered([*axes.dashed(theory), bars, dots], title)


def boxes(
    table: pl.DataFrame,
    x: str,
    y: str,
    color: str | None = None,
    *,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    log_y: bool = False,
) -> alt.LayerChart:
    """The extremes, quartiles and median of y at each x."""
    rows = aggregate.five_numbers(table, x, y, color)
    axes = Axes(table, x, y, color, x_title, y_title, log_y=log_y, beside=True)
    whiskers = axes.chart(rows).mark_rule(strokeWidth=1.5).encode(y=axes.y("low"), y2="high")
    box = axes.chart(rows).mark_bar(size=12, strokeWidth=1.5).encode(y=axes.y("q1"), y2="q3")
    # The outline shows a box of no height, where all replicates agree.
    box = box.encode(tooltip=axes.tooltip(rows))
    if color:
        box = box.encode(stroke=alt.Stroke("color:N", sort=axes.names(), legend=None))
    middle = axes.chart(rows).mark_tick(thickness=2, size=12)
    middle = middle.encode(y=axes.y("y"), color=alt.value("white"))
    return layered([whiskers, box, middle], title)


def panels(charts: Sequence[AnyChart], *, title: str = "", columns: int = 3) -> alt.ConcatChart:
    """Charts side by side; the page fits their width and number in a row.

    They share one legend, unless their colours stand for different things.
    """
    # Plots line up, not their labels: the spacing has room for an axis and a title.
    shared = len(set().union(*(_hues(chart) for chart in charts))) <= 1
    spacing = {"row": 112 if shared else 140, "column": 72}
    together = alt.ConcatChart(
        concat=list(charts),
        columns=columns,
        bounds="flush",
        spacing=spacing,
        title=title or alt.Undefined,
    )
    if shared:
        return together
    channels = {"color"}.union(*(_channels(chart) for chart in charts))
    apart: dict[str, Any] = dict.fromkeys(sorted(channels), "independent")
    return together.resolve_scale(**apart)


def stacked(*charts: AnyChart, title: str = "") -> alt.VConcatChart:
    """Charts one below the other: a grid of pictures, then panels; each as wide as it is alone."""
    return alt.VConcatChart(
        vconcat=list(charts), spacing=28, title=title or alt.Undefined
    ).resolve_scale(color="independent")


def _encodings(chart: AnyChart) -> list[tuple[str, dict[str, Any]]]:
    """What colours a chart: channels, with those of lines over heat maps left out."""
    return [
        (channel, layer["encoding"][channel])
        for layer in layers(chart.to_dict())
        for channel in ("color", "fill", "stroke")
        if (layer.get("encoding") or {}).get(channel, {}).get("title")
    ]


def _hues(chart: AnyChart) -> set[str]:
    """What the colours of a chart stand for."""
    return {encoding["title"] for _, encoding in _encodings(chart)}


def _channels(chart: AnyChart) -> set[str]:
    """Those with a colour bar, and the outlines of boxes, whose legend would stand above all."""
    bars = {channel for channel, one in _encodings(chart) if one["type"] == "quantitative"}
    outlined = any((layer.get("encoding") or {}).get("stroke") for layer in layers(chart.to_dict()))
    return bars | ({"stroke"} if outlined else set())
