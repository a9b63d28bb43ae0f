"""Rows of labelled images as one picture: filters over training, images and their perturbations.

Arrays in, a PNG file out. The tiles are pixels of our own making, the labels are drawn by
vl-convert, which every chart of a report goes through as well.
"""

from collections.abc import Collection, Mapping, Sequence
from html import escape

import numpy as np
import vl_convert
from numpy.typing import ArrayLike

from ..core.errors import AdvlabError
from .pictures import CHANNELS, address

FONT = 12
GAP = 2
"""Pixels between tiles."""
TILE = 48
"""The least side of a tile, to which small filters are enlarged."""


def image_grid(
    rows: Mapping[str, ArrayLike],
    *,
    columns: Sequence[str] = (),
    signed: Collection[str] = (),
    low: float = 0.0,
    high: float = 1.0,
    tile: int = TILE,
    title: str = "",
) -> bytes:
    """One PNG with a row of images per name.

    Args:
        rows: for each label the images, (n, colours, height, width) or (n, height, width), with one
            or three colours. Rows may differ in number and size of images.
        columns: a label above each column.
        signed: names of rows whose values have a sign, such as filters and perturbations: each
            image is scaled by its own largest size, and zero is mid-grey.
        low: the value that is black in all other rows.
        high: the value that is white there.
        tile: the least side of a tile; images are enlarged by whole numbers, pixels stay squares.
        title: a line above all.

    Returns:
        The bytes of a PNG file.

    Example:
        from pathlib import Path
        from advlab.report.image_grid import image_grid
        picture = image_grid({"clean": w, "robust": w1}, signed={"clean", "robust"})
        Path("filters.png").write_bytes(picture)
    """
    if not rows:
        raise AdvlabError("at least one row of images", "none")
    if unknown := sorted(set(signed) - set(rows)):
        raise AdvlabError("signed rows among those given", ", ".join(unknown))
    if not high > low:
        raise AdvlabError("high above low", f"{low} and {high}")
    made = {
        name: tile_pixels(name, values, name in signed, low, high, tile)
        for name, values in rows.items()
    }
    side = max(max(one.shape[1:3]) for one in made.values())
    count = max(len(one) for one in made.values())
    if len(columns) > count:
        raise AdvlabError(f"at most {count} labels of columns", len(columns))
    return vl_convert.svg_to_png(_svg(made, columns, title, side, count), scale=1.0)


def _svg(
    made: Mapping[str, np.ndarray], columns: Sequence[str], title: str, side: int, count: int
) -> str:
    """The whole picture; every row of tiles is one image in it."""
    left = 10 + int(0.62 * FONT * max(len(name) for name in made))
    top = 6 + (FONT + 8 if title else 0)
    start = top + (FONT + 6 if columns else 0)
    width, height = left + count * (side + GAP) + GAP, start + len(made) * (side + GAP) + GAP
    parts = [f'<rect width="{width}" height="{height}" fill="white"/>']
    if title:
        parts.append(_text(title, 6, FONT + 4, "start", bold=True))
    for k, name in enumerate(columns):
        middle = left + k * (side + GAP) + side / 2
        parts.append(_text(name, middle, top + FONT, "middle"))
    for k, (name, tiles) in enumerate(made.items()):
        y = start + k * (side + GAP)
        parts.append(_text(name, left - 6, y + side / 2 + FONT / 3, "end"))
        strip = _strip(tiles, side)
        parts.append(
            f'<image x="{left}" y="{y}" width="{strip.shape[1]}" height="{strip.shape[0]}" '
            f'href="{address(strip)}" image-rendering="pixelated"/>'
        )
    size = f'width="{width}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>'


def _text(words: str, x: float, y: float, anchor: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    style = f'font-family="sans-serif" font-size="{FONT}" fill="#222"{weight}'
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" {style}>{escape(words)}</text>'


def _strip(tiles: np.ndarray, side: int) -> np.ndarray:
    """Tiles side by side, each in the middle of a white square."""
    out = np.full((side, len(tiles) * (side + GAP) - GAP, tiles.shape[3]), 255, np.uint8)
    height, width = tiles.shape[1:3]
    y = (side - height) // 2
    for k, one in enumerate(tiles):
        x = k * (side + GAP) + (side - width) // 2
        out[y : y + height, x : x + width] = one
    return out


def tile_pixels(
    name: str, values: ArrayLike, signed: bool, low: float, high: float, tile: int
) -> np.ndarray:
    """Images as bytes, (n, height, width, 3), enlarged by a whole number.

    Args:
        name: what errors call them.
        values: as a row of `image_grid`.
        signed: whether zero is mid-grey.
        low: what is black otherwise.
        high: what is white.
        tile: the least side that they are enlarged to.
    """
    images = np.asarray(values, dtype=float)
    images = images[:, None] if images.ndim == 3 else images
    if images.ndim != 4 or images.shape[1] not in CHANNELS or 0 in images.shape:
        raise AdvlabError(
            f"{name}: images of shape (n, colours, height, width) with 1 or 3 colours",
            np.shape(values),
        )
    if signed:
        largest = np.abs(images).max((1, 2, 3), keepdims=True)
        scaled = 0.5 + images / (2 * np.where(largest > 0, largest, 1.0))
    else:
        scaled = (images - low) / (high - low)
    pixels = np.round(255 * np.nan_to_num(scaled).clip(0, 1)).astype(np.uint8)
    pixels = np.repeat(np.moveaxis(pixels, 1, 3), 3 // pixels.shape[1], axis=3)
    times = max(1, -(-tile // max(pixels.shape[1:3])))
    return pixels.repeat(times, axis=1).repeat(times, axis=2)
