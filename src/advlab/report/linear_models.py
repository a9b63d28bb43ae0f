"""One page for one robust linear model: coefficients, path, robust error, and its certificate."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from .axes import HEIGHT, WIDTH
from .page import chart_part, environment, frame, write_page
from .symbols import VERBATIM, plain

MOST = 30
"""Features that a chart shows: those of the largest coefficients."""


def write_linear_model(about: Mapping[str, Any], path: Path) -> None:
    """Write the page; `about` is what model.json of `advlab fit-linear` holds."""
    write_page(render_linear_model(about), path)


def render_linear_model(about: Mapping[str, Any]) -> str:
    """The page as text."""
    made = [_coefficients(about), _curve(about), *([_path(about)] if about["path"] else [])]
    specs = [chart.to_dict() | {"usermeta": VERBATIM} for chart in made]
    charts = [
        chart_part(spec, f"chart-{place}", str(spec.get("title", "")))
        for place, spec in enumerate(specs, 1)
    ]
    return (
        environment()
        .get_template("linear.html")
        .render(
            about=about,
            rows=_rows(about),
            charts=charts,
            **frame("page.css", "evaluation.css", chart=True),
        )
    )


def _shown(about: Mapping[str, Any]) -> np.ndarray:
    size = np.abs(np.array(about["coef"])).max(0) + np.abs(np.array(about["clean_coef"])).max(0)
    return np.argsort(-size, kind="stable")[:MOST]


def _rows(about: Mapping[str, Any]) -> list[dict[str, Any]]:
    clean, robust = np.array(about["clean_coef"]), np.array(about["coef"])
    names = about["features"]
    labels = about["classes"] if len(robust) > 1 else [""]
    return [
        {"name": f"{names[j]} {label}".strip(), "clean": clean[k, j], "robust": robust[k, j]}
        for j in _shown(about)
        for k, label in enumerate(labels)
    ]


def _coefficients(about: Mapping[str, Any]) -> alt.Chart:
    rows = [
        {"feature": row["name"], "model": name, "coefficient": float(row[name])}
        for row in _rows(about)
        for name in ("clean", "robust")
    ]
    return (
        alt.Chart(pl.DataFrame(rows), title="Coefficients, clean and robust")
        .mark_bar()
        .encode(
            y=alt.Y("feature:N", sort=None, title=None),
            x=alt.X("coefficient:Q"),
            yOffset=alt.YOffset("model:N", sort=["clean", "robust"]),
            color=alt.Color("model:N", sort=["clean", "robust"], title=None),
            tooltip=["feature", "model", "coefficient"],
        )
        .properties(width=WIDTH)
    )


def _curve(about: Mapping[str, Any]) -> alt.LayerChart:
    what = "robust error" if about["classes"] else f"mean {about['loss']} loss under attack"
    scale = alt.Scale(domain=[0, 1]) if about["classes"] else alt.Scale(zero=False)
    lines = (
        alt.Chart(pl.DataFrame(about["curve"]))
        .mark_line()
        .encode(
            x=alt.X("eps:Q", title=f"ε ({plain(about['norm'])})"),
            y=alt.Y("value:Q", title=what, scale=scale),
            color=alt.Color("model:N", sort=["clean", "robust"], title=None),
            tooltip=["eps", "model", "value"],
        )
    )
    mark = alt.Chart(pl.DataFrame({"eps": [about["eps"]]})).mark_rule(strokeDash=[4, 4])
    chart: alt.LayerChart = alt.layer(lines, mark.encode(x="eps:Q"))  # type: ignore[assignment]
    title = "Under the worst attack, exactly; dashed: the radius of the fit"
    return chart.properties(width=WIDTH, height=HEIGHT, title=title)


def _path(about: Mapping[str, Any]) -> alt.Chart:
    coefs, names = np.array(about["path"]["coefs"]), about["features"]
    rows = [
        {"eps": eps, "feature": names[j], "coefficient": float(coefs[i, j])}
        for i, eps in enumerate(about["path"]["eps"])
        for j in _shown(about)[:12]
    ]
    return (
        alt.Chart(pl.DataFrame(rows), title="Coefficients over the radius, to ε₀")
        .mark_line()
        .encode(
            x=alt.X(
                "eps:Q",
                title=f"ε ({plain(about['norm'])})",
                scale=alt.Scale(type="log", nice=False),
            ),
            y=alt.Y("coefficient:Q"),
            color=alt.Color("feature:N", title=None, sort=None),
            tooltip=["eps", "feature", "coefficient"],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
