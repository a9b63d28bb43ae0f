"""The figure of the scaling law: margins over S, by what reached it, under attack, and over r."""

import numpy as np
import polars as pl

from .....report.charts import AnyChart, curves, panels, points, stacked
from ...theory import fit_C
from .scaling_runs import strengths

NAMES = {"smoothed_leaky_relu": "SLReLU", "relu": "ReLU"}
ROUTES = {"base": "base", "n": "by n", "d": "by d", "mu": "by ||mu||"}
S_TITLE = "S = sqrt(n/d) ||mu||²"


def figure(table: pl.DataFrame) -> AnyChart:
    runs = strengths(table).with_columns(network=pl.col("activation").replace_strict(NAMES))
    beta = float(runs["beta"].to_numpy().mean())
    swept = runs.filter(pl.col("route").is_in(list(ROUTES)), pl.col("alpha") == 0.5)
    swept = swept.with_columns(pl.col("route").replace_strict(ROUTES))
    top = runs.filter(pl.col("route").is_in(["n", "d", "mu"]), pl.col("level") == 4.0)
    # Rows of their own: what colours stand for differs between them.
    return stacked(
        panels(_collapses(swept, beta)),
        panels([_errors(swept), *_ratios(runs, beta), *_radii(top, beta)]),
    )


def _collapses(swept: pl.DataFrame, beta: float) -> list[AnyChart]:
    ends = swept["S"].to_numpy().min(), swept["S"].to_numpy().max()
    line = pl.DataFrame({"S": ends, "clean_margin": [(1 - 2 * beta) * one for one in ends]})
    wrong = swept.with_columns(W=(pl.col("n") / pl.col("d")).sqrt() * pl.col("mu_norm"))
    look = {"y_title": "clean margin m", "log_y": True, "log_x": True, "band": "standard error"}
    return [
        *(
            points(
                swept.filter(pl.col("activation") == shape), "S", "clean_margin", "route",
                theory=line, title=f"{name}: n, d and ||mu|| through S", x_title=S_TITLE, **look,
            )
            for shape, name in NAMES.items()
            if shape in swept["activation"]
        ),
        points(
            wrong.filter(pl.col("activation") == "smoothed_leaky_relu"), "W", "clean_margin",
            "route", title="SLReLU: a wrong power of ||mu||", x_title="sqrt(n/d) ||mu||", **look,
        ),
    ]  # fmt: skip


def _errors(swept: pl.DataFrame) -> AnyChart:
    """The excess clean error of both networks, and Theorem 3.1 (2) with the C that covers them."""
    beta = swept["beta"].to_numpy()
    excess = (1 - 2 * beta) * np.exp(swept["log_clean"].to_numpy())
    sizes = {name: swept[name].to_numpy() for name in ("n", "d", "mu_norm")}
    C = fit_C(beta + excess, **sizes, alpha=0.0, beta=beta)
    grid = np.linspace(1, 4, 40)
    bound = pl.DataFrame({"S": grid, "excess": np.minimum(2 * np.exp(-((grid / C) ** 2) / 2), 1)})
    return points(
        swept.with_columns(excess=pl.Series(excess)), "S", "excess", "network", theory=bound,
        title=f"Theorem 3.1 (2) with C = {C:.2f}, c = 1/2", x_title=S_TITLE,
        y_title="clean error less beta", log_y=True, band="standard error",
    )  # fmt: skip


def _radii(top: pl.DataFrame, beta: float) -> list[AnyChart]:
    grid = np.linspace(0.5, 3, 20)
    line = pl.DataFrame({"alpha": grid, "robust_margin": 4 * (1 - 2 * beta) - grid})
    return [
        points(
            top.filter(pl.col("route") == route), "alpha", "robust_margin", "network", theory=line,
            title=f"S = 4 {ROUTES[route]}: robust margin over alpha", x_title="alpha",
            y_title="robust margin", band="standard error",
        )
        for route in ("n", "d", "mu")
        if route in top["route"]
    ]  # fmt: skip


def _ratios(runs: pl.DataFrame, beta: float) -> list[AnyChart]:
    rows = runs.filter(pl.col("route") == "ratio").with_columns(
        needed=pl.col("S") / pl.col("clean_margin")
    )
    if rows.is_empty():
        return []
    grid = np.geomspace(0.01, 10, 40)
    share = (1 - 2 * beta) ** 2 * grid
    line = pl.DataFrame({"ratio": grid, "exponent": share / (1 + share)})
    needed = pl.DataFrame({"ratio": grid, "needed": np.sqrt(grid / (share / (1 + share)))})
    look = {"x_title": "n ||mu||²/d", "log_x": True, "log_y": True, "band": "standard error"}
    return [
        curves(rows, "ratio", "exponent", "network", theory=line,
               title="E of p = (LBD - beta)^E", y_title="exponent E", **look),
        curves(rows, "ratio", "needed", "network", theory=needed,
               title="C of the law m = S/C", y_title="S/m", **look),
    ]  # fmt: skip
