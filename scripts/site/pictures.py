"""Panels of the stored pictures, for tiles that are too small for a whole figure.

A figure's panels are what blank rows and columns part; legends between them are left out. They are
cut when the site is built, from docs/images, so that nothing is stored twice.
"""

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

Box = tuple[int, int, int, int]
"""Left, top, right and bottom, in pixels."""

GAP = 24
"""So many blank pixels part two panels; an axis is nearer to its title."""
LINE = 6
"""So many blank rows part two lines of a legend."""
LEAST = 150
"""A panel is at least so wide and high, a legend is not."""
MARGIN = 8
SHADES = 64
_INK = 12


class NoPanel(ValueError):
    """A picture has not the panel that is asked for."""


def panels(picture: Image.Image) -> list[Box]:
    """The panels of a figure, row by row.

    Args:
        picture: dark on white.
    """
    ink = np.asarray(picture.convert("L")) < 255 - _INK
    found = []
    for first, bottom in _parts(ink.any(1)):
        # A legend may span panels: the row starts where it falls into most columns.
        lines = _parts(ink[first : min(first + LEAST, bottom)].any(1), LINE)
        starts = [(first + line, _parts(ink[first + line : bottom].any(0))) for line, _ in lines]
        top, columns = max(starts, key=lambda start: len(start[1]))
        for left, right in columns:
            rows = np.flatnonzero(ink[top:bottom, left:right].any(1))
            box = (left, top + int(rows[0]), right, top + int(rows[-1]) + 1)
            if min(box[2] - box[0], box[3] - box[1]) >= LEAST:
                found.append(box)
    return found


def _parts(inked: np.ndarray, gap: int = GAP) -> list[tuple[int, int]]:
    """Stretches of ink that so many blank lines part."""
    places = np.flatnonzero(inked)
    if not len(places):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(places) > gap) + 1).tolist(), len(places)]
    return [(int(places[a]), int(places[b - 1]) + 1) for a, b in pairwise(cuts)]


def tile(file: Path, chosen: tuple[int, ...], ratio: float, width: int) -> bytes:
    """Some neighbouring panels of a picture as a PNG of its own, white around them.

    Args:
        file: the picture.
        chosen: the panels by number, from 1; none for all of it.
        ratio: width over height of the tile.
        width: of the tile, in pixels, if it has to be made smaller.

    Raises:
        NoPanel: the picture has no panel of such a number.
    """
    picture = Image.open(file).convert("RGB")
    if not chosen:
        return _padded(picture, ratio, width)
    known = panels(picture)
    if max(chosen) > len(known):
        raise NoPanel(f"panel {max(chosen)} of {file.name}, which has {len(known)}")
    return _padded(_cut(picture, [known[one - 1] for one in chosen]), ratio, width)


def small(file: Path, ratio: float, width: int) -> bytes:
    """The first panel of a picture as a PNG of its own; all of a picture that has none."""
    picture = Image.open(file).convert("RGB")
    return _padded(_cut(picture, panels(picture)[:1]), ratio, width)


def _cut(picture: Image.Image, boxes: list[Box]) -> Image.Image:
    if not boxes:
        return picture
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return picture.crop((min(lefts), min(tops), max(rights), max(bottoms)))


def _padded(picture: Image.Image, ratio: float, width: int) -> bytes:
    inner = (picture.width + 2 * MARGIN, picture.height + 2 * MARGIN)
    size = max(inner[0], round(inner[1] * ratio)), max(inner[1], round(inner[0] / ratio))
    ground = Image.new("RGB", size, "white")
    ground.paste(picture, ((size[0] - picture.width) // 2, (size[1] - picture.height) // 2))
    if size[0] > width:
        ground = ground.resize((width, round(width / ratio)), Image.Resampling.LANCZOS)
    kept = io.BytesIO()
    ground.quantize(SHADES, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
    return kept.getvalue()
