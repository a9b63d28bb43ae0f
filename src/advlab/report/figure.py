"""A chart without a browser: a drawing that follows the page's colours, files, and its numbers."""

import base64
import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import polars as pl
import vl_convert
from altair import SCHEMA_VERSION
from markupsafe import Markup

from .colours import said_once
from .compact import abbreviated, compact
from .fitting import fitted
from .symbols import scripted, typeset
from .theme import CATEGORIES, GROUND, INK, LINES, QUIET, theme

_COMMON = str.maketrans("⟨⟩∼", "‹›~")
"""Letters for a picture's font; a text with others would be set in another font as a whole."""
_RARE = re.compile(
    r"<text\b[^>]*>(?:(?!</text>).)*?[∇⌈⌉⌊⌋\u0302\u0303](?:(?!</text>).)*</text>", re.DOTALL
)
"""Texts with letters that the converter's own font lacks or sets beside their place."""
_WIDE = "DejaVu Sans, Lucida Grande, Segoe UI Symbol, sans-serif"
"""Fonts without serifs that have them; else the whole text would be set in one with serifs."""
VEGA_LITE = ".".join(SCHEMA_VERSION.split(".")[:2])
_VARIABLES = {INK: "--ink", QUIET: "--quiet", LINES: "--grid", GROUND: "--ground"} | {
    colour: f"--c{place}" for place, colour in enumerate(CATEGORIES)
}

_GEOMETRY = re.compile(
    r'\s(?:d|points|x|y|x1|x2|y1|y2|cx|cy|r|rx|ry|width|height)="[^"]*"|\btranslate\([^)]*\)'
)
"""Where a tenth of a pixel is enough; words such as the labels of an axis stay as they are."""
_DECIMALS = re.compile(r"-?\d+\.\d{2,}(?![\d%e])")
_RGB = re.compile(r"\brgb\((\d+), (\d+), (\d+)\)")

_LEFT_OUT = re.compile(
    r'\s(?:(?:xlink:)?href="(?!data:image/)[^"]*"'
    r'|(?:aria-[a-z]+|role|class|target|font-family|pointer-events)="[^"]*")'
)


class Undrawable(ValueError):
    """A chart that the converter cannot draw, or not at this size; its message is one line."""

    def __init__(self, error: Exception):
        lines = str(error).strip().splitlines() or [type(error).__name__]
        super().__init__(f"the converter says: {lines[0]:.200}")


def svg(spec: Mapping[str, Any]) -> str:
    """The chart as an SVG file, in light colours.

    Raises:
        Undrawable: the specification cannot be drawn.
    """
    chart = fitted(typeset(said_once(spec)))
    try:
        text = vl_convert.vegalite_to_svg(
            chart, vl_version=VEGA_LITE, config=theme(), allowed_base_urls=[]
        )
    except (ValueError, RuntimeError) as error:
        raise Undrawable(error) from None
    return scripted(text)


def png(drawing: str, scale: float = 2.0) -> bytes:
    """A drawing as a PNG file.

    Args:
        drawing: an SVG file.
        scale: pixels of the picture for one of the drawing.

    Raises:
        Undrawable: it is no drawing, or too large a picture.
    """
    try:
        return vl_convert.svg_to_png(_with_fonts(drawing), scale=scale)
    except (ValueError, RuntimeError) as error:
        raise Undrawable(error) from None


def _with_fonts(drawing: str) -> str:
    """A drawing whose texts can all be set without serifs."""
    return _RARE.sub(_in_wide, drawing.translate(_COMMON))


def _in_wide(found: re.Match[str]) -> str:
    text = re.sub(r'\sfont-family="[^"]*"', "", found[0])
    return text.replace("<text", f'<text font-family="{_WIDE}"', 1)


@dataclass(frozen=True)
class Drawing:
    """An SVG element to stand in a page, and how large it is."""

    markup: Markup
    width: int
    height: int


def drawing(spec: Mapping[str, Any], name: str, label: str) -> Drawing | None:
    """The chart as a part of a page: it follows the page's colours, and holds no link.

    Args:
        spec: a Vega-Lite specification.
        name: puts its inner names apart from those of other drawings.
        label: what a screen reader says.

    Returns:
        None if it cannot be drawn.
    """
    try:
        text = svg(spec)
    except Undrawable:
        return None
    return inside_page(text, name, label)


def inside_page(text: str, name: str, label: str) -> Drawing | None:
    """An SVG file as a part of a page."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    if size is None or re.search(r"<(script|foreignObject|iframe|style)\b|</noscript", text, re.I):
        return None
    try:
        text = compact(_LEFT_OUT.sub("", text))
    except ElementTree.ParseError:  # a name with letters that no SVG may hold
        return None
    inner = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    inner = re.sub(r'(\sid="|url\(#)', rf"\g<1>{name}-", inner)
    inner = abbreviated(_GEOMETRY.sub(_rounded, inner))
    inner = _by_variables(_RGB.sub(_hexadecimal, inner))
    width, height = (math.ceil(float(one)) for one in size.groups())
    markup = Markup(
        '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}">'
        "{inner}</svg>"
    ).format(w=width, h=height, label=label, inner=Markup(inner))
    return Drawing(markup, width, height)


def _rounded(found: re.Match[str]) -> str:
    return _DECIMALS.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), found[0])


def _hexadecimal(found: re.Match[str]) -> str:
    return "#" + "".join(f"{int(one):02x}" for one in found.groups())


def _by_variables(inner: str) -> str:
    pattern = re.compile(rf'"({"|".join(map(re.escape, _VARIABLES))})"', re.IGNORECASE)
    names = {colour.lower(): name for colour, name in _VARIABLES.items()}
    return pattern.sub(lambda found: f'"var({names[found[1].lower()]})"', inner)


def packed(value: object) -> str:
    """Something for a script of the page, compressed and in letters that need no escape."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


@dataclass(frozen=True)
class ChartTable:
    """The numbers of one layer of a chart: data set, and columns as (field, title)."""

    title: str
    data: str
    columns: tuple[tuple[str, str], ...]


def tables(spec: Mapping[str, Any]) -> list[ChartTable]:
    """Where the numbers of a chart are, panel by panel; what is drawn twice is listed once.

    Pictures have no numbers. A panel is called by its title, behind that of the block it stands in;
    without one, by its place.

    Args:
        spec: a Vega-Lite specification.
    """
    found: dict[tuple[str, str], ChartTable] = {}
    panels = list(_panels(spec, "", {}))
    for place, (title, panel, above) in enumerate(panels, 1):
        title = title or (f"Panel {place}" if len(panels) > 1 else "")
        for part, source in _parts(panel, above):
            data = str(source.get("name"))
            rows = (spec.get("datasets") or {}).get(data)
            if not rows or "encoding" not in part or _mark(part) == "image":
                continue
            columns = _columns(part["encoding"], rows[0])
            known = found.get((title, data))
            if columns and (known is None or len(columns) > len(known.columns)):
                found[title, data] = ChartTable(title, data, tuple(columns.items()))
    return list(found.values())


_Part = Mapping[str, Any]


def _panels(spec: _Part, above: str, data: _Part) -> Iterator[tuple[str, _Part, _Part]]:
    """The innermost panels: what they are called, the panel, and the data around it."""
    title = ": ".join(filter(None, (above, _words(spec.get("title")))))
    inner = spec.get("concat") or spec.get("hconcat") or spec.get("vconcat")
    if inner is None:
        yield title, spec, data
    for panel in inner or ():
        yield from _panels(panel, title, spec.get("data") or data)


def _parts(panel: _Part, data: _Part) -> Iterator[tuple[_Part, _Part]]:
    """A panel and the layers in it, each with its data."""
    data = panel.get("data") or data
    yield panel, data
    for layer in panel.get("layer", ()):
        yield from _parts(layer, data)


def _mark(part: _Part) -> str:
    mark = part.get("mark")
    return str(mark.get("type") if isinstance(mark, Mapping) else mark)


def _columns(encoding: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str]:
    told = encoding.get("tooltip")
    told = told if isinstance(told, list) else [told] if isinstance(told, dict) else []
    order = ("color", "fill", "stroke", "x", "y", "x2", "y2", "size", "shape", "text")
    # A tooltip says what a reader wants to know; other channels may be edges of cells.
    channels = told or [encoding[name] for name in order if isinstance(encoding.get(name), dict)]
    fields = {}
    for one in channels:
        field = one.get("field")
        if field in row and field not in fields:
            fields[field] = _words(one.get("title")) or field
    return fields


def table(spec: Mapping[str, Any]) -> pl.DataFrame:
    """The numbers of a chart in one table: panel, quantity, then a column per title.

    Args:
        spec: a Vega-Lite specification.
    """
    parts = []
    for one in tables(spec):
        rows = spec["datasets"][one.data]
        titles = _distinct([title for _, title in one.columns])
        columns = {
            title: pl.Series([_cell(row.get(field)) for row in rows], dtype=pl.String)
            for title, (field, _) in zip(titles, one.columns, strict=True)
        }
        parts.append(pl.DataFrame({"panel": [one.title] * len(rows), **columns}))
    return pl.concat(parts, how="diagonal") if parts else pl.DataFrame()


def _distinct(titles: list[str]) -> list[str]:
    seen: dict[str, None] = {}
    for title in titles:
        name, count = title, 2
        while name in seen or name == "panel":
            name, count = f"{title} {count}", count + 1
        seen[name] = None
    return list(seen)


def _cell(value: object) -> str | None:
    return None if value is None else str(value)


def _words(title: object) -> str:
    if isinstance(title, dict):
        title = title.get("text")
    if isinstance(title, list):
        title = " ".join(map(str, title))
    return str(title or "")
