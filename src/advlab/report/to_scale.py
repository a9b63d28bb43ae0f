"""Panels that keep their shape where they are made narrower or wider: circles stay circles."""

import altair as alt

TO_SCALE = "to-scale"
"""The style of their view, by which `fitting` and `page.js` know them."""


def to_scale(chart: alt.LayerChart) -> alt.LayerChart:
    """A panel that keeps its shape.

    Args:
        chart: with a width and a height.
    """
    return chart.properties(view=alt.ViewBackground(style=["cell", TO_SCALE]))
