"""Charts in one look: means over replicates with one standard deviation, theory dashed.

Colours and fonts come from `theme`, which the page applies when it draws; a chart holds none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import numpy as np
import polars as pl

from ..core.errors import AdvlabError
from . import aggregate
from .theme import CATEGORIES, TICKS

WIDTH, HEIGHT = 260, 210

AnyChart = alt.Chart | alt.LayerChart | alt.ConcatChart | alt.VConcatChart
DASHED = "theory"
"""The legend's word for dashed lines."""
_SHARE = re.compile(r"\b(accuracy|error|share)\b")
HUES = ["#D7263D", "#1E88E5", "#D81B9A", "#8C8C8C"]
DASHES = [[1, 0], [6, 4], [2, 3], [9, 3, 2, 3]]
"""Contours on a heat map, in turn: told apart on it, and in the legend on light and on dark."""


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
) -> alt.LayerChart:
    """The mean of y at each x, in a band of one standard deviation over the rows there, or of one
    standard error; with `band="quartiles"` the median between the quartiles.

    `theory` has the same columns and is drawn dashed; without the column x it is level lines.
    """
    rows = aggregate.means(table, x, y, color, log_x=log_x, log_y=log_y, band=band)
    axes = _Axes(table, x, y, color, x_title, y_title, log_x, log_y, theory=theory)
    around = axes.chart(rows, "fill").mark_area(opacity=0.16).encode(y=axes.y("low"), y2="high")
    # Only points carry a tooltip of their own place, so the line has invisible ones.
    line = axes.chart(rows, "stroke").mark_line(point=alt.OverlayMarkDef(opacity=0, size=90))
    line = line.encode(y=axes.y("y"), tooltip=axes.tooltip(rows))
    return _layer([around, line, *axes.dashed(theory)], title)


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
) -> alt.LayerChart:
    """The mean of y at each x as a point, with an error bar of one standard deviation or error."""
    rows = aggregate.means(table, x, y, color, log_x=log_x, log_y=log_y, band=band)
    axes = _Axes(table, x, y, color, x_title, y_title, log_x, log_y, padding=14, theory=theory)
    bars = axes.chart(rows, "stroke").mark_rule(strokeWidth=1.5).encode(y=axes.y("low"), y2="high")
    dots = axes.chart(rows, "fill").mark_point(filled=True, size=60, opacity=1)
    dots = dots.encode(y=axes.y("y"), tooltip=axes.tooltip(rows))
    return _layer([*axes.dashed(theory), bars, dots], title)


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
    axes = _Axes(table, x, y, color, x_title, y_title, log_y=log_y, beside=True)
    whiskers = axes.chart(rows).mark_rule(strokeWidth=1.5).encode(y=axes.y("low"), y2="high")
    box = axes.chart(rows).mark_bar(size=12, strokeWidth=1.5).encode(y=axes.y("q1"), y2="q3")
    # The outline shows a box of no height, where all replicates agree.
    box = box.encode(tooltip=axes.tooltip(rows))
    if color:
        box = box.encode(stroke=alt.Stroke("color:N", sort=axes.names(), legend=None))
    middle = axes.chart(rows).mark_tick(thickness=2, size=12)
    middle = middle.encode(y=axes.y("y"), color=alt.value("white"))
    return _layer([whiskers, box, middle], title)


def heat(
    table: pl.DataFrame,
    x: str,
    y: str,
    value: str,
    *,
    domain: tuple[float, float] | None = None,
    lines: pl.DataFrame | None = None,
    title: str = "",
    x_title: str = "",
    y_title: str = "",
    value_title: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> alt.Chart | alt.LayerChart:
    """The mean of a value in each cell of a grid; values outside `domain` have its end's colour.

    `lines` are contours over the map: columns x, y and `line`, their name, joined row by row. With
    them, or on a log axis, cells are drawn to scale and meet halfway between levels; else cells
    are alike.
    """
    rows = aggregate.cells(table, x, y, value)
    scale = alt.Scale(domain=list(domain), clamp=True) if domain else alt.Undefined
    color = alt.Color("value:Q", title=value_title or value, scale=scale)
    titles = {"x": x_title or x, "y": y_title or y, "value": value_title or value}
    tooltip = [
        alt.Tooltip(name, title=title, format=_digits(rows[name])) for name, title in titles.items()
    ]
    encodings = {"color": color, "tooltip": tooltip}
    if lines is None and not (log_x or log_y):
        return _ordinal(table, x, y, rows, titles, title).encode(**encodings)
    places = _Place(aggregate.levels(table, x), log_x), _Place(aggregate.levels(table, y), log_y)
    cells = _cells_to_scale(rows, *places, titles).encode(**encodings)
    overlay = [] if lines is None else _contours(lines, x, y, *places, titles)
    return _layer([cells, *overlay], title)


def panels(charts: Sequence[AnyChart], *, title: str = "", columns: int = 3) -> alt.ConcatChart:
    """Charts side by side; the page fits their width and number in a row.

    They share one legend, unless their colours stand for different things.
    """
    # Plots line up, not their labels: the spacing has room for an axis and a title.
    spacing = {"row": 112, "column": 72}
    together = alt.ConcatChart(
        concat=list(charts),
        columns=columns,
        bounds="flush",
        spacing=spacing,
        title=title or alt.Undefined,
    )
    shared = len(set().union(*(_hues(chart) for chart in charts))) <= 1
    if shared:
        return together
    channels = {"color"} | set().union(*(_channels(chart) for chart in charts))
    apart: dict[str, Any] = dict.fromkeys(sorted(channels), "independent")
    return together.resolve_scale(**apart)


def stacked(*charts: AnyChart, title: str = "") -> alt.VConcatChart:
    """Charts one below the other: a grid of pictures, then panels; each as wide as it is alone."""
    return alt.VConcatChart(
        vconcat=list(charts), spacing=28, title=title or alt.Undefined
    ).resolve_scale(color="independent")


LETTERS = 48
"""How many stand side by side below a panel."""


@dataclass(frozen=True)
class _Axes:
    """The encodings that the layers of one panel share."""

    table: pl.DataFrame
    x_name: str
    y_name: str
    color: str | None
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    padding: int = 0
    beside: bool = False
    theory: pl.DataFrame | None = None

    def chart(self, rows: pl.DataFrame, channel: Literal["fill", "stroke"] = "fill") -> alt.Chart:
        """Rows with colours; `channel` is what the mark has of them where they are a scale."""
        encodings: dict[str, Any] = {"x": self.x()}
        if self.color and self.is_scale():
            rows = rows.with_columns(shade=pl.col("color").cast(pl.Float64))
            encodings |= {"detail": alt.Detail("color:N"), **self.bar(channel)}
        elif self.color:
            encodings["color"] = self.hue()
        if self.color and self.beside:
            encodings["xOffset"] = alt.XOffset(
                "color:N", sort=aggregate.labels(self.table, self.color)
            )
        return alt.Chart(rows, width=WIDTH, height=HEIGHT).encode(**encodings)

    def x(self) -> alt.X:
        title = self.x_title or self.x_name
        if self.beside or not self.table[self.x_name].dtype.is_numeric():
            order = aggregate.levels(self.table, self.x_name).to_list()
            # Side by side long names would hide each other.
            long = sum(len(str(one)) + 2 for one in order) > LETTERS
            slanted = alt.Axis(labelAngle=-30, labelOverlap=False) if long else alt.Undefined
            return alt.X("x:O", title=title, sort=order, axis=slanted)
        scale = _scale(self.log_x, nice=False, padding=self.padding)
        return alt.X("x:Q", title=title, scale=scale, axis=_axis(self.log_x))

    def y(self, column: str) -> alt.Y:
        title = self.y_title or self.y_name
        scale = _scale(self.log_y, nice=TICKS)
        if not self.log_y and self.table[self.y_name].drop_nulls().n_unique() == 1:
            low, high = aggregate.ends(self.table[self.y_name])
            if low is not None and high is not None:  # a share that never changes
                scale = alt.Scale(domain=[low, high])
        elif self.is_wide_share():
            scale = alt.Scale(domain=[0, 1])
        return alt.Y(f"{column}:Q", title=title, scale=scale, axis=_axis(self.log_y))

    def is_wide_share(self) -> bool:
        """Whether y is an accuracy, error or share whose means take half of [0, 1] or more."""
        if self.log_y or not _SHARE.search(f"{self.y_title} {self.y_name}"):
            return False
        tables = [self.table] + ([] if self.theory is None else [self.theory])
        values = pl.concat([one[self.y_name].cast(pl.Float64) for one in tables])
        if aggregate.ends(values) != (0.0, 1.0):
            return False
        by = {self.x_name, self.color or self.x_name}
        means = self.table.group_by(by).agg(mean=pl.col(self.y_name).cast(pl.Float64).mean())
        found = means["mean"].drop_nulls().to_numpy()
        return len(found) > 0 and float(np.nanmax(found) - np.nanmin(found)) >= 0.5

    def is_scale(self) -> bool:
        """Whether colours are a number with more levels than there are colours."""
        if self.color is None or not self.table[self.color].dtype.is_numeric():
            return False
        return len(self.names()) > len(CATEGORIES)

    def is_log(self) -> bool:
        levels = aggregate.levels(self.table, self.color or "").to_list()
        return levels[0] > 0 and levels[-1] >= 50 * levels[0]

    def names(self) -> list[str]:
        """Those of the table, then those that only theory has."""
        found = aggregate.labels(self.table, self.color or "")
        if self.theory is not None and self.color in self.theory.columns:
            found += aggregate.labels(self.theory, self.color)
        return list(dict.fromkeys(found))

    def bar(self, channel: Literal["fill", "stroke"]) -> dict[str, Any]:
        """Colours by number, told by a colour bar.

        Both channels together would be told by dots, so each layer names its own, and the marks
        that carry the numbers tell: lines by their stroke, points by their fill.
        """
        scale = alt.Scale(type="log" if self.is_log() else "linear", scheme="viridis")
        kind = alt.Stroke if channel == "stroke" else alt.Fill
        told = channel == ("fill" if self.padding else "stroke")
        legend = alt.Legend(type="gradient") if told else None
        return {channel: kind("shade:Q", title=self.color, scale=scale, legend=legend)}

    def hue(self) -> alt.Color:
        """Colours by name."""
        names = self.names()
        kind = "N" if len(names) <= len(CATEGORIES) else "O"
        legend = alt.Legend(symbolType="circle")
        return alt.Color(f"color:{kind}", title=self.color, sort=names, legend=legend)

    def tooltip(self, rows: pl.DataFrame) -> list[alt.Tooltip]:
        titles = {
            "color": self.color,
            "x": self.x_title or self.x_name,
            "y": self.y_title or self.y_name,
            "low": "from",
            "high": "to",
            "replicates": "replicates",
        }
        return [
            alt.Tooltip(name, title=title, format=_digits(rows[name]))
            for name, title in titles.items()
            if title is not None
        ]

    def dashed(self, theory: pl.DataFrame | None) -> list[alt.Chart]:
        if theory is None:
            return []
        color = self.color if self.color in theory.columns else None
        rows = aggregate.lines(theory, self.x_name, self.y_name, color, log_x=self.log_x)
        rows = rows.with_columns(line=pl.lit(DASHED))
        level = self.x_name not in theory.columns
        chart = alt.Chart(rows, width=WIDTH, height=HEIGHT)
        chart = chart.mark_rule(strokeWidth=1.5) if level else chart.mark_line(strokeWidth=1.5)
        encodings: dict[str, Any] = {
            "y": self.y("y"),
            "strokeDash": alt.StrokeDash("line:N", title=None)
            .scale(range=[[5, 4]])
            .legend(symbolType="stroke", symbolSize=250),
        }
        if not level:
            encodings["x"] = self.x()
        if color and self.is_scale():
            shade = pl.col("color").cast(pl.Float64)
            chart = chart.properties(data=rows.with_columns(shade=shade))
            encodings |= {"detail": alt.Detail("color:N"), **self.bar("stroke")}
        elif color:
            encodings["color"] = self.hue()
        return [chart.encode(**encodings)]


def _ordinal(
    table: pl.DataFrame, x: str, y: str, rows: pl.DataFrame, titles: dict[str, str], title: str
) -> alt.Chart:
    text = rows.with_columns(
        *(pl.Series(name, [aggregate.label(level) for level in rows[name]]) for name in ("x", "y"))
    )
    chart = alt.Chart(text, width=WIDTH, height=HEIGHT, title=title or alt.Undefined)
    # A little overlap, as the ground shines through where edges fall between pixels.
    full = alt.RelativeBandSize(band=1.05)
    return chart.mark_rect(width=full, height=full).encode(
        x=alt.X(
            "x:O", title=titles["x"], sort=aggregate.labels(table, x), axis=alt.Axis(grid=False)
        ),
        y=alt.Y("y:O", title=titles["y"], sort=aggregate.labels(table, y)[::-1]).axis(grid=False),
    )


@dataclass(frozen=True)
class _Place:
    """Where the cells of a grid lie on one axis: edges halfway between levels, by ratio if log."""

    levels: pl.Series
    log: bool

    def __post_init__(self) -> None:
        kind = "positive numbers" if self.log else "numbers"
        numeric = self.levels.dtype.is_numeric() and self.levels.null_count() == 0
        if not numeric or not self._on_axis(self.levels.to_numpy()).all():
            raise AdvlabError(
                f"cells drawn to scale need {kind} on both axes", self.levels.to_list()
            )

    def edges(self) -> np.ndarray:
        levels = self.levels.cast(pl.Float64).to_numpy()
        spot = np.log(levels) if self.log else levels
        middle = (spot[1:] + spot[:-1]) / 2
        # The outer cells reach as far out as in; a lone level has no neighbour to tell.
        ends = 2 * spot[[0, -1]] - middle[[0, -1]] if len(middle) else spot[0] + [-0.5, 0.5]
        edges = np.r_[ends[0], middle, ends[1]]
        return np.exp(edges) if self.log else edges

    def cell(self, name: str) -> pl.DataFrame:
        """Rows (name, low, high)."""
        edges = self.edges()
        ends = {f"{name}_low": edges[:-1], f"{name}_high": edges[1:]}
        return pl.DataFrame({name: self.levels, **ends})

    def scale(self) -> alt.Scale:
        edges = self.edges()
        return _scale(self.log, nice=False, domain=[float(edges[0]), float(edges[-1])])

    def axis(self) -> alt.Axis:
        values = self.levels.to_list()
        # The theme's count of ticks would thin these out, room or no room.
        count = len(values)
        return alt.Axis(
            grid=False, values=values, tickCount=count, labelSeparation=3, format=".6~r"
        )

    def seen(self, column: pl.Series) -> pl.Series:
        """Numbers; null where there is no place for them."""
        numbers = column.cast(pl.Float64).to_numpy()
        return pl.Series(np.where(self._on_axis(numbers), numbers, np.nan)).fill_nan(None)

    def _on_axis(self, numbers: np.ndarray) -> np.ndarray:
        return np.isfinite(numbers) & ((numbers > 0) if self.log else True)


def _cells_to_scale(rows: pl.DataFrame, x: _Place, y: _Place, titles: dict[str, str]) -> alt.Chart:
    cells = rows.join(x.cell("x"), on="x").join(y.cell("y"), on="y")
    chart = alt.Chart(cells, width=WIDTH, height=HEIGHT)
    # Half a pixel of overlap, for the same reason as in `_ordinal`.
    return chart.mark_rect(x2Offset=0.5, yOffset=0.5, clip=True).encode(
        x=alt.X("x_low:Q", title=titles["x"], scale=x.scale(), axis=x.axis()),
        x2="x_high",
        y=alt.Y("y_low:Q", title=titles["y"], scale=y.scale(), axis=y.axis()),
        y2="y_high",
    )


def _contours(
    lines: pl.DataFrame, x: str, y: str, across: _Place, up: _Place, titles: dict[str, str]
) -> list[alt.Chart]:
    if not {x, y, "line"} <= set(lines.columns):
        raise AdvlabError(f"contours have the columns {x}, {y} and line", ", ".join(lines.columns))
    rows = pl.DataFrame(
        {"x": across.seen(lines[x]), "y": up.seen(lines[y]), "line": lines["line"]}
    ).with_row_index("order")
    names = aggregate.labels(lines, "line")
    chart = alt.Chart(rows, width=WIDTH, height=HEIGHT).encode(
        x=alt.X("x:Q", title=titles["x"], scale=across.scale(), axis=across.axis()),
        y=alt.Y("y:Q", title=titles["y"], scale=up.scale(), axis=up.axis()),
        order="order:Q",
    )
    halo = chart.mark_line(clip=True, strokeWidth=4.5, stroke="white").encode(detail="line:N")
    # One legend for hue and dash, as both have the same domain; a sort would make it two.
    legend = alt.Legend(
        symbolType="stroke", symbolSize=350, orient="bottom", columns=1, labelLimit=0
    )
    hue, dash = (alt.Scale(domain=names, range=look) for look in (HUES, DASHES))
    inked = chart.mark_line(clip=True, strokeWidth=2).encode(
        stroke=alt.Stroke("line:N", title=None, legend=legend, scale=hue),
        strokeDash=alt.StrokeDash("line:N", title=None, legend=legend, scale=dash),
    )
    return [halo, inked]


def _scale(log: bool, **more: Any) -> alt.Scale:
    return alt.Scale(type="log", **more) if log else alt.Scale(zero=False, **more)


def _axis(log: bool) -> alt.Axis:
    """On a log axis powers of ten have a line; they, their doubles and their fives have a label."""
    if not log:
        return alt.Axis()
    digit = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))"
    opacity = {"condition": {"test": f"{digit} == 1", "value": 1}, "value": 0}
    number = "format(datum.value, datum.value < 1e-3 || datum.value >= 1e5 ? '~e' : '~g')"
    label = f"indexof([1, 2, 5], {digit}) < 0 ? '' : {number}"
    return alt.Axis(labelExpr=label, gridOpacity=opacity)


def _digits(column: pl.Series) -> Any:
    return ".4g" if column.dtype.is_float() else alt.Undefined


def _encodings(chart: AnyChart) -> list[tuple[str, dict[str, Any]]]:
    """What colours a chart: channels, with those of lines over heat maps left out."""
    spec = chart.to_dict()
    return [
        (channel, layer["encoding"][channel])
        for layer in spec.get("layer", [spec])
        for channel in ("color", "fill", "stroke")
        if (layer.get("encoding") or {}).get(channel, {}).get("title")
    ]


def _hues(chart: AnyChart) -> set[str]:
    """What the colours of a chart stand for."""
    return {encoding["title"] for _, encoding in _encodings(chart)}


def _channels(chart: AnyChart) -> set[str]:
    return {channel for channel, one in _encodings(chart) if one["type"] == "quantitative"}


def _layer(layers: list[alt.Chart], title: str) -> alt.LayerChart:
    return alt.LayerChart(layer=layers, title=title or alt.Undefined)
