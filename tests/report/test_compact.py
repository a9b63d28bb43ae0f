"""Drawings in fewer letters: the same pixels, and nothing that is not seen."""

import io
import re

import numpy as np
import polars as pl
import pytest
from PIL import Image
from sample_results import convergence, lasso

from advlab.report import figure
from advlab.report.charts import curves, panels, stacked
from advlab.report.compact import abbreviated, addresses, by_place, compact, rounded
from advlab.report.page import chart_part
from advlab.report.tiles import tile_chart, tile_rows


def pixels(svg: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(figure.png(svg))).convert("RGB"))


def with_head(svg: str) -> str:
    return svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)


@pytest.mark.parametrize("result", [convergence, lasso])
def test_a_compact_drawing_has_the_same_pixels_and_fewer_letters(result):
    whole = figure.svg(result().chart)
    small = compact(whole)
    assert len(small) < 0.85 * len(whole)
    assert np.array_equal(pixels(with_head(small)), pixels(whole))


@pytest.mark.parametrize("result", [convergence, lasso])
def test_lines_and_circles_in_their_shortest_form_are_the_same_pixels(result):
    small = compact(figure.svg(result().chart))
    short = abbreviated(small)
    assert len(short) < len(small)
    assert np.array_equal(pixels(with_head(short)), pixels(with_head(small)))


def test_a_line_goes_by_steps_and_a_circle_is_one():
    arc = "M3.9,0A3.9,3.9,0,1,1,-3.9,0A3.9,3.9,0,1,1,3.9,0"
    assert abbreviated(
        '<path d="M0,210L27.8,210.1L27.5,9ZL1,1M-5,0.5L5,0.5" fill="red"/>'
        f'<path transform="translate(0,-14.5)" d="{arc}" fill="red"/><path d="{arc}"/>'
        '<path d="M0,0C1,1,2,2,3,3L4,4"/><clipPath d="M0,0L1,1"/>'
        '<line transform="translate(6.5,-2)" y2="-9.5" stroke="red"/><line y2="9"/>'
        '<line transform="translate(100.5,200.5)" x1="1" x2="-0.5" y1="3" y2="3"/>'
        '<line transform="rotate(9)" y2="9"/>'
    ) == (
        '<path d="M0,210l27.8,.1-.3-201.1Zl1-209M-5,.5l10,0" fill="red"/>'
        '<circle cy="-14.5" r="3.9" fill="red"/><circle r="3.9"/>'
        '<path d="M0,0C1,1,2,2,3,3L4,4"/><clipPath d="M0,0L1,1"/>'
        '<path d="M6.5-2v-9.5" stroke="red"/><line y2="9"/>'
        '<path d="M101.5,203.5h-1.5"/>'
        '<line transform="rotate(9)" y2="9"/>'
    )


def test_what_is_not_seen_is_left_out_and_what_is_shared_is_said_once():
    small = compact(
        '<svg xmlns="http://www.w3.org/2000/svg"><g><g transform="translate(0,0)">'
        '<text opacity="0">gone</text><path d="M0 0"/>'
        '<text transform="translate(3,4)" fill="#222" opacity="1">a</text>'
        '<text transform="translate(5,-6.5)" fill="#222" font-weight="normal">b</text></g></g>'
        '<linearGradient x1="0" x2="0" y1="1" y2="0"/><clipPath><path d="M0 0h9v9Z"/></clipPath>'
        '<g transform="translate(1,2)"><g transform="translate(3,4)"><line x2="9" y2="0"/></g></g>'
        "</svg>"
    )
    assert small == (
        '<svg><g fill="#222"><text x="3" y="4">a</text><text x="5" y="-6.5">b</text></g>'
        '<linearGradient x1="0" x2="0" y1="1" y2="0"/><clipPath><path d="M0 0h9v9Z"/></clipPath>'
        '<g transform="translate(4,6)"><line x2="9"/></g></svg>'
    )


def test_numbers_of_a_chart_have_six_digits():
    assert rounded({"a": [1 / 3, 1234567, "x", None], "b": float("inf")}) == {
        "a": [0.333333, 1234567, "x", None],
        "b": float("inf"),
    }


def tiles() -> dict:
    rng = np.random.default_rng(0)
    rows = pl.concat(
        [tile_rows(rng.random((3, 8, 8)), row="clean"), tile_rows(rng.random((3, 8, 8)), row="PGD")]
    )
    table = pl.DataFrame({"epoch": [0, 1, 2], "error": [0.5, 0.25, 0.2]})
    return stacked(tile_chart(rows, title="Filters"), panels([curves(table, "epoch", "error")]))


def test_a_picture_stands_in_the_page_once():
    part = chart_part(tiles().to_dict(), "fig", "Figure")
    drawn = addresses(part["drawing"].markup)
    assert len(drawn) == 6
    assert by_place({"rows": [{"picture": drawn[1]}, {"picture": "other"}, 3]}, drawn) == {
        "rows": [{"picture": "picture:1"}, {"picture": "other"}, 3]
    }
    assert by_place({"a": 1}, []) == {"a": 1}


def test_numbers_of_charts_below_each_other_are_all_there_and_pictures_have_none():
    numbers = figure.table(tiles().to_dict())
    assert numbers["error"].to_list() == ["0.5", "0.25", "0.2"]
    table = pl.DataFrame({"x": [1, 2], "y": [3.0, 4.0]})
    block = panels([curves(table, "x", "y", title="one"), curves(table, "x", "y")], title="Block")
    found = figure.table(stacked(block, panels([curves(table, "x", "y")])).to_dict())
    names = found["panel"].unique(maintain_order=True).to_list()
    assert names == ["Block: one", "Block", "Panel 3"]
    assert not re.search(r"data:image", found.write_csv())
