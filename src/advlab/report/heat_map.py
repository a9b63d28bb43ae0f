"""A heat map: the mean of a value over a grid, with contours."""

from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl

from ..core.errors import AdvlabError
from . import aggregate
from .axes import HEIGHT, WIDTH, digits, layered, scale_of

HUES = ["#D7263D", "#1E88E5", "#D81B9A", "#8C8C8C"]
DASHES = [[1, 0], [6, 4], [2, 3], [9, 3, 2, 3]]
"""Contours on a heat map, in turn: told apart on it, and in the legend on light and on dark."""


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
        alt.Tooltip(name, title=title, format=digits(rows[name])) for name, title in titles.items()
    ]
    encodings = {"color": color, "tooltip": tooltip}
    if lines is None and not (log_x or log_y):
        return _ordinal(table, x, y, rows, titles, title).encode(**encodings)
    places = _Place(aggregate.levels(table, x), log_x), _Place(aggregate.levels(table, y), log_y)
    cells = _cells_to_scale(rows, *places, titles).encode(**encodings)
    overlay = [] if lines is None else _contours(lines, x, y, *places, titles)
    return layered([cells, *overlay], title)


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
        return scale_of(self.log, nice=False, domain=[float(edges[0]), float(edges[-1])])

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
