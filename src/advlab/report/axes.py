"""The axes, scales and colours that the layers of one panel share."""

import math
import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt
import numpy as np
import polars as pl

from . import aggregate
from .theme import CATEGORIES, TICKS

WIDTH, HEIGHT = 260, 210
DASHED = "theory"
"""The legend's word for dashed lines."""
_SHARE = re.compile(r"\b(accuracy|error|share)\b")
LOG_PADDING = 8
"""Pixels between the ends of a log axis and what it shows."""
NEARLY = 0.02
"""What part of its largest value a quantity may be below 0, and its axis still begin there."""
PLAIN = 1e-4, 5e4
"""On a log axis that shows less or more, powers of ten are written as such."""
POWERS = 7
"""How many of them have a label at most."""
LETTERS = 48
"""How many stand side by side below a panel."""


@dataclass(frozen=True)
class Axes:
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
    y_domain: tuple[float, float] | None = None
    drawn: tuple[float, float] | None = None

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
        scale = scale_of(self.log_x, nice=False, padding=self.padding)
        axis = axis_of(self.log_x, self.table[self.x_name].drop_nulls().to_numpy())
        return alt.X("x:Q", title=title, scale=scale, axis=axis)

    def y(self, column: str) -> alt.Y:
        title = self.y_title or self.y_name
        # A log axis that is "nice" would end at powers of ten, far from what it shows.
        ends = {"nice": False, "padding": LOG_PADDING} if self.log_y else {"nice": TICKS}
        scale = scale_of(self.log_y, **ends)
        if self.y_domain is not None:
            scale = scale_of(self.log_y, nice=False, domain=list(self.y_domain))
        elif not self.log_y and self.table[self.y_name].drop_nulls().n_unique() == 1:
            low, high = aggregate.ends(self.table[self.y_name])
            if low is not None and high is not None:  # a share that never changes
                scale = alt.Scale(domain=[low, high])
        elif self.is_wide_share():
            scale = alt.Scale(domain=[0, 1])
        elif not self.log_y and self.floor() is not None:
            scale = scale_of(False, nice=TICKS, domainMin=0)
        elif not self.log_y and self.below() is not None:
            scale = scale_of(False, nice=False, domain=self.below())
        seen = [self.means()]
        if self.theory is not None:
            seen.append(self.theory[self.y_name].cast(pl.Float64).drop_nulls().to_numpy())
        axis = axis_of(self.log_y, np.concatenate(seen))
        return alt.Y(f"{column}:Q", title=title, scale=scale, axis=axis)

    def floor(self) -> float | None:
        """0 if y comes near to it and is never below but for a fiftieth of its largest value."""
        values = self.values()
        if not self.is_positive() or not values.min() < NEARLY * values.max():
            return None
        return 0.0

    def is_positive(self) -> bool:
        """Whether y is never below 0 but for less than a fiftieth of its largest value."""
        values = self.values()
        return len(values) > 0 and bool(values.min() >= -NEARLY * values.max())

    def values(self) -> np.ndarray:
        """All y that are numbers, of the table and of theory."""
        tables = [self.table] + ([] if self.theory is None else [self.theory])
        values = np.concatenate([one[self.y_name].cast(pl.Float64).to_numpy() for one in tables])
        return values[np.isfinite(values)]

    def floored(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows (y, low, high) whose bands end at 0 where y does."""
        if self.log_y or not self.is_positive():
            return rows
        return rows.with_columns(pl.col("low").clip(0.0, None))

    def around(self, rows: pl.DataFrame) -> "Axes":
        """The same axes, which know where the rows (y, low, high) that they show end."""
        columns = [rows[name] for name in ("y", "low", "high")]
        if self.theory is not None:
            columns.append(self.theory[self.y_name])
        values = np.concatenate([one.cast(pl.Float64).to_numpy() for one in columns])
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return self
        return replace(self, drawn=(float(values.min()), float(values.max())))

    def below(self) -> list[float] | None:
        """The ends of an axis on which a little lies below 0: that end is where the rows end.

        Rounded to the next tick it would show as much again that is not there.
        """
        low, high = self.drawn or (0.0, 0.0)
        if not low < 0 < high:
            return None
        step = _step(high - low)
        return [low, step * math.ceil(high / step - 1e-9)] if -low < step else None

    def means(self) -> np.ndarray:
        """The means of y over replicates, those that are numbers."""
        by = {self.x_name, self.color or self.x_name}
        found = self.table.group_by(by).agg(mean=pl.col(self.y_name).cast(pl.Float64).mean())
        values = found["mean"].drop_nulls().to_numpy()
        return values[np.isfinite(values)]

    def is_wide_share(self) -> bool:
        """Whether y is an accuracy, error or share whose means take half of [0, 1] or more."""
        if self.log_y or not _SHARE.search(f"{self.y_title} {self.y_name}"):
            return False
        tables = [self.table] + ([] if self.theory is None else [self.theory])
        values = pl.concat([one[self.y_name].cast(pl.Float64) for one in tables])
        if aggregate.ends(values) != (0.0, 1.0):
            return False
        found = self.means()
        return len(found) > 0 and float(found.max() - found.min()) >= 0.5

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
            alt.Tooltip(name, title=title, format=digits(rows[name]))
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


def _step(length: float) -> float:
    """What lies between the ticks of a linear axis of this length."""
    power = 10.0 ** math.floor(math.log10(length / TICKS))
    many = length / TICKS / power
    return power * next(
        by for by, least in ((10, 50**0.5), (5, 10**0.5), (2, 2**0.5), (1, 0)) if many >= least
    )


def scale_of(log: bool, **more: Any) -> alt.Scale:
    return alt.Scale(type="log", **more) if log else alt.Scale(zero=False, **more)


def axis_of(log: bool, seen: np.ndarray | None = None) -> alt.Axis:
    """On a log axis powers of ten have a line; what it shows tells which numbers have a label.

    Three decades or more have the powers of ten, fewer their doubles and fives too, and less than
    one has every digit. Numbers are plain, or where they are very small or large, such as 10⁵.

    Args:
        log: whether it is one.
        seen: numbers that it shows; without them, powers of ten, doubles and fives.
    """
    if not log:
        return alt.Axis()
    found = np.array([1.0, 100.0]) if seen is None else np.asarray(seen, dtype=float)
    found = found[np.isfinite(found) & (found > 0)]
    low, high = (float(found.min()), float(found.max())) if len(found) else (1.0, 100.0)
    plain = PLAIN[0] <= low and high < PLAIN[1]
    label = alt.Undefined if plain else _LABEL
    if high < 3 * low:  # an axis so short has ticks as a linear one
        return alt.Axis(format="~g") if plain else alt.Axis(labelExpr=label)
    values = _labelled(low, high, plain)
    opacity = {"condition": {"test": f"{_DIGIT} == 1", "value": 1}, "value": 0}
    return alt.Axis(
        values=values,
        tickCount=len(values),  # the theme's would thin them out
        format="~g",
        labelExpr=label,
        gridOpacity=opacity if high >= 10 * low else alt.Undefined,
    )


def _labelled(low: float, high: float, plain: bool) -> list[float]:
    """Labels of a log axis, and some beyond its ends: bands may reach farther than means."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    powers = list(range(first - 3, last + 4))
    if high >= (1000 if plain else 100) * low:
        step = -(-(last - first) // POWERS)
        return [float(f"1e{place}") for place in powers if place % step == 0]
    digits = (1, 2, 5) if high >= 10 * low else range(1, 10)
    return [float(f"{digit}e{place}") for place in powers for digit in digits]


_POWER = "floor(log(datum.value) / LN10 + 1e-9)"
_DIGIT = f"round(datum.value / pow(10, {_POWER}))"
_TENS, _UNITS = f"floor(abs({_POWER}) / 10)", f"abs({_POWER}) % 10"
_RAISED = (
    f"({_POWER} < 0 ? '⁻' : '')"
    f" + ({_TENS} > 0 ? substring('⁰¹²³⁴⁵⁶⁷⁸⁹', {_TENS}, {_TENS} + 1) : '')"
    f" + substring('⁰¹²³⁴⁵⁶⁷⁸⁹', {_UNITS}, {_UNITS} + 1)"
)
_FACTOR = f"format(datum.value / pow(10, {_POWER}), '.3~g')"
_LABEL = (
    f"{_POWER} == 0 || {_POWER} == 1 ? format(datum.value, '~g') : "
    f"({_FACTOR} == '1' ? '' : {_FACTOR} + '×') + '10' + {_RAISED}"
)
"""A Vega expression of such a text as 10⁵ or 2×10⁵; 1 and 10 stay as they are."""


def digits(column: pl.Series) -> Any:
    return ".4g" if column.dtype.is_float() else alt.Undefined


def layered(layers: list[alt.Chart], title: str) -> alt.LayerChart:
    return alt.LayerChart(layer=layers, title=title or alt.Undefined)
