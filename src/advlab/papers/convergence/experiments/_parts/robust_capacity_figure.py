"""Balls in the plane, where they end, widths, counts, and a brittle fit."""

import altair as alt
import numpy as np
import polars as pl

from .....report.charts import WIDTH, AnyChart, panels, points
from .....report.theme import CATEGORIES
from .....report.to_scale import to_scale
from ...theory import capacity

LABELLINGS = {
    "Two labels: two disjoint balls": ([1, -1, -1, 1], [-1, 1, -1, 1]),
    "One label: one ball is enough": ([1, 1, -1, 1], [-1, -1, 1, 1]),
}
"""Of the points of two clusters in the plane, two per panel."""
EPS, ROW = 0.9, 4.6
"""In units of delta: the spread of a cluster, and the distance of two pictures in a panel."""
SEEN = ((3.4, 14.6), (-2.3 - ROW, 2.6))
"""What part of the plane is drawn; c_1 and c_2 lie at 6 and 12."""

SPLITS = ("1 to d \u2212 1", "in halves")


def figure(table: pl.DataFrame) -> AnyChart:
    return panels(
        [
            *(_plane(title, labellings) for title, labellings in LABELLINGS.items()),
            _ends(table),
            _widths(table),
            _counts(table),
            _brittle(table),
        ],
        columns=3,
    )


def _plane(title: str, labellings: tuple[list[int], ...]) -> AnyChart:
    """Balls and points to scale, one labelling above the other."""
    (left, right), (bottom, top) = SEEN
    size = {"width": WIDTH, "height": WIDTH * (top - bottom) / (right - left)}
    drawn = [_drawn(row, labels) for row, labels in enumerate(labellings)]
    rims, marks = (pl.concat(parts) for parts in zip(*drawn, strict=True))
    x = alt.X("x:Q", title="first coordinate / delta", scale=alt.Scale(domain=[left, right]))
    y = alt.Y("y:Q", title=None, axis=None, scale=alt.Scale(domain=[bottom, top]))
    hues = alt.Scale(domain=["+", "\u2212"], range=CATEGORIES[:2])
    discs = alt.Chart(rims, **size).mark_line(strokeWidth=1.5, filled=True, fillOpacity=0.22)
    discs = discs.encode(
        x=x.axis(values=[6, 12], domain=False),
        y=y,
        detail="ball:N",
        order="angle:Q",
        fill=alt.Fill("sign:N", scale=hues, legend=None),
        stroke=alt.Stroke("sign:N", scale=hues, legend=None),
    )
    places = alt.Chart(marks, **size).encode(x=x, y=y)
    dots = places.mark_circle(size=150, opacity=1, stroke="white", strokeWidth=1.5)
    dots = dots.encode(color=alt.Color("sign:N", scale=hues, legend=None))
    signs = places.mark_text(color="white", fontSize=11, fontWeight="bold", dy=0.5)
    layers = [discs, dots, signs.encode(text="sign:N")]
    return to_scale(alt.LayerChart(layer=layers, title=title))


def _drawn(row: int, labels: list[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rims of the balls of one labelling, and its points, moved down to their row."""
    balls = capacity.shatter(4, 2, 1.0, EPS, labels)
    angle = np.linspace(0, 2 * np.pi, 73)
    rims = [
        pl.DataFrame({"x": x + np.cos(angle), "y": y + np.sin(angle) - row * ROW, "angle": angle})
        .with_columns(sign=pl.lit(_sign(label)), ball=pl.lit(f"{row}, {i}"))
        for i, ((x, y), label) in enumerate(zip(balls.centres, balls.signs, strict=True))
        if x > 0
    ]  # fmt: skip
    x, y = balls.points.T
    marks = {"x": x, "y": y - row * ROW, "sign": [_sign(label) for label in balls.labels]}
    return pl.concat(rims), pl.DataFrame(marks)


def _sign(label: float) -> str:
    return "+" if label > 0 else "\u2212"


def _ends(table: pl.DataFrame) -> AnyChart:
    """Dots: where the construction ends, by bisection. Dashed: delta/gamma_k."""
    found = table.filter(pl.col("quantity") == "largest eps").with_columns(
        split=pl.when(pl.col("n") == 1)
        .then(pl.lit("1 to d \u2212 1"))
        .otherwise(pl.lit("in halves"))
    )
    dims = found["d"].unique().sort().to_list()
    formula = pl.DataFrame(
        [
            {"d": d, "split": name, "value": 1 / capacity.gamma(d, k)}
            for d in dims
            for name, k in zip(SPLITS, (1, d // 2), strict=True)
        ]
    )
    return points(
        found,
        "d",
        "value",
        "split",
        theory=formula,
        title="Largest eps of the construction",
        x_title="dimension d",
        y_title="largest eps / delta",
        log_x=True,
        log_y=True,
    )


def _widths(table: pl.DataFrame) -> AnyChart:
    kinds = {"plain width": "points", "robust width": "balls"}
    rows = _renamed(table, kinds, "fitted").sort("d", maintain_order=True)
    rows = rows.with_columns(pl.col("d").cast(pl.String))
    return points(
        rows,
        "d",
        "value",
        "fitted",
        title="Least width that training fits",
        x_title="dimension d",
        y_title="width",
    )


def _counts(table: pl.DataFrame) -> AnyChart:
    kinds = {"plain parameters": "points", "linf parameters": "linf balls",
             "l2 parameters": "l2 balls"}  # fmt: skip
    rows = _renamed(table, kinds, "network for").with_columns(size=pl.col("n") * pl.col("d"))
    dots = points(
        rows,
        "size",
        "value",
        "network for",
        x_title="n d, for n = d",
        y_title="parameters",
        log_x=True,
        log_y=True,
    )
    title = "Parameters that fit n points; grey: VC, n d/2"
    return alt.LayerChart(layer=[_forced(rows), dots], title=title)


def _forced(rows: pl.DataFrame) -> alt.Chart:
    """floor(n/2) d, which the VC dimension forces: a grey line, a number of another kind."""
    forced = rows.select(x="size", y=pl.col("n") // 2 * pl.col("d")).unique().sort("x")
    line = alt.Chart(forced).encode(x="x:Q", y="y:Q")
    return line.mark_line(strokeDash=[5, 4], strokeWidth=1.5, color=CATEGORIES[6])


def _brittle(table: pl.DataFrame) -> AnyChart:
    rows = _renamed(table, {"clean": "points", "robust": "balls"}, "fitted")
    return points(
        rows.with_columns(size=pl.format("{}, {}", pl.col("n"), pl.col("d"))),
        "size",
        "value",
        "fitted",
        title="What d + 2n parameters fit",
        x_title="points n, dimension d",
        y_title="share fitted",
    )


def _renamed(table: pl.DataFrame, kinds: dict[str, str], column: str) -> pl.DataFrame:
    """The rows of some quantities, which go by other names in a column, in that order."""
    parts = [
        table.filter(pl.col("quantity") == quantity).with_columns(pl.lit(name).alias(column))
        for quantity, name in kinds.items()
    ]
    return pl.concat(parts)
