"""The look of every chart, in light and in dark."""

from collections.abc import Iterator, Mapping
from typing import Any

# Okabe and Ito's colours, which colour-blind readers tell apart; yellow last, it is faint on white.
CATEGORIES = [
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#8C8C8C",
    "#F0E442",
]
# The same hues, lifted where a dark ground would swallow them.
DARK_CATEGORIES = ["#4BA3DB", "#E69F00", "#1FB58F", *CATEGORIES[3:]]
INK, QUIET, LINES, GROUND = "#1f2328", "#59636e", "#e8ebee", "#ffffff"
DARK_INK, DARK_QUIET, DARK_LINES, DARK_GROUND = "#e6e8eb", "#a3abb5", "#2b3138", "#181b20"
TICKS = 5
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def theme(dark: bool = False) -> dict[str, Any]:
    """A Vega-Lite config."""
    ink, quiet, grid, ground = (
        (DARK_INK, DARK_QUIET, DARK_LINES, DARK_GROUND) if dark else (INK, QUIET, LINES, GROUND)
    )
    categories = DARK_CATEGORIES if dark else CATEGORIES
    return {
        "background": ground,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "axis": {
            "labelColor": quiet,
            "titleColor": ink,
            "titleFontWeight": "normal",
            "titleFontSize": 12,
            "titlePadding": 8,
            "labelFontSize": 11,
            "labelPadding": 5,
            "labelLimit": 0,
            "labelOverlap": True,
            "labelSeparation": 4,
            "gridColor": grid,
            "domainColor": quiet,
            "ticks": False,
            "tickCount": TICKS,
        },
        "axisY": {"domain": False},
        "axisX": {"grid": False, "labelAngle": 0},
        "legend": {
            "orient": "top",
            "labelColor": ink,
            "titleColor": quiet,
            "titleFontWeight": "normal",
            "labelFontSize": 12,
            "labelLimit": 0,
            "titleFontSize": 12,
            "titleOrient": "left",
            "symbolStrokeWidth": 2.5,
            "symbolOpacity": 1,
            "titlePadding": 10,
            "columnPadding": 14,
            "offset": 14,
            "layout": {"top": {"anchor": "start", "direction": "horizontal", "center": True}},
        },
        "title": {
            "anchor": "start",
            "color": ink,
            "fontSize": 13,
            "fontWeight": 600,
            "offset": 10,
            "frame": "group",
        },
        "mark": {"aria": False, "color": categories[0]},
        "line": {"strokeWidth": 2},
        "rule": {"color": quiet},
        "range": {
            "category": categories,
            "ordinal": {"scheme": "viridis"},
            "heatmap": {"scheme": "viridis"},
        },
    }


def layers(panel: Mapping[str, Any]) -> Iterator[Any]:
    """A panel of a specification, its layers and theirs."""
    yield panel
    for layer in panel.get("layer", ()):
        yield from layers(layer)
