"""Sizes that grow with D, C(mu), and how much of their time recursions take."""

import polars as pl

from .....report.charts import AnyChart, curves, panels

RADIUS_DRAWN, MU_DRAWN = 0.1, 0.05
"""delta and mu of the sizes."""


def figure(table: pl.DataFrame) -> AnyChart:
    return panels([_growing(table), _share_curves(table), *_use_curves(table)], columns=2)


def _growing(table: pl.DataFrame) -> AnyChart:
    names = {"points": "n", "VC dimension": "C(mu) n", "parameters": "M_D"}
    rows = table.filter(pl.col("quantity").is_in(list(names)), kind=f"{RADIUS_DRAWN:g}")
    return curves(
        rows.with_columns(pl.col("quantity").replace(names).alias("number")),
        "x",
        "value",
        "number",
        title=f"Forced at delta {RADIUS_DRAWN:g}, mu {MU_DRAWN:g}",
        x_title="dimension D",
        y_title="log_10 of the number",
    )


def _share_curves(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(quantity="share")
    last = rows.filter(pl.col("kind").str.starts_with("exact"))["kind"].unique(maintain_order=True)
    return curves(
        rows.filter(pl.col("kind").is_in(["paper", "entropy", *last[-1:]])).rename(
            {"kind": "version"}
        ),
        "x",
        "value",
        "version",
        title="C(mu): the VC dimension per point",
        x_title="share mu that may be lost",
        y_title="C(mu)",
        apart=True,
    )


def _use_curves(table: pl.DataFrame) -> list[AnyChart]:
    """How much of its time a recursion takes, smallest to largest."""
    one = pl.DataFrame({"value": [1.0]})
    return [
        curves(
            table.filter(quantity=f"{form} use").rename({"kind": "lemma"}),
            "x",
            "value",
            "lemma",
            theory=one,
            title=f"Share of the {form} bound that is used",
            x_title="per cent of recursions",
            y_title="time or value / bound",
        )
        for form in ("paper", "sharp")
    ]
