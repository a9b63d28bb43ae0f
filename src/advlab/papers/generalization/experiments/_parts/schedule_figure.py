"""The figure of `descent_schedule`: one panel per question."""

from typing import Any

import numpy as np
import polars as pl

from .....report import charts
from .inequality_10 import inequality_10

LOGS: dict[str, Any] = {"log_x": True, "log_y": True}


def schedule_figure(table: pl.DataFrame, *, strong: float) -> charts.AnyChart:
    """All panels.

    Args:
        table: of the experiment.
        strong: the larger eps, of the controls.
    """
    scheduled = table.filter(schedule="theorem")
    sizes = scheduled["n"].unique().sort()
    largest = scheduled.filter(n=sizes[-1])
    off = pl.concat([scheduled.filter(n=sizes[1], eps=strong),
                     table.filter(pl.col("schedule").is_in(["large step", "xi = 0"]))],
                    how="diagonal")  # fmt: skip
    axes: dict[str, Any] = {"x_title": "iteration", "y_title": "R_{L,ξ} / v²"}
    risk = pl.col("surrogate") / pl.col("v") ** 2
    return charts.panels(
        [
            charts.curves(largest.with_columns(risk=risk), "step", "risk", "eps",
                          title="Theorem 2's schedule", **axes),
            charts.curves(off.with_columns(risk=risk), "step", "risk", "schedule",
                          title=f"Off the schedule, ε = {strong:g}", band="quartiles", **axes),
            *(charts.curves(_promises(largest.filter(eps=eps)), "step", "fall", "what",
                            title=f"Inequality (10), n = {sizes[-1]:,}, ε = {eps:g}",
                            band="quartiles", x_title="iteration",
                            y_title="fall of the potential / v²",
                            theory=pl.DataFrame({"fall": [0.0]}))
              for eps in sorted(largest["eps"].unique())),
            *_ends(scheduled),
            *_lemma_2(deviations(table)),
        ],
        columns=2,
    )  # fmt: skip


def _promises(rows: pl.DataFrame) -> pl.DataFrame:
    """What R~ falls by in the first iterations, and what (10) says that it falls by at least."""
    ten, v2 = inequality_10(rows), float(rows["v"][0]) ** 2
    both = {
        "measured": ten.change,
        "at least, by (10)": ten.fall - ten.slack,
        "at least, sharp form": ten.fall - ten.sharp,
    }
    return pl.concat(
        pl.DataFrame(
            {"step": np.tile(np.arange(values.shape[1]), len(values)), "fall": values.ravel() / v2}
        ).with_columns(what=pl.lit(what))
        for what, values in both.items()
    ).filter(pl.col("step") <= 25)


def _ends(scheduled: pl.DataFrame) -> list[charts.AnyChart]:
    ends = last_steps(scheduled)
    x = {"x_title": "samples n", **LOGS}
    return [
        charts.points(ends, "n", "distance", "eps", title="Distance to θ*",
                      y_title="‖θ(T) − θ*‖ / v", **x),
        charts.points(ends, "n", "excess", "eps", title="Theorem 2: the excess vanishes",
                      y_title="|R_{L,ξ}(θ(T)) − R*| / v²", **x),
        charts.points(needed_constant(scheduled), "n", "inverse", "eps",
                      title="No B₃ serves all ξ", y_title="the least 1 / B₃ of a run", **x),
    ]  # fmt: skip


def _lemma_2(found: pl.DataFrame) -> list[charts.AnyChart]:
    once, over_d = over_samples(found), over_dimensions(found)
    sizes = once["n"].unique().sort().to_list()
    bound = pl.DataFrame(
        {"n": sizes, "lemma2": [float(once["v"][0] * np.sqrt(4 * np.log(n) / n)) for n in sizes]}
    )
    first = over_d.filter(d=over_d["d"].min()).group_by("eps", maintain_order=True).agg(
        pl.col("constant").mean(), pl.col("d").first()
    )  # fmt: skip
    halves = first.join(pl.DataFrame({"to": over_d["d"].unique().sort()}), how="cross").select(
        "eps", constant=pl.col("constant") * (pl.col("d") / pl.col("to")).sqrt(), d="to"
    )
    return [
        charts.points(once, "n", "lemma2", "eps", theory=bound,
                      title="Lemma 2, d = 2; dashed: v √(d² log n / n)", x_title="samples n",
                      y_title="largest deviation δ found", **LOGS),
        charts.points(over_d, "d", "constant", "eps", theory=halves,
                      title="Lemma 2 over d; dashed: d^(-1/2)", x_title="dimension d",
                      y_title="δ / (v √(d² log n / n))", **LOGS),
        charts.points(once, "n", "needed", "eps", title="What the proof needs to vanish",
                      x_title="samples n", y_title="δ v / ξ", **LOGS),
    ]  # fmt: skip


def last_steps(scheduled: pl.DataFrame) -> pl.DataFrame:
    """The last iterate of each run, with |R_{L,xi}(theta(T)) - R*|/v^2."""
    excess = (pl.col("surrogate") - pl.col("least")).abs() / pl.col("v") ** 2
    return scheduled.filter(pl.col("step") == pl.col("steps")).with_columns(excess=excess)


def needed_constant(scheduled: pl.DataFrame) -> pl.DataFrame:
    """The least 1/B_3 with gap <= (xi/B_3) |grad R~| along each run."""
    share = (pl.col("gap") / (pl.col("xi") * pl.col("gradient"))).max()
    return scheduled.group_by("n", "eps", "seed", maintain_order=True).agg(inverse=share)


def deviations(table: pl.DataFrame) -> pl.DataFrame:
    """Lemma 2's deviation of each draw, over its order and against xi."""
    n = pl.col("n").cast(float)
    return table.filter(schedule="none").with_columns(
        constant=pl.col("lemma2") / (pl.col("v") * pl.col("d") * (n.log() / n).sqrt()),
        needed=pl.col("lemma2") * pl.col("v") / pl.col("xi"),
    )


def over_samples(found: pl.DataFrame) -> pl.DataFrame:
    """The rows over n, at the least d."""
    return found.filter(d=found["d"].min())


def over_dimensions(found: pl.DataFrame) -> pl.DataFrame:
    """The rows over d, at the n that has several."""
    return found.filter(pl.col("d").n_unique().over("n") > 1)
