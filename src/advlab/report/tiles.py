"""Rows of images inside a chart: pictures as rows of a table, drawn from it like all else.

compute: tile_rows(filters, row="clean", signed=True)   # rows of the stored table
figure: tile_chart(table.filter(part="tile"))
"""

from collections.abc import Sequence

import altair as alt
import polars as pl
from numpy.typing import ArrayLike

from ..core.errors import AdvlabError
from .image_grid import TILE, tile_pixels
from .pictures import address

GAP = 3


def tile_rows(
    images: ArrayLike,
    *,
    row: str,
    panel: str = "",
    columns: Sequence[str] = (),
    signed: bool = False,
    low: float = 0.0,
    high: float = 1.0,
) -> pl.DataFrame:
    """One row of a grid of pictures, as rows of a table with part "tile".

    Args:
        images: (n, colours, height, width) or (n, height, width), with one or three colours.
        row: the label of this row of pictures.
        panel: the grid that it belongs to, where a figure has several.
        columns: a label above each picture; numbers if left out, which are not shown.
        signed: whether values have a sign, as filters and perturbations: each picture is scaled by
            its own largest size, and zero is mid-grey.
        low: the value that is black in other pictures.
        high: the value that is white in them.

    Returns:
        Columns part, panel, row, column, label and picture, the address of a PNG.

    Example:
        from advlab.report.tiles import tile_rows
        tile_rows(net.conv1.weight.detach().numpy()[:12], row="clean", signed=True)
    """
    pixels = tile_pixels(row, images, signed, low, high, TILE)
    if columns and len(columns) != len(pixels):
        raise AdvlabError(f"{len(pixels)} labels of columns", len(columns))
    return pl.DataFrame({
        "part": "tile", "panel": panel, "row": row, "column": range(len(pixels)),
        "label": list(columns) or [""] * len(pixels),
        "picture": [address(one) for one in pixels],
    })  # fmt: skip


def tile_chart(rows: pl.DataFrame, *, title: str = "", side: int = TILE) -> alt.Chart:
    """The pictures in their grid, rows from the top in the order of the table.

    Args:
        rows: what `tile_rows` made, of one panel and one replicate.
        title: a line above.
        side: of a picture on the page.

    Example:
        from advlab.report.tiles import tile_chart
        tile_chart(table.filter(part="tile", seed=0), title="Filters of the first layer")
    """
    if rows.is_empty() or rows.select("row", "column").is_duplicated().any():
        raise AdvlabError("one picture for each row and column", f"{rows.height} rows")
    labels = dict(rows.select("column", "label").iter_rows())
    shown = any(labels.values())
    named = alt.Axis(
        labelExpr=f"{list(labels.values())}[datum.value]", orient="top", domain=False, grid=False,
        labelLimit=0, labelOverlap=False, title=None,
    )  # fmt: skip
    return (
        alt.Chart(
            rows.select("row", "column", "picture"),
            width=alt.Step(side + GAP),
            height=alt.Step(side + GAP),
            title=title or alt.Undefined,
        )
        .mark_image(width=side, height=side)
        .encode(
            x=alt.X("column:O", title=None, axis=named if shown else None),
            y=alt.Y("row:N", title=None, sort=rows["row"].unique(maintain_order=True).to_list())
            .axis(domain=False, grid=False, labelLimit=0),
            url="picture:N",
        )
    )  # fmt: skip
