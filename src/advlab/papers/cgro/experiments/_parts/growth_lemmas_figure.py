"""One picture per growth lemma: what it bounds, the bound with log d for its logarithms, times."""

import altair as alt
import numpy as np
import polars as pl

from .....report.charts import HEIGHT, WIDTH, AnyChart, curves, panels

PANELS = {
    "constant": ("Lemma 4.2's constant", "over 3 (1 - lambda)"),
    "remainder ratio": ("remainder of Lemma C.5", "over its order"),
    "lojasiewicz": ("Lemma C.8, from T_1 on", "||grad L||/L"),
    "growth ratio": ("Lemma 4.3, from T_0 on", "growth of max u_r over the sum"),
    "budget ratio": ("Lemma C.10", "push/bound"),
    "below ratio": ("Lemma 4.4", "fall below the sum/order"),
}
OVER_N = ("remainder ratio", "budget ratio")
"""What is drawn for each N too."""
LEAST = 0.1
"""What a claim asks of Lemma 4.2's constant."""
FROM = {"lojasiewicz": "T1", "growth ratio": "T0"}


def figure(table: pl.DataFrame) -> AnyChart:
    """Medians over seeds against t/T_1: for each d at the least N, then for each N.

    Args:
        table: rows of runs at one lambda.
    """
    least = int(str(table["n"].min()))
    dims = table.filter(pl.col("n") > least)["d"].unique()
    sized = table.filter(pl.col("d").is_in(dims.implode()))
    rows, times = _medians(table.filter(n=least), "d")
    charts = [_panel(rows, times, name, "dimension") for name in PANELS]
    if not sized.is_empty():
        rows, times = _medians(sized, "n")
        charts += [_panel(rows, times, name, "size") for name in OVER_N]
    return panels(charts, columns=4)


def _medians(table: pl.DataFrame, by: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Medians over seeds at each step, and the times, of each d or N."""
    rows = table.filter(pl.col("step") > 0).sort(by, "step")
    rows = rows.with_columns(pl.col("growth ratio").fill_nan(None))
    times = _times(rows, by)
    rows = rows.group_by(by, "step", maintain_order=True).median().join(times, on=by)
    return rows.with_columns(
        dimension=pl.format("d = {}", pl.col("d").cast(pl.Int64)),
        size=pl.format("N = {}", pl.col("n").cast(pl.Int64)),
        time=pl.col("step") / pl.col("T1 all"),
    ), times  # fmt: skip


def _times(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """Of each d or N the median T_0, and T_1 of the last example of all seeds."""
    begun = rows.filter(pl.col("alpha u") >= 1).group_by(by, "seed").agg(T0=pl.col("step").min())
    first = begun.group_by(by).agg(pl.col("T0").median())
    last = rows.group_by(by).agg(pl.col("T1 last").max().alias("T1 all"))
    return last.join(first, on=by).sort(by).with_columns(start=pl.col("T0") / pl.col("T1 all"))


def _panel(rows: pl.DataFrame, times: pl.DataFrame, name: str, line: str) -> AnyChart:
    title, y_title = PANELS[name]
    if line == "size":
        title = f"{title}, d = {int(rows['d'].to_list()[0])}"
    seen = rows.filter(pl.col(name) > 0)
    if FROM.get(name) == "T0":
        seen = seen.filter(pl.col("step") >= pl.col("T0"))
    drawn = curves(
        seen, "time", name, line, title=title, x_title="t/T_1", y_title=y_title, log_x=True,
        log_y=True, theory=_allowed(seen, name, line),
    )  # fmt: skip
    marks = [(1.0, "T_1")]
    if name == "constant":
        marks.append((float(np.median(times["start"].to_numpy())), "T_0"))
    return alt.LayerChart(layer=[*drawn.layer, *_marks(marks)], title=title)


def _allowed(seen: pl.DataFrame, name: str, line: str) -> pl.DataFrame:
    """What a claim allows at each d, where the lemma speaks."""
    if name == "constant":
        return pl.DataFrame({name: [LEAST]})
    first = pl.lit(1.0) if FROM.get(name) == "T1" else pl.col("time").min()
    ends = seen.group_by(line, "d", maintain_order=True).agg(first=first, last=pl.col("time").max())
    lines = ends.unpivot(["first", "last"], index=[line, "d"], value_name="time")
    logarithm = pl.col("d").cast(pl.Float64).log()
    return lines.with_columns((1 / logarithm if name == "lojasiewicz" else logarithm).alias(name))


def _marks(marks: list[tuple[float, str]]) -> list[alt.Chart]:
    """Times as dotted lines with their names below."""
    rows = pl.DataFrame(marks, schema={"time": pl.Float64, "name": pl.String}, orient="row")
    chart = alt.Chart(rows, width=WIDTH, height=HEIGHT)
    rule = chart.mark_rule(strokeDash=[2, 3], strokeWidth=1.2, color="#888").encode(x="time:Q")
    text = chart.mark_text(align="right", dx=-4, baseline="bottom", color="#666", fontSize=12)
    return [rule, text.encode(x="time:Q", y=alt.value(HEIGHT - 4), text="name:N")]
