"""One page for one training: learning curves, the bracket at the end, and how it was made."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from .axes import HEIGHT, WIDTH
from .page import chart_part, environment, frame, write_page

SERIES = {
    "train_clean": "train, clean",
    "train_robust": "train, attacked",
    "validation_clean": "validation, clean",
    "validation_robust": "validation, attacked",
}

INPUTS = ["clean", "attacked"]
DASHES = [[5, 3], [1, 0]]
_BELOW = {"anchor": "start", "direction": "vertical"}
"""Two legends below a chart, one below the other."""
_LABELS = 6
"""How many epochs have a label at most, but for one."""


def write_training(about: Mapping[str, Any], log: pl.DataFrame, path: Path) -> None:
    """Write the page.

    Args:
        about: plan, recipe, settings, status, the best epoch, and evaluation if there was one.
        log: one row per epoch, as `training.EpochLog` has it.
        path: the HTML file.
    """
    write_page(render_training(about, log), path)


def render_training(about: Mapping[str, Any], log: pl.DataFrame) -> str:
    """The page as text; the arguments are those of `write_training`."""
    best = about["best"]["epoch"] if about["best"] else None
    made = [
        chart.to_dict() | {"config": {"legend": {"layout": {"bottom": _BELOW}}}}
        for chart in (
            _curves(log, "error", "Error after each epoch", best, (0.0, 1.0)),
            _curves(log, "loss", "Loss after each epoch", best, None),
            _line(
                log,
                "sharpness_validation",
                "Sharpness on validation examples, at least",
                "sharpness",
            ),
            _line(log, "lr", "Learning rate after each epoch", "learning rate"),
        )
        if chart is not None
    ]
    charts = [
        chart_part(spec, f"chart-{place}", str(spec.get("title", "")))
        for place, spec in enumerate(made, 1)
    ]
    return (
        environment()
        .get_template("training.html")
        .render(
            about=about,
            rows=log.to_dicts(),
            columns=[name for name in SERIES if f"{name}_error" in log.columns],
            names=SERIES,
            charts=charts,
            **frame("page.css", "evaluation.css", chart=bool(charts)),
        )
    )


def _curves(
    log: pl.DataFrame,
    what: str,
    title: str,
    best: float | None,
    domain: tuple[float, float] | None,
) -> alt.LayerChart | None:
    """Clean and attacked values of training and validation examples over epochs."""
    there = [name for name in SERIES if f"{name}_{what}" in log.columns]
    if not there or not len(log):
        return None
    long = pl.concat(
        log.select(
            "epoch",
            pl.col(f"{name}_{what}").alias("value"),
            pl.lit(SERIES[name].split(", ")[0]).alias("examples"),
            pl.lit(SERIES[name].split(", ")[1]).alias("input"),
        )
        for name in there
    )
    scale = alt.Scale(domain=list(domain)) if domain else alt.Scale(zero=True)
    below = alt.Legend(orient="bottom", symbolType="stroke")
    lines = (
        alt.Chart(long)
        .mark_line(point=len(log) <= 40)
        .encode(
            x=_epochs(log),
            y=alt.Y("value:Q", title=what, scale=scale),
            color=alt.Color("examples:N", title=None, legend=below),
            strokeDash=alt.StrokeDash(
                "input:N", title=None, legend=below, scale=alt.Scale(domain=INPUTS, range=DASHES)
            ),
            tooltip=["epoch", "examples", "input", "value"],
        )
    )
    layers: list[alt.Chart] = [lines]
    if best is not None:
        kept = alt.Chart(pl.DataFrame({"epoch": [best]})).mark_rule(strokeDash=[2, 2])
        layers.append(kept.encode(x="epoch:Q", tooltip=[alt.Tooltip("epoch", title="kept epoch")]))
    chart: alt.LayerChart = alt.layer(*layers)  # type: ignore[assignment]
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)


def _epochs(log: pl.DataFrame) -> alt.X:
    """An axis from the first epoch to the last, with labels at some whole ones."""
    first, last = float(log["epoch"][0]), float(log["epoch"][-1])
    scale = alt.Scale(domain=[first, last]) if last > first else alt.Undefined
    step = max(1, math.ceil((last - first) / _LABELS))
    whole = range(math.ceil(first), math.floor(last) + 1, step)
    return alt.X("epoch:Q", scale=scale, axis=alt.Axis(values=list(whole), format="d"))


def _line(log: pl.DataFrame, column: str, title: str, axis: str) -> alt.Chart | None:
    if column not in log.columns or not len(log):
        return None
    return (
        alt.Chart(log.select("epoch", column), title=title)
        .mark_line(point=len(log) <= 40)
        .encode(
            x=_epochs(log),
            y=alt.Y(f"{column}:Q", title=axis, scale=alt.Scale(zero=True)),
            tooltip=["epoch", alt.Tooltip(f"{column}:Q", title=axis)],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
