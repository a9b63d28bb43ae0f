"""Charts fitted to a width: panels in a row, titles in lines, legends in rows, all in step.

`assets/page.js` does the same for the width of a reader's window.
"""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

from .theme import layers
from .to_scale import TO_SCALE

PAGE_WIDTH = 1000
"""What a drawing may be wide, in pixels; `page.js` fits charts to any other width."""
_NARROWEST, _WIDEST, _GAP, _EDGES = 205, 400, 72, 84
_BOLD, _LETTER = 7.2, 6.4
"""About how many pixels a letter of a panel's title, and of an axis' title, is wide."""
_BRACKETS = re.compile(r"\([^()]{1,14}\)")
_LEGEND, _LEGEND_ROW, _COLOUR_BAR, _OFFSET = 7, 16, 37, 10
"""What legends take above a panel, and how far a title is from what is below it, in pixels."""
_TITLE_LINE, _AXIS_LINE, _LABELS, _SLACK = 16, 14, 18, 18
"""Lines of titles of panels and of axes, labels of an axis, and what is free between two rows."""


def fitted(spec: Mapping[str, Any], width: int = PAGE_WIDTH) -> dict[str, Any]:
    """The chart with as many panels in a row as fit, in rows of even length.

    Titles that are too long for their panel or axis are cut into lines, and those of a row stand
    at one height.

    Args:
        spec: a Vega-Lite specification.
        width: of the page, in pixels.
    """
    chart = deepcopy(dict(spec))
    if "vconcat" in chart:
        return chart | {"vconcat": [fitted(part, width) for part in chart["vconcat"]]}
    panels = chart.pop("hconcat", None) or chart.pop("concat", None)
    most = max(1, (width - _EDGES + _GAP) // (_NARROWEST + _GAP))
    columns = min(len(panels or [0]), chart.get("columns") or math.inf)
    rows = math.ceil(columns / most)
    row = math.ceil(columns / rows)
    wide = min(_WIDEST, (width - _EDGES - (row - 1) * _GAP) // row)
    apart = ((chart.get("resolve") or {}).get("scale") or {}).get("color") == "independent"
    for panel in panels or [chart]:
        resized = False
        for part in layers(panel):
            if isinstance(part.get("width"), int | float):
                _keep_shape(panel, part, wide)
                part["width"], resized = wide, True
        if apart or not panels:
            _wrap_legend([panel], wide if apart else width - _EDGES)
        if resized:
            _wrap_titles(panel, wide)
    if panels:
        if not apart:
            _wrap_legend(panels, width - _EDGES)
        rows = [panels[start : start + row] for start in range(0, len(panels), row)]
        for one in rows if apart else []:
            _level(one)
        chart |= {"concat": panels, "columns": row}
        if len(rows) > 1:
            between = max(_between(*pair, apart) for pair in pairwise(rows))
            chart["spacing"] = {**(chart.get("spacing") or {}), "row": between}
    return chart


def _keep_shape(panel: Mapping[str, Any], part: Any, width: int) -> None:
    if TO_SCALE in ((panel.get("view") or {}).get("style") or ()):
        part["height"] = round(part["height"] * width / part["width"])


def _between(upper: Sequence[Any], lower: Sequence[Any], apart: bool) -> int:
    """The room that the axes of a row take, and below them the titles and legends of the next."""
    legends = max(_legend_height(panel) for panel in lower) if apart else 0
    titles = max(_count(panel.get("title")) for panel in lower)
    above = legends + (_OFFSET + _TITLE_LINE * titles if titles else 0)
    return round(max(map(_below, upper)) + above + _SLACK)


def _below(panel: Mapping[str, Any]) -> float:
    """What stands below a panel: labels, the title of its axis, and a legend that is put there."""
    found = 0.0
    for part in layers(panel):
        encoding = part.get("encoding") or {}
        x = encoding.get("x")
        if isinstance(x, dict) and x.get("axis", {}) is not None:
            angle = abs((x.get("axis") or {}).get("labelAngle") or 0)
            longest = max((len(str(name)) for name in x.get("sort") or []), default=0)
            slanted = _LETTER * longest * math.sin(math.radians(angle))
            lines = _count(x.get("title"))
            found = max(found, _LABELS + slanted + (8 + _AXIS_LINE * lines if lines else 0))
    return found + max(map(_legend_below, layers(panel)), default=0)


def _legend_below(part: Mapping[str, Any]) -> int:
    for one in (part.get("encoding") or {}).values():
        if isinstance(one, dict) and (one.get("legend") or {}).get("orient") == "bottom":
            names = (one.get("scale") or {}).get("domain") or one.get("sort") or [""]
            return 2 * _LEGEND + _LEGEND_ROW * len(names)
    return 0


def _count(title: Any) -> int:
    """How many lines a title has, with what stands below it."""
    if isinstance(title, dict):
        return _count(title.get("text")) + _count(title.get("subtitle"))
    return len(title) if isinstance(title, list) else int(bool(title))


def _wrap_legend(panels: Sequence[Any], width: float) -> None:
    """The legend of these panels takes as many rows as its names need; about 6 pixels a letter."""
    parts = [part for panel in panels for part in layers(panel)]
    found = [
        one
        for part in parts
        for channel in ("color", "stroke")
        if isinstance(one := (part.get("encoding") or {}).get(channel), dict)
        and isinstance(one.get("legend"), dict)
        and isinstance(one.get("sort"), list)
    ]
    longest = max((len(str(name)) for one in found for name in one["sort"]), default=1)
    title = max((len(str(one.get("title") or "")) for one in found), default=0)
    for one in found:
        room = width - 6.5 * title - 10
        one["legend"]["columns"] = max(1, int(room // (6.3 * longest + 32)))


def _wrap_titles(panel: Any, width: float) -> None:
    title = panel.get("title")
    text = title.get("text") if isinstance(title, dict) else title
    if isinstance(text, str):
        lines = _lines(text, (width + _GAP / 2) / _BOLD)
        panel["title"] = {**(title if isinstance(title, dict) else {}), "text": lines}
    for part in layers(panel):
        height = part.get("height") or panel.get("height") or 210
        for axis, room in (("x", width), ("y", height)):
            encoding = (part.get("encoding") or {}).get(axis) or {}
            title = encoding.get("title")
            if isinstance(title, str) and isinstance(room, int | float):
                encoding["title"] = _lines(title, room / _LETTER)


def _lines(text: str, letters: float) -> str | list[str]:
    """The text, or its lines if it has more than so many letters."""
    if len(text) <= letters:
        return text
    # What is short and in brackets stays in one line.
    text = _BRACKETS.sub(lambda found: found[0].replace(" ", "\u00a0"), text)
    return textwrap.wrap(text, max(8, int(letters)), break_long_words=False, break_on_hyphens=False)


def _level(panels: Sequence[Any]) -> None:
    """One height for the titles of a row: those above a smaller legend are moved up."""
    tall = [_legend_height(panel) for panel in panels]
    for panel, height in zip(panels, tall, strict=True):
        title = panel.get("title")
        if title and height < max(tall):
            words = title if isinstance(title, dict) else {"text": title}
            panel["title"] = {**words, "offset": _OFFSET + max(tall) - height}


def _legend_height(panel: Mapping[str, Any]) -> int:
    shown = [
        one
        for part in layers(panel)
        for channel, one in (part.get("encoding") or {}).items()
        if channel in ("color", "fill", "stroke") and "field" in one
        if one.get("legend", {}) is not None and (one.get("legend") or {}).get("orient") is None
    ]
    if not shown:
        return 0
    first = next((one for one in shown if isinstance(one.get("sort"), list)), shown[0])
    if not isinstance(first.get("sort"), list):
        return _COLOUR_BAR
    columns = (first.get("legend") or {}).get("columns") or len(first["sort"])
    return _LEGEND + _LEGEND_ROW * math.ceil(len(first["sort"]) / columns)
