"""The figure of `stopping_times`: one panel per question."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from .....report import charts

HIGHEST = 1.5
"""The constant of Condition M in the experiment's claim."""


def stopping_figure(
    table: pl.DataFrame,
    *,
    at: tuple[int, int],
    tiny: float,
    nets: Sequence[str],
    relu: Sequence[str],
) -> charts.AnyChart:
    """All panels.

    Args:
        table: of the experiment.
        at: n of the runs over d, and d of the networks.
        tiny: the xi that stands for any.
        nets: smooth networks.
        relu: ReLU networks, by their step.
    """
    n, d = at
    others = table.filter((pl.col("law") != "gaussian") | (pl.col("rho") > 0))
    mirrored = table.filter(pl.col("symmetrised"), eps=0.1)
    table = table.filter(~pl.col("symmetrised"), law="gaussian", rho=0.0)
    linear = table.filter(net="linear")
    fixed = linear.filter(pl.col("d") != 400 * n, n=n, xi=0.1)
    moving = fixed.filter(pl.col("rate").is_not_nan())
    sizes = linear.filter(pl.col("d") == 400 * pl.col("n"), pl.col("rate").is_not_nan())
    axes: dict[str, Any] = {"log_x": True, "band": "standard error"}
    of_d, of_n = {"x_title": "dimension d", **axes}, {"x_title": "samples n", **axes}
    attacked = table.filter(eps=0.1)
    return charts.panels(
        [
            _condition_m(fixed, of_d),
            charts.points(moving, "d", "theta at T", "eps", y_title="‖θ(T)‖ / (v √(n/d))",
                          title=f"θ at T, n = {n}: no matter ε", **of_d),
            charts.points(linear.filter(pl.col("eps") > 0, n=n, xi=tiny), "d", "gap", "eps",
                          y_title="constant of (13)", log_y=True,
                          title="Difference of gradients up to T", **of_d),
            charts.points(sizes, "n", "rate", theory=_iterated(sizes, 1 / 4), y_title="η T d / n",
                          title="Linear model; dashed: (log log n) / 4", **of_n),
            *_over_sizes(table, [*nets, relu[0]], of_n),
            charts.points(moving, "d", "risk", "eps", theory=pl.DataFrame({"risk": [1.0]}),
                          y_title="R_{L,ξ} at T / v²", title=f"Linear model, n = {n}", **of_d),
            _eigenvalues(fixed.filter(eps=0.0), of_d),
            _networks(attacked.filter(n=n, d=d, xi=0.1), nets, axes),
            _relu(attacked.filter(n=n, d=d, xi=0.1), relu, f"ReLU by its step, d = {d}"),
            _relu(mirrored, relu, "ReLU, symmetrised data"),
            *_at_the_stop(attacked.filter(n=n, d=d, xi=0.1), n, [*nets, *relu]),
            _other_laws(others),
        ],
        columns=3,
    )  # fmt: skip


def _condition_m(rows: pl.DataFrame, axes: dict[str, Any]) -> charts.AnyChart:
    """The largest of all runs up to T, which the bound is about."""
    bounds = {"theta": "‖θ‖ / (v √(n/d))", "outputs": "‖Xθ‖ / (v √n)"}
    largest = rows.group_by("d", "eps").agg(pl.col(name).max() for name in bounds)
    both = pl.concat(
        largest.select("d", "eps", value=name, what=pl.lit(words)) for name, words in bounds.items()
    ).sort("what", "d")
    return charts.points(both, "d", "value", "what",
                         title=f"Condition M, n = {rows['n'][0]}; dashed: bound",
                         y_title="largest of all runs up to T", y_domain=(0, 1.6),
                         theory=pl.DataFrame({"value": [HIGHEST]}), **axes)  # fmt: skip


def _iterated(sizes: pl.DataFrame, factor: float) -> pl.DataFrame:
    line = pl.DataFrame({"n": sizes["n"].unique().sort()})
    return line.with_columns(rate=factor * pl.col("n").cast(float).log().log())


def _over_sizes(
    table: pl.DataFrame, nets: Sequence[str], axes: dict[str, Any]
) -> list[charts.AnyChart]:
    """Loss and risk at T of the linear model and of networks, d = 400 n."""
    rows = table.filter(pl.col("d") == 400 * pl.col("n"), pl.col("crossing").is_not_nan(), eps=0.1)
    kept = _named(rows.filter(pl.col("net").is_in(["linear", *nets]))).with_columns(
        away=(pl.col("risk") - 1).abs() * (pl.col("d") / pl.col("n")).sqrt()
    )
    line = pl.DataFrame({"n": kept["n"].unique().sort()})
    line = line.with_columns(loss=1 / pl.col("n").cast(float).log())
    return [
        charts.points(kept, "n", "loss", "net", theory=line, y_title="loss at T / v²",
                      title="d = 400 n, ε = 0.1; dashed: 1 / log n", **axes),
        charts.points(kept, "n", "away", "net", y_title="|risk at T / v² − 1| / √(n/d)",
                      title="d = 400 n, ε = 0.1", **axes),
    ]  # fmt: skip


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("net").str.replace("relu", "ReLU"))


def _other_laws(rows: pl.DataFrame) -> charts.AnyChart:
    law = pl.when(pl.col("rho") > 0).then(pl.lit("correlated")).otherwise(pl.col("law"))
    return charts.boxes(_named(rows).with_columns(entries=law), "entries", "risk", "net",
                        y_title="risk at T / v²", x_title="",
                        title=f"Remark 1, d = {rows['d'][0]}, ε = 0.1")  # fmt: skip


def _eigenvalues(rows: pl.DataFrame, axes: dict[str, Any]) -> charts.AnyChart:
    root = (pl.col("n") / pl.col("d")).sqrt()
    found = pl.concat(
        rows.select("d", value=name, end=pl.lit(name)) for name in ("smallest", "largest")
    )
    line = pl.concat(
        rows.unique("d").sort("d").select("d", value=(1 + sign * root) ** 2, end=pl.lit(name))
        for name, sign in (("smallest", -1), ("largest", 1))
    )
    return charts.points(found, "d", "value", "end", theory=line, y_title="eigenvalue of XX' / d",
                         title="Lemma 3; dashed: (1 ± √(n/d))²", **axes)  # fmt: skip


def _networks(rows: pl.DataFrame, names: Sequence[str], axes: dict[str, Any]) -> charts.AnyChart:
    level = rows.filter(net="linear")["crossing"].drop_nans()
    nets = rows.filter(pl.col("net").is_in(names), pl.col("crossing").is_not_nan())
    return charts.points(nets, "width", "crossing", "net", y_title="T", x_title="width h",
                         theory=pl.DataFrame({"crossing": [float(level.to_numpy().mean())]}),
                         title=f"Networks, d = {rows['d'][0]}; dashed: linear model",
                         **axes)  # fmt: skip


def _relu(rows: pl.DataFrame, names: Sequence[str], title: str) -> charts.AnyChart:
    kept = rows.filter(pl.col("net").is_in([*names, "linear"]), pl.col("crossing").is_not_nan())
    return charts.boxes(_named(kept), "net", "crossing", y_title="T", x_title="", title=title)


def _at_the_stop(rows: pl.DataFrame, n: int, names: Sequence[str]) -> list[charts.AnyChart]:
    """Loss and risk at T of the linear model and of the widest networks, eps = 0.1."""
    widest = rows.filter(pl.col("width") == pl.col("width").max())
    kept = _named(widest.filter(pl.col("net").is_in([*names, "linear"])))
    return [
        charts.boxes(kept, "net", "loss", y_title="loss at T / v²", x_title="",
                     title=f"At T, ε = 0.1; 1 / log n is {1 / math.log(n):.3f}"),
        charts.boxes(kept, "net", "risk", y_title="risk at T / v²", x_title="",
                     title="At T, ε = 0.1: the zero model has 1"),
    ]  # fmt: skip
