"""The figure of the scaling law: margins over S, across the threshold, over S - alpha; and E."""

import numpy as np
import polars as pl
from scipy.special import ndtr

from .....report.charts import AnyChart, curves, panels, points, stacked
from ...theory import fit_C
from .scaling_claims import shares
from .scaling_runs import strengths, trusted
from .scaling_settings import ACROSS
from .scaling_thresholds import HIGH, MOVED, across, along, implied_constant

NAMES = {"smoothed_leaky_relu": "SLReLU", "relu": "ReLU"}
SYMBOLS = {"n": "n", "d": "d", "mu": "||mu||"}
SWEPT = {"base": "base", **SYMBOLS}
ROUTES = {
    "base": "base", "n": "n swept", "d": "d swept", "mu": "||mu|| swept",
    "alpha": "alpha = ||mu||", "grid": "S and alpha swept", "ratio": "n ||mu||^2/d swept",
    "order": "n ||mu||^2/d and alpha inside",
    "inside": "inside Assumption 1", "inside_n": "n inside", "inside_d": "d inside",
    "inside_mu": "||mu|| inside", "inside_alpha": "alpha inside",
}  # fmt: skip
"""Names of the routes."""
S_TITLE = "S = sqrt(n/d) ||mu||²"


def figure(table: pl.DataFrame) -> AnyChart:
    runs = trusted(strengths(table)).with_columns(
        network=pl.col("activation").replace_strict(NAMES)
    )
    runs = runs.sort(pl.col("network").cast(pl.Enum(list(NAMES.values()))), maintain_order=True)
    swept = runs.filter(pl.col("route").is_in(list(SWEPT)), pl.col("alpha") == 0.5)
    beta = float(swept["beta"].to_numpy().mean())
    swept = swept.with_columns(moved=pl.col("route").replace_strict(SWEPT))
    grid = runs.filter(pl.col("route") == "grid")
    # Rows of their own: what colours stand for differs between them.
    threes = [
        _collapses(swept, beta),
        [_errors(swept), *_inside(runs, beta)],
        [*_order(runs), *_strong(runs)],
    ]
    twos = [
        [*_thresholds(across(runs), beta), *_alpha(along(runs), beta)],
        _shared(runs, beta),
        _differences(grid, beta),
    ]
    return stacked(
        *(panels(one) for one in threes if one), *(panels(one, columns=2) for one in twos if one)
    )


def _collapses(swept: pl.DataFrame, beta: float) -> list[AnyChart]:
    ends = swept["S"].to_numpy().min(), swept["S"].to_numpy().max()
    line = pl.DataFrame({"S": ends, "clean_margin": [(1 - 2 * beta) * one for one in ends]})
    wrong = swept.with_columns(W=(pl.col("n") / pl.col("d")).sqrt() * pl.col("mu_norm"))
    look = {"y_title": "clean margin m", "log_y": True, "log_x": True, "band": "standard error"}
    return [
        *(
            points(
                swept.filter(pl.col("activation") == shape), "S", "clean_margin", "moved",
                theory=line, title=f"{name}: n, d and ||mu|| through S", x_title=S_TITLE, **look,
            )
            for shape, name in NAMES.items()
            if shape in swept["activation"]
        ),
        points(
            wrong.filter(pl.col("activation") == "smoothed_leaky_relu"), "W", "clean_margin",
            "moved", title="SLReLU: a wrong power of ||mu||", x_title="sqrt(n/d) ||mu||", **look,
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


def _thresholds(runs: pl.DataFrame, beta: float) -> list[AnyChart]:
    """n, d and ||mu|| across the threshold, with the law (1 - 2 beta) S - alpha."""
    found = []
    for route, name in MOVED.items():
        part = runs.filter(pl.col("route") == route).cast({name: pl.Float64})
        if part.is_empty():
            continue
        low, high = part[name].to_numpy().min(), part[name].to_numpy().max()
        grid = np.geomspace(low, high, 40)
        fixed = {one: float(part[one].to_numpy()[0]) for one in MOVED.values()} | {name: grid}
        S = np.sqrt(fixed["n"] / fixed["d"]) * np.square(fixed["mu_norm"])
        line = pl.DataFrame({name: grid, "robust_margin": (1 - 2 * beta) * S - ACROSS})
        found.append(
            points(part, name, "robust_margin", "network", theory=line, x_title=SYMBOLS[route],
                   title=f"alpha = {ACROSS:g}: across the threshold by {SYMBOLS[route]}",
                   y_title="robust margin", log_x=True, band="standard error")
        )  # fmt: skip
    return found


def _alpha(top: pl.DataFrame, beta: float) -> list[AnyChart]:
    if top.is_empty():
        return []
    grid = np.linspace(0.5, HIGH, 20)
    line = pl.DataFrame({"alpha": grid, "robust_margin": HIGH * (1 - 2 * beta) - grid})
    return [
        points(
            top, "alpha", "robust_margin", "network", theory=line, x_title="alpha",
            title=f"S = {HIGH:g}: across the threshold by alpha", y_title="robust margin",
            band="standard error",
        )
    ]  # fmt: skip


def _shared(runs: pl.DataFrame, beta: float) -> list[AnyChart]:
    """All four across the threshold, each in units of its alpha, and the base at alpha = 2."""
    base = pl.col("route") == "grid", pl.col("level") == 2.0, pl.col("alpha") == ACROSS
    both = pl.concat([
        runs.filter(*base).with_columns(moved=pl.lit("base")),
        across(runs).filter(pl.col("level") != HIGH)
        .with_columns(moved=pl.col("route").replace_strict(SYMBOLS)),
        along(runs).filter(pl.col("alpha") >= ACROSS).with_columns(moved=pl.lit("alpha")),
    ]).with_columns(
        strength=(pl.col("S") / pl.col("alpha")).round(3),
        share=pl.col("robust_margin") / pl.col("alpha"),
    )  # fmt: skip
    if both.is_empty():
        return []
    ends = np.array([both["strength"].to_numpy().min(), both["strength"].to_numpy().max()])
    law = pl.DataFrame({"strength": ends, "share": (1 - 2 * beta) * ends - 1})
    return [
        points(
            both.filter(pl.col("network") == name), "strength", "share", "moved", theory=law,
            title=f"{name}: one threshold in n, d, ||mu|| and alpha", x_title="S/alpha",
            y_title="robust margin/alpha", band="standard error",
        )
        for name in NAMES.values()
        if name in both["network"]
    ]  # fmt: skip


def _differences(grid: pl.DataFrame, beta: float) -> list[AnyChart]:
    """Margins and excess errors over S - alpha on the left, over S/C - alpha on the right."""
    found: list[AnyChart] = []
    for name in NAMES.values():
        part = grid.filter(pl.col("network") == name)
        if part.is_empty():
            continue
        C = implied_constant(part)
        part = part.with_columns(
            excess=(1 - 2 * pl.col("beta")) * pl.col("log_robust").exp(),
            plain=(pl.col("S") - pl.col("alpha")).round(3),
            scaled=(pl.col("S") / C - pl.col("alpha")).round(3),
        ).drop("S").rename({"level": "S"})  # fmt: skip
        low, high = part["scaled"].to_numpy().min(), part["scaled"].to_numpy().max()
        for value, title in (("robust_margin", "robust margin"), ("excess", "excess robust error")):
            x = np.linspace(low, high, 40)
            law = x if value == "robust_margin" else (1 - 2 * beta) * ndtr(-x)
            line = pl.DataFrame({"scaled": x, value: law})
            look = {"y_title": title, "band": "standard error", "log_y": value == "excess"}
            found += [
                points(part, "plain", value, "S", title=f"{name}: over S - alpha",
                       x_title="S - alpha", **look),
                points(part, "scaled", value, "S", theory=line, x_title=f"S/C - alpha, C = {C:.2f}",
                       title=f"{name}: over S/C - alpha", **look),
            ]  # fmt: skip
    return found


def _inside(runs: pl.DataFrame, beta: float) -> list[AnyChart]:
    """Inside Assumption 1: clean margins over S, and robust ones over alpha at S = 100."""
    routes = {"inside": "base", "inside_n": "n", "inside_d": "d", "inside_mu": "||mu||"}
    swept = runs.filter(pl.col("route").is_in(list(routes)))
    if swept.is_empty():
        return []
    swept = swept.with_columns(moved=pl.col("route").replace_strict(routes))
    ends = swept["S"].to_numpy().min(), swept["S"].to_numpy().max()
    line = pl.DataFrame({"S": ends, "clean_margin": [(1 - 2 * beta) * one for one in ends]})
    found: list[AnyChart] = [
        points(swept, "S", "clean_margin", "moved", theory=line, log_x=True, log_y=True,
               title="Inside Assumption 1: through S", x_title=S_TITLE, y_title="clean margin m",
               band="standard error")
    ]  # fmt: skip
    radii = runs.filter(pl.col("route") == "inside_alpha")
    if not radii.is_empty():
        S, ends = radii["S"].to_numpy()[0], radii["alpha"].to_numpy()
        ends = [ends.min(), ends.max()]
        line = pl.DataFrame(
            {"alpha": ends, "robust_margin": [(1 - 2 * beta) * S - a for a in ends]}
        )
        found.append(
            points(radii, "alpha", "robust_margin", "network", theory=line, x_title="alpha",
                   title=f"Inside: by alpha at S = {S:.0f}", y_title="robust margin",
                   band="standard error")
        )  # fmt: skip
    return found


def _order(runs: pl.DataFrame) -> list[AnyChart]:
    """E inside Assumption 1 and, dashed, that of Theorem 3.1 (3); and what it is of the ratio."""
    rows = shares(runs.filter(pl.col("route") == "order"))
    if rows.is_empty():
        return []
    rows = rows.with_columns(
        radius="alpha = " + pl.col("radius"), constant=pl.col("exponent") / pl.col("ratio")
    )
    law = rows.group_by("ratio", "radius").agg(pl.col("bound").mean()).sort("radius", "ratio")
    lines = law.rename({"bound": "exponent"})
    constant = law.select("ratio", "radius", constant=pl.col("bound") / pl.col("ratio"))
    look = {"x_title": "n ||mu||²/d", "log_x": True, "log_y": True, "band": "standard error"}
    return [
        curves(rows, "ratio", "exponent", "radius", theory=lines, y_title="exponent E",
               title="Inside: E, dashed that of the upper bound", **look),
        curves(rows, "ratio", "constant", "radius", theory=constant, y_title="E d/(n ||mu||²)",
               title="Inside: the constant of the order", **look),
    ]  # fmt: skip


def _strong(runs: pl.DataFrame) -> list[AnyChart]:
    """E up to ratios that Assumption 1 excludes and, dashed, that of the averaging classifier."""
    rows = runs.filter(pl.col("route") == "ratio")
    if rows.is_empty():
        return []
    words = pl.when(pl.col("beta") == 0).then(pl.lit("none")).when(pl.col("beta") < 0.05)
    words = words.then(pl.lit("1 of 80")).otherwise(pl.lit("8 of 80"))
    rows = rows.with_columns(flipped=words)
    first = pl.when(pl.col("steps") == 1).then(pl.lit("8 of 80, one step"))
    rows = rows.with_columns(flipped=first.otherwise("flipped"))
    law = rows.filter(pl.col("flipped") != "8 of 80, one step")
    law = law.group_by("ratio", "flipped").agg(exponent=pl.col("averaging").mean())
    return [
        points(rows, "ratio", "exponent", "flipped", theory=law.sort("flipped", "ratio"),
               title="E by flipped labels, dashed: averaging", x_title="n ||mu||²/d",
               y_title="exponent E", log_x=True, log_y=True, band="standard error")
    ]  # fmt: skip
