"""The picture of the three phases: signal and noise above, the four errors below, on log time."""

import altair as alt
import polars as pl

from .....report.charts import HEIGHT, WIDTH, AnyChart, panels

SIGNAL, NOISE = "signal, alpha^3 U", "noise, V_i"
CLEAN, GTA = "clean inputs", "GTA examples"
ERRORS = {
    "clean train": (CLEAN, "training"),
    "clean test": (CLEAN, "test"),
    "GTA train": (GTA, "training"),
    "GTA test": (GTA, "test"),
}
BANDS = {"signal": SIGNAL, "median V": NOISE}


def figure(table: pl.DataFrame) -> AnyChart:
    """One column per lambda: forces above, errors below."""
    rows = table.filter(pl.col("step") > 0, part="phases")
    lams = sorted(rows["lam"].unique(), reverse=True)
    highest = float(rows.select(pl.max_horizontal("signal", "largest V").max()).item())
    charts = [
        draw(rows.filter(lam=lam), f"lambda = {lam:g}: {word}", highest)
        for draw, word in ((_forces, "what adds to y f"), (_errors, "errors"))
        for lam in lams
    ]
    return panels(charts, columns=len(lams))


def _forces(rows: pl.DataFrame, title: str, highest: float) -> AnyChart:
    """Means over seeds of alpha^3 U and of the median V_i; the band is from min to max V_i."""
    means = rows.group_by("step").agg(
        pl.col("signal", "median V", "smallest V", "largest V").mean()
    )
    lines = means.unpivot(list(BANDS), index="step", variable_name="curve")
    lines = lines.with_columns(pl.col("curve").replace_strict(BANDS))
    band = means.with_columns(curve=pl.lit(NOISE), value="smallest V").sort("step")
    y = _y("adds to y f", [min(0.0, float(min(means["smallest V"]))), highest])
    area = _chart(band).mark_area(opacity=0.3).encode(y=y, y2="largest V:Q")
    line = _chart(lines.sort("curve", "step")).mark_line().encode(y=y)
    return alt.LayerChart(layer=[area, line, *_times(rows, highest)], title=title)


def _errors(rows: pl.DataFrame, title: str, highest: float) -> AnyChart:
    """Means over seeds; test errors dashed, as they lie on the training errors of clean inputs."""
    means = rows.group_by("step").agg(pl.col(*ERRORS).mean())
    long = means.unpivot(list(ERRORS), index="step").sort("variable", "step")
    names = {
        place: pl.col("variable").replace_strict({name: word[k] for name, word in ERRORS.items()})
        for k, place in enumerate(("curve", "of"))
    }
    dash = alt.StrokeDash("of:N", title=None, sort=["training", "test"]).scale(
        domain=["training", "test"], range=[[1, 0], [6, 3]]
    )
    line = _chart(long.with_columns(**names)).mark_line(strokeWidth=2.2)
    line = line.encode(y=_y("error", [0, 0.7]), strokeDash=dash)
    return alt.LayerChart(layer=[line, *_times(rows, 0.7)], title=title)


def _chart(rows: pl.DataFrame) -> alt.Chart:
    x = alt.X("step:Q", title="steps t", scale=alt.Scale(type="log", nice=False))
    order = [SIGNAL, NOISE, CLEAN, GTA]
    color = alt.Color("curve:N", title="curve", sort=order, scale=alt.Scale(domain=order))
    return alt.Chart(rows, width=WIDTH, height=HEIGHT).encode(
        x=x.axis(tickCount=6, format="~s"), color=color
    )


def _y(title: str, domain: list[float]) -> alt.Y:
    return alt.Y("value:Q", title=title, scale=alt.Scale(domain=domain, nice=False))


def _times(rows: pl.DataFrame, height: float) -> list[alt.Chart]:
    """The predicted T_0 and T_1, where there are any, as dashed lines with their names on top."""
    times = rows.select("seed", "T0 sharp", "T1 sharp").unique().drop("seed").median().row(0)
    marks = [
        {"step": float(time), "name": name, "height": height}
        for name, time in zip(("T_0", "T_1"), times, strict=True)
        if time is not None and 1 <= time < float("inf")
    ]
    schema = {"step": pl.Float64, "name": pl.String, "height": pl.Float64}
    chart = alt.Chart(pl.DataFrame(marks, schema=schema), width=WIDTH, height=HEIGHT)
    rule = chart.mark_rule(strokeDash=[3, 3], strokeWidth=1.2, color="#888").encode(x="step:Q")
    text = chart.mark_text(align="left", dx=4, dy=4, baseline="top", color="#666", fontSize=12)
    return [rule, text.encode(x="step:Q", y="height:Q", text="name:N")]
