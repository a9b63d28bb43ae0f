"""Grids of images, read back by another library."""

import io

import numpy as np
import pytest

from advlab.core.errors import AdvlabError
from advlab.report.image_grid import image_grid


def read(png: bytes) -> np.ndarray:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as opened:
        assert opened.format == "PNG"
        return np.asarray(opened.convert("RGB")).astype(int)


def colours_of(pixels: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(one) for one in pixels.reshape(-1, 3)}


def test_every_pixel_of_a_tile_is_where_it_should_be():
    """A 2x2 image of four colours is enlarged to 40: four squares of 20 by 20 pixels each."""
    colours = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]], [[0, 0], [1, 0]]], float)
    pixels = read(image_grid({"": colours[None]}, tile=40))
    for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0)):
        ys, xs = np.nonzero((pixels == colour).all(2))
        assert len(ys) == 400
        assert (np.ptp(ys), np.ptp(xs)) == (19, 19)
    red, green, blue = (
        np.argwhere((pixels == colour).all(2)).min(0)
        for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255))
    )
    assert (green - red).tolist() == [0, 20]
    assert (blue - red).tolist() == [20, 0]


def test_signed_rows_are_scaled_each_by_its_own_largest_size_and_zero_is_grey():
    small, large = np.zeros((1, 4, 4)), np.zeros((1, 4, 4))
    small[0, 0, 0], large[0, 0, 0], large[0, 3, 3] = 1e-3, -7, 3.5
    pixels = read(image_grid({"w": np.stack([small, large])}, signed={"w"}, tile=4))
    found = colours_of(pixels)
    assert {(255,) * 3, (128,) * 3, (0,) * 3, (191,) * 3} <= found
    plain = read(image_grid({"w": np.full((1, 1, 4, 4), 0.2)}, low=0.0, high=0.4, tile=8))
    assert (128, 128, 128) in colours_of(plain)


def test_labels_and_rows_of_different_sizes_have_their_place():
    rows = {
        "filters": np.random.default_rng(0).normal(size=(5, 3, 7, 7)),
        "images": np.ones((2, 12, 12)),
    }
    bare = read(image_grid({name: rows[name] for name in rows}, signed={"filters"}))
    named = read(
        image_grid(rows, signed={"filters"}, columns=["a", "b"], title="Filters & <images>")
    )
    assert named.shape[0] > bare.shape[0]
    assert named.shape[1] == bare.shape[1]
    dark = (named[:18] < 100).all(2)
    assert dark.sum() > 50  # the title is written
    longer = read(image_grid({"a much longer label": rows["images"]}))
    assert longer.shape[1] > read(image_grid({"x": rows["images"]})).shape[1] + 80


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        ({}, {}, "at least one row"),
        ({"a": np.ones((2, 2, 5, 5))}, {}, "1 or 3 colours"),
        ({"a": np.ones((5, 5))}, {}, "1 or 3 colours"),
        ({"a": np.ones((1, 5, 5))}, {"signed": {"b"}}, "signed rows"),
        ({"a": np.ones((1, 5, 5))}, {"columns": ["x", "y"]}, "labels of columns"),
        ({"a": np.ones((1, 5, 5))}, {"low": 1.0}, "high above low"),
    ],
)
def test_what_is_no_grid_is_refused(rows, more, message):
    with pytest.raises(AdvlabError, match=message):
        image_grid(rows, **more)
