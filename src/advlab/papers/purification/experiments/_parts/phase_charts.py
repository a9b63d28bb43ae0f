"""Charts along both trainings: the dashed line is where adversarial training begins."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from .....report.charts import HEIGHT, WIDTH, AnyChart, curves
from .....report.theme import CATEGORIES
from .two_phase_runs import ADVERSARIAL, PROBE_ATTACKS, UNIVERSAL

SHOWN = (*PROBE_ATTACKS, UNIVERSAL)
COSINES = {
    "theta start": "start",
    "theta clean": "clean",
    "theta control": "control",
    "cosine": "M w*",
}
"""Short, for the legend: the control is the clean network again, after steps without an attack."""


def training_curve(rows: pl.DataFrame, y: str, color: str | None = None, **words: Any) -> AnyChart:
    """A column `y` of the rows against the steps of both phases."""
    begins = rows.filter(phase=ADVERSARIAL)["step"].min()
    alone = begins in (None, 0)
    shared: dict[str, Any] = {
        "x_title": "steps" if alone else "steps, clean then adversarial"
    } | words
    chart = curves(rows.drop_nulls(y), "step", y, color, **shared)
    if alone:
        return chart
    line = alt.Chart(pl.DataFrame({"x": [begins]}), width=WIDTH, height=HEIGHT)
    rule = line.mark_rule(strokeDash=[2, 3], color=CATEGORIES[6]).encode(x="x:Q")
    return chart + rule


def accuracy_chart(rows: pl.DataFrame, title: str, names: Sequence[str] = SHOWN) -> AnyChart:
    """Without attack and under some: upper bounds of the robust accuracy."""
    long = _long(rows, list(names), "attack").with_columns(
        pl.col("attack").replace({"no attack": "none"})
    )
    return training_curve(
        long, "value", "attack", title=title, y_title="accuracy (attacks: upper bounds)"
    )


def cosine_chart(rows: pl.DataFrame, title: str) -> AnyChart:
    """Of the neurons alive, with their start, with the clean network's, and with M w*."""
    names = [name for name in COSINES if name in rows.columns]
    long = _long(rows, names, "with").with_columns(pl.col("with").replace_strict(COSINES))
    return training_curve(long, "value", "with", title=title, y_title="mean over neurons")


def _long(rows: pl.DataFrame, names: list[str], word: str) -> pl.DataFrame:
    return rows.unpivot(names, index=["step", "seed", "phase"], variable_name=word)
