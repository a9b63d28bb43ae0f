"""How many linear regions networks have, and how many they could have."""

import altair as alt
import polars as pl

from .....report.charts import HEIGHT, WIDTH, AnyChart, panels
from .....report.theme import QUIET
from .dodged import dodged_points

BOUNDS = {"cells": "sum of C(n, i), one layer", "signs": "2^n, Proposition D.5"}


def figure(table: pl.DataFrame) -> AnyChart:
    """Regions beside their bounds, and pieces of the decision boundary, for each D and n.

    Args:
        table: one row per network, with its kind, regions and pieces, and the bounds.
    """
    shown = table.with_columns(size=pl.format("{}, {}", "d", "n")).sort("d", "n")
    x = "dimension D, units n"
    regions = dodged_points(
        shown, "size", "regions", "kind", title="linear regions in the cube", x_title=x,
        y_title="number", log_y=True,
    )  # fmt: skip
    pieces = dodged_points(
        shown, "size", "pieces", "kind", x_title=x,
        title="pieces of the decision boundary", y_title="number",
    )  # fmt: skip
    return panels([alt.LayerChart(layer=[regions, _bounds(shown)]), pieces], columns=2)


def _bounds(shown: pl.DataFrame) -> alt.Chart:
    """What no network can have more of, over the boxes of each size."""
    # The axis is shared with the points, whose column is x, and keeps its order if this is too.
    rows = shown.select("cells", "signs", x="size").unique(maintain_order=True)
    rows = rows.unpivot(list(BOUNDS), index="x", variable_name="bound", value_name="number")
    rows = rows.with_columns(pl.col("bound").replace_strict(BOUNDS))
    names = list(BOUNDS.values())
    shape = alt.Shape("bound:N", title="bound", sort=names).scale(
        domain=names, range=["triangle-down", "stroke"]
    )
    chart = alt.Chart(rows, width=WIDTH, height=HEIGHT)
    return chart.mark_point(size=90, color=QUIET, strokeWidth=2).encode(
        x=alt.X("x:O", sort=rows["x"].unique(maintain_order=True).to_list()),
        y=alt.Y("number:Q"), shape=shape,
    )  # fmt: skip
