"""The phase diagram of PGD training: outcomes over radius and noise, and the errors behind them."""

import altair as alt
import numpy as np
import polars as pl

from .....report.charts import HEIGHT, WIDTH, AnyChart, curves, panels, points
from .....report.theme import CATEGORIES

LARGE = 0.25
"""An error above this tells an outcome: half of what a coin has."""
OUTCOMES = ("robust", "CGRO", "memorised", "failed")
HUES = [CATEGORIES[place] for place in (5, 4, 7, 6)]
"""Other colours than those of the errors beside them."""
ERRORS = {
    "clean test": "clean, test",
    "robust train": "PGD, training",
    "robust test": "PGD, test",
}


def outcomes(table: pl.DataFrame) -> pl.DataFrame:
    """The outcome of each run, in a column of that name.

    Args:
        table: one row per run, with errors "robust train", "clean test" and "robust test".
    """
    told = (
        pl.when(pl.col("robust train") > LARGE)
        .then(pl.lit("failed"))
        .when(pl.col("clean test") > LARGE)
        .then(pl.lit("memorised"))
        .when(pl.col("robust test") > LARGE)
        .then(pl.lit("CGRO"))
        .otherwise(pl.lit("robust"))
    )
    return table.with_columns(outcome=told)


def cells(table: pl.DataFrame) -> pl.DataFrame:
    """Of each N, radius and noise the most frequent outcome, and the share of runs that have it.

    Args:
        table: what `outcomes` made.
    """
    place = ["n", "radius", "noise"]
    rows = table.group_by(*place, "outcome").len().with_columns(
        rank=pl.col("outcome").replace_strict(OUTCOMES, range(len(OUTCOMES))),
        share=pl.col("len") / pl.col("len").sum().over(place),
    )  # fmt: skip
    first = rows.sort("len", "rank", descending=[True, False]).group_by(
        place, maintain_order=True
    ).first()  # fmt: skip
    return first.sort(place).select(*place, "outcome", "share")


def figure(table: pl.DataFrame, clean: pl.DataFrame, crossings: pl.DataFrame) -> AnyChart:
    """A map per N, errors per N at one radius, and of one N; where robustness is lost.

    Args:
        table: one row per run with PGD in training.
        clean: the same without, at some radii.
        crossings: columns n, seed and crossing, the noise at which robustness is lost.
    """
    sizes = table["n"].unique().sort().to_list()
    found, largest = cells(outcomes(table)), float(table["radius"].to_numpy().max())
    maps = [_map(found.filter(n=n), f"N = {n}: outcomes") for n in sizes]
    middle, one = float(clean["radius"].to_numpy().min()), sizes[len(sizes) // 2]
    shown = [(table, n, middle, "") for n in sizes] + [
        (table, one, largest, ""),
        (clean, one, middle, ", clean training"),
    ]
    lines = [
        _errors(rows.filter(n=n, radius=radius), f"N = {n}: errors, radius {radius:g} alpha{of}")
        for rows, n, radius, of in shown
    ]
    return panels([*maps, *lines, _crossing_chart(crossings)], columns=4)


def _map(rows: pl.DataFrame, title: str) -> AnyChart:
    """Each cell in the colour of its outcome, with the share of runs where they do not agree."""
    names = {name: [f"{one:g}" for one in rows[name].unique().sort()] for name in
             ("noise", "radius")}  # fmt: skip
    text = rows.with_columns(
        pl.col(name).map_elements(lambda one: f"{one:g}", return_dtype=pl.String) for name in names
    ).with_columns(
        told=pl.when(pl.col("share") < 1).then(pl.format("{}", (100 * pl.col("share")).round(0)
             .cast(pl.Int64))).otherwise(pl.lit(""))
    )  # fmt: skip
    full = alt.RelativeBandSize(band=1.0)
    chart = alt.Chart(text, width=WIDTH, height=HEIGHT).encode(
        x=alt.X("noise:O", title="noise sigma sqrt(d)/alpha", sort=names["noise"]).axis(grid=False),
        y=alt.Y("radius:O", title="radius/alpha", sort=names["radius"][::-1]).axis(grid=False),
    )
    color = alt.Color("outcome:N", title="outcome", sort=OUTCOMES).scale(
        domain=list(OUTCOMES), range=HUES
    )
    seen = alt.Tooltip("share:Q", title="share of runs", format=".2f")
    drawn = chart.mark_rect(width=full, height=full, stroke="white", strokeWidth=1).encode(
        color=color, tooltip=[alt.Tooltip("outcome:N"), seen]
    )
    said = chart.mark_text(fontSize=10, fill="black").encode(text="told:N")
    return alt.LayerChart(layer=[drawn, said], title=title)


def _errors(rows: pl.DataFrame, title: str) -> AnyChart:
    long = rows.unpivot(list(ERRORS), index=["noise", "seed"], variable_name="error")
    long = long.with_columns(pl.col("error").replace_strict(ERRORS))
    return curves(
        long, "noise", "value", "error", title=title, x_title="noise sigma sqrt(d)/alpha",
        y_title="error", log_x=True, y_domain=(0, 1), band="standard error", apart=True,
    )  # fmt: skip


def _crossing_chart(found: pl.DataFrame) -> AnyChart:
    middle = found["crossing"].median() or 1.0
    n = found["n"].unique().sort().cast(pl.Float64).to_numpy()
    line = middle * (n / np.exp(np.log(n).mean())) ** (1 / 3)  # type: ignore[operator]
    return points(
        found, "n", "crossing", theory=pl.DataFrame({"n": n, "crossing": line}), log_x=True,
        log_y=True, title="where robustness is lost", x_title="N", y_title="noise/alpha",
    )  # fmt: skip
