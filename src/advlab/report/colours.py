"""One colour for one thing in all charts of a paper."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from .theme import CATEGORIES, QUIET, layers
from .vega_warnings import one_order, outlined, without_empty_lines

_CHANNELS = ("color", "stroke", "fill")


def shared(
    specs: Sequence[Mapping[str, Any]], fixed: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    """The charts with colours that follow the names of things, not their place in a legend.

    Words have one colour wherever they stand; numbers have one under each title, as 0.1 of eps and
    0.1 of xi are different things. Names that share a legend never share a colour. A legend with
    colours of its own, or with more names than there are colours, is left as it is.

    Args:
        specs: Vega-Lite specifications; they are left as they are.
        fixed: places of names among the colours, so that a figure drawn alone has those of the
            others. A name gives way where a legend has another name of its place before it.

    Example:
        from advlab.report.colours import shared
        first, second = shared([chart.to_dict(), other.to_dict()])
    """
    charts = [deepcopy(dict(spec)) for spec in specs]
    for chart in charts:
        for block in _blocks(chart):
            for panel in _panels(block):
                outlined(panel)
    legends = [legend for chart in charts for legend in _legends(chart)]
    colours = _assigned([keys for _, keys in legends], fixed or {})
    for encodings, keys in legends:
        for encoding in encodings:
            encoding["scale"] = {
                **(encoding.get("scale") or {}),
                "domain": list(dict.fromkeys(name for _, name in keys)),
                "range": [CATEGORIES[colours[key]] for key in keys],
            }
    return charts


def said_once(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The chart without legends that only repeat one of an earlier panel of a block.

    What Vega would complain of is mended (`report.vega_warnings`).

    Args:
        spec: a Vega-Lite specification whose panels have colours of their own; it is left as it is.
    """
    chart = without_empty_lines(deepcopy(dict(spec)))
    for block in _blocks(chart):
        before: list[list[tuple[Any, ...]]] = []
        for panel in _panels(block) if _apart(block) else []:
            encodings = [*_encodings(panel, "color"), *_bars(panel)]
            told: list[tuple[Any, ...]] = [
                (one.get("title"), one.get("sort"), one.get("scale")) for one in encodings
            ]
            if told in before:
                for encoding in encodings:
                    encoding["legend"] = None
            elif told:
                before.append(told)
        for panel in _panels(block):
            outlined(panel)
        _uncoloured(block)
        if not _apart(block):
            one_order(_panels(block))
    return chart


def _blocks(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """What has legends of its own: blocks that stand below each other, or the whole chart."""
    panels = _panels(chart)
    if not any(_is_block(panel) for panel in panels):
        return [chart]
    return [block for panel in panels for block in _blocks(panel)]


def _uncoloured(chart: dict[str, Any]) -> None:
    """What has no colour of its own beside panels that have is grey: the first colour has a name.

    Panels whose colours stand for different things need no such care.
    """
    panels = _panels(chart)
    named = any(len(one["sort"]) > 1 for panel in panels for one in _encodings(panel, "color"))
    for panel in panels if named and not _apart(chart) else []:
        parts = list(layers(panel))
        if any(set(_CHANNELS) & set(layer.get("encoding") or {}) for layer in parts):
            continue
        for layer in parts:
            mark = layer.get("mark")
            mark = {"type": mark} if isinstance(mark, str) else mark
            if isinstance(mark, dict) and not {"color", "stroke", "fill"} & set(mark):
                layer["mark"] = {**mark, "color": QUIET}


Key = tuple[str, str]


def _legends(spec: dict[str, Any]) -> Iterator[tuple[list[dict[str, Any]], list[Key]]]:
    """The encodings that share a scale, and the names on it; blocks below each other share none."""
    panels = _panels(spec)
    if any(_is_block(panel) for panel in panels):
        for panel in panels:
            yield from _legends(panel)
        return
    for group in [[panel] for panel in panels] if _apart(spec) else [panels]:
        for channel in _CHANNELS:
            encodings = [one for panel in group for one in _encodings(panel, channel)]
            own = {"domain", "range", "scheme"}
            plain = not any(own & set(one.get("scale") or {}) for one in encodings)
            keys = list(dict.fromkeys(key for one in encodings for key in _keys(one)))
            names = {name for _, name in keys}
            if encodings and plain and len(names) == len(keys) and 0 < len(keys) <= len(CATEGORIES):
                yield encodings, keys


def _panels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return spec.get("concat") or spec.get("hconcat") or spec.get("vconcat") or [spec]


def _is_block(panel: Mapping[str, Any]) -> bool:
    return any(name in panel for name in ("concat", "hconcat", "vconcat"))


def _apart(spec: Mapping[str, Any]) -> bool:
    return ((spec.get("resolve") or {}).get("scale") or {}).get("color") == "independent"


def _encodings(panel: dict[str, Any], channel: str) -> Iterator[dict[str, Any]]:
    for part in layers(panel):
        found = (part.get("encoding") or {}).get(channel)
        if not isinstance(found, dict) or found.get("type") != "nominal":
            continue
        if isinstance(found.get("sort"), list):
            yield found


def _bars(panel: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Encodings with a colour bar whose ends are written, so that another can be the same."""
    for part in layers(panel):
        for channel in _CHANNELS:
            found = (part.get("encoding") or {}).get(channel)
            if not isinstance(found, dict) or found.get("type") != "quantitative":
                continue
            if found.get("legend", {}) is not None and (found.get("scale") or {}).get("domain"):
                yield found


def _keys(encoding: Mapping[str, Any]) -> list[Key]:
    title = str(encoding.get("title") or "")
    return [("" if not _is_number(name) else title, str(name)) for name in encoding["sort"]]


def _is_number(name: object) -> bool:
    try:
        float(str(name))
    except ValueError:
        return False
    return True


def _assigned(legends: Sequence[Sequence[Key]], fixed: Mapping[str, int]) -> dict[Key, int]:
    """Greedy: fixed names, then those in most legends, each its place or the first that is free."""
    places = {("", name): place for name, place in fixed.items()}
    often = Counter(key for legend in legends for key in legend)
    colours: dict[Key, int] = {}
    for key in sorted(often, key=lambda one: (one not in places, -often[one])):
        near = [legend for legend in legends if key in legend]
        taken = {colours[other] for legend in near for other in legend if other in colours}
        usual = places.get(key, near[0].index(key))
        free = [place for place in (usual, *range(len(CATEGORIES))) if place not in taken]
        if not free:  # more neighbours than colours: repeat the one that its own legends use least
            free = [min(range(len(CATEGORIES)), key=lambda place: (place in taken, place))]
        colours[key] = free[0]
    return colours
