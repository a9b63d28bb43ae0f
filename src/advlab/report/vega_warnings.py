"""What Vega warns of in a chart, mended in its specification: conflicting legends, empty lines."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .theme import layers

_PLACE = re.compile(r"datum\.place == (\d+)")


def outlined(panel: dict[str, Any]) -> None:
    """An outline in the colour of its own mark is told by the same legend, not by none.

    Args:
        panel: of a specification; it is changed.
    """
    for part in layers(panel):
        encoding = part.get("encoding") or {}
        color, stroke = encoding.get("color") or {}, encoding.get("stroke") or {}
        if "field" in stroke and stroke["field"] == color.get("field") and "title" not in stroke:
            encoding["stroke"] = dict(color)


def one_order(panels: Sequence[dict[str, Any]]) -> None:
    """Contours that share a legend have one order of names.

    Args:
        panels: of a specification; they are changed.
    """
    for channel in ("stroke", "strokeDash"):
        scales = [
            found["scale"]
            for panel in panels
            for part in layers(panel)
            if isinstance(found := (part.get("encoding") or {}).get(channel), dict)
            and (found.get("scale") or {}).get("domain")
            and found.get("type") == "nominal"
        ]
        names = list(dict.fromkeys(name for scale in scales for name in scale["domain"]))
        for scale in scales:
            scale["domain"] = names


def without_empty_lines(chart: dict[str, Any]) -> dict[str, Any]:
    """Without the lines of names that have no points: those that only theory has.

    Args:
        chart: a specification whose lines with gaps are chosen by their number; it is changed.
    """
    for panel, data in _layered(chart, {}):
        panel["layer"] = [one for one in panel["layer"] if _has_rows(chart, one, data)]
    return chart


def _layered(part: dict[str, Any], data: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Whatever has layers, with the data around it."""
    data = part.get("data") or data
    if "layer" in part:
        yield part, data
    for kind in ("concat", "hconcat", "vconcat", "layer"):
        for inner in part.get(kind) or ():
            yield from _layered(inner, data)


def _has_rows(chart: dict[str, Any], layer: dict[str, Any], data: dict[str, Any]) -> bool:
    rows = (chart.get("datasets") or {}).get((layer.get("data") or data).get("name"))
    asked = [_PLACE.fullmatch(str(one.get("filter"))) for one in layer.get("transform") or ()]
    places = {int(one[1]) for one in asked if one}
    return rows is None or not places or any(row.get("place") in places for row in rows)
