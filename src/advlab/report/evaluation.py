"""One page for one evaluation: bracket, who found what, warnings, and the worst examples."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from .axes import HEIGHT, WIDTH
from .page import chart_part, environment, frame, write_page
from .pictures import is_image, picture
from .robustness import robustness_chart

FLAT_MOST = 400
"""Numbers of a flat input that a chart shows."""


def write_evaluation(about: Mapping[str, Any], examples: Sequence[Mapping], path: Path) -> None:
    """Write the page; `about` is what evaluation.json holds, examples hold arrays."""
    write_page(render_evaluation(about, examples), path)


def render_evaluation(about: Mapping[str, Any], examples: Sequence[Mapping]) -> str:
    made = [*_bracket(about), *_curves(about), *_flat(examples)]
    charts = [
        chart_part(spec, f"chart-{place}", str(spec.get("title", "")))
        for place, spec in enumerate((chart.to_dict() for chart in made), 1)
    ]
    images = _images(examples, about.get("box"))
    return (
        environment()
        .get_template("evaluation.html")
        .render(
            about=about,
            bars=_bars(about),
            charts=charts,
            images=images,
            **frame("page.css", "evaluation.css", chart=bool(charts)),
        )
    )


def _bars(about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each error with its interval, as parts of a line from 0 to 1; losses of a regression."""
    what = "error" if about["robust_error"] is not None else "loss"
    names = {
        f"clean_{what}": f"Clean {what}",
        f"robust_{what}": f"Robust {what}, at least",
        f"certified_{what}": f"Robust {what}, at most",
    }
    bars = []
    for key, name in names.items():
        value = about[key]
        low, high = about["intervals"].get(key, (None, None))
        bars.append({"key": key, "name": name, "value": value, "low": low, "high": high})
    return bars


def _bracket(about: Mapping[str, Any]) -> list[alt.LayerChart]:
    """The robust error over radii, where it was asked for."""
    found = about.get("robustness_curve")
    return [robustness_chart(found["curve"], found["norm"], found["n"])] if found else []


def _curves(about: Mapping[str, Any]) -> list[alt.Chart]:
    titles = {"eps": "eps", "steps": "steps"}
    return [_curve(curve, titles[curve["over"]]) for curve in about["curves"]]


def _curve(curve: Mapping[str, Any], title: str) -> alt.Chart:
    table = pl.DataFrame({"value": curve["values"], "error": curve["errors"]})
    scale = alt.Scale(type="log", nice=False) if min(curve["values"]) > 0 else alt.Scale()
    return (
        alt.Chart(table, title=f"Error of a quick attack over {title}, {curve['rows']} examples")
        .mark_line(point=True)
        .encode(
            x=alt.X("value:Q", title=title, scale=scale),
            y=alt.Y("error:Q", title="error", scale=alt.Scale(domain=[0, 1])),
            tooltip=["value", "error"],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )


def _images(examples: Sequence[Mapping], box: Sequence[float] | None) -> list[dict[str, Any]]:
    shown = []
    for example in examples:
        before, after = example["original"], example["perturbed"]
        if not is_image(before.shape):
            continue
        low, high = box or (min(before.min(), after.min()), max(before.max(), after.max()))
        most = float(np.abs(after - before).max()) or 1.0
        shown.append(
            {
                **example,
                "most": most,
                "times": (high - low) / 2 / most,
                "original": picture(before, low, high),
                "perturbed": picture(after, low, high),
                "difference": picture(after - before, -most, most),
            }
        )
    return shown


def _flat(examples: Sequence[Mapping]) -> list[alt.Chart]:
    return [_flat_chart(one) for one in examples[:4] if not is_image(one["original"].shape)]


def _flat_chart(example: Mapping[str, Any]) -> alt.Chart:
    before, after = (example[name].reshape(-1) for name in ("original", "perturbed"))
    # Of long inputs the places that moved most, in their order.
    kept = np.sort(np.argsort(-np.abs(after - before), kind="stable")[:FLAT_MOST])
    table = pl.concat(
        pl.DataFrame({"place": kept, "value": values[kept].astype(float), "input": name})
        for name, values in (("original", before), ("perturbed", after))
    )
    title = f"Row {example['row']}: {example['answer']} becomes {example['wrong_answer']}"
    return (
        alt.Chart(table, title=title)
        .mark_line(point=len(kept) <= 60)
        .encode(
            x=alt.X("place:Q", title="place in the input"),
            y=alt.Y("value:Q", title="value"),
            color=alt.Color("input:N", sort=["original", "perturbed"], title=None),
            tooltip=["place", "input", "value"],
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
