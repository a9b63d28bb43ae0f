"""Pictures as rows of a table, and the chart that puts them into a grid."""

import base64
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advlab.core.errors import AdvlabError
from advlab.report.charts import panels, points, stacked
from advlab.report.tiles import tile_chart, tile_rows

Image = pytest.importorskip("PIL.Image")


def pixels(address: str) -> np.ndarray:
    head, _, data = address.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))


@given(st.integers(0, 2**31), st.sampled_from([1, 3]), st.integers(4, 12))
def test_pictures_are_the_images_enlarged_with_zero_in_the_middle(seed, colours, side):
    images = np.random.default_rng(seed).normal(size=(2, colours, side, side))
    rows = tile_rows(images, row="filters", signed=True)
    for image, address in zip(images, rows["picture"], strict=True):
        found = pixels(address)
        times = found.shape[0] // side
        assert found.shape == (times * side, times * side, 3)
        expected = 255 * (0.5 + image / (2 * np.abs(image).max()))
        small = np.moveaxis(found[::times, ::times], 2, 0)[:colours]
        assert np.abs(small - expected).max() <= 0.51


def test_a_chart_has_one_picture_per_place_and_rows_in_order():
    images = np.zeros((3, 3, 8, 8))
    table = pl.concat(tile_rows(images, row=name, columns=["a", "b", "c"]) for name in ("z", "y"))
    chart = tile_chart(table, title="two rows").to_dict()
    (rows,) = chart["datasets"].values()
    assert len(rows) == 6
    assert chart["encoding"]["y"]["sort"] == ["z", "y"]
    with pytest.raises(AdvlabError, match="one picture for each row and column"):
        tile_chart(pl.concat([table, table]))
    with pytest.raises(AdvlabError, match="3 labels of columns"):
        tile_rows(images, row="z", columns=["a"])


def test_pictures_and_panels_stand_one_below_the_other():
    grid = tile_chart(tile_rows(np.zeros((2, 8, 8)), row="a"))
    points_chart = points(pl.DataFrame({"x": [1, 2], "y": [3.0, 4.0]}), "x", "y")
    whole = stacked(grid, panels([points_chart])).to_dict()
    assert [("mark" in one, "concat" in one) for one in whole["vconcat"]] == [
        (True, False),
        (False, True),
    ]
