"""The figure of the lemmas: what its claims ask, with bounds dashed where they can be drawn.

The table holds more: sizes of gradients and of the weights, slacks of Lemmas B.7, B.13 and B.30.
"""

import math
from typing import Any

import polars as pl

from .....models import SHAPES as ACTIVATIONS
from .....report import charts
from ...theory import (
    first_step_floor,
    robust_error_lower_bound,
    slrelu_loss_bound,
    training_loss_bound,
)
from .lemmas_runs import SPEED

NAMES = {"smoothed_leaky_relu": "SLReLU", "leaky_relu": "leaky ReLU", "relu": "ReLU"}


def figure(table: pl.DataFrame):
    rows = table.with_columns(network=pl.col("activation").replace_strict(NAMES))
    main = rows.filter(pl.col("kind") == "main")
    return charts.panels([*_losses(main), *_attacks(main), *_weights(main), *_fresh(rows)])


def _over_time(rows: pl.DataFrame, value: str, title: str, y_title: str, **more: Any):
    """A measure of the main runs for t >= 1."""
    later = rows.filter(pl.col("step") >= 1, pl.col(value).is_not_null())
    return charts.curves(
        later, "step", value, "network", title=title, x_title="step t", y_title=y_title,
        log_x=True, apart=True, **more,
    )  # fmt: skip


def _levels(name: str, *values: float) -> pl.DataFrame:
    return pl.DataFrame({name: [float(value) for value in values]})


def _by_network(name: str, values: dict[str, float]) -> pl.DataFrame:
    return pl.DataFrame({"network": list(values), name: list(values.values())})


def _losses(main: pl.DataFrame) -> list:
    return [
        _over_time(main, "L_rob", "Robust training loss (B.15, B.29)", "L_rob and its bound",
                   log_y=True, theory=_loss_bounds(main)),
        _over_time(main, "loss ratio", "Ratio of loss gradients (B.9, B.26)", "max g / min g"),
        _over_time(main, "training error", "Robust training error (Theorem 3.1)", "error"),
        _over_time(main, "scaled step low", "Least step of a margin (B.9, B.26)", "over eta d g/n",
                   theory=_levels("scaled step low", 0)),
    ]  # fmt: skip


def _eta(case: dict[str, Any]) -> float:
    return SPEED * case["n"] / case["d"]


def _gamma(shape: str) -> float:
    return ACTIVATIONS[shape]().gamma or 0.0


def _measured_c0(main: pl.DataFrame, shape: str) -> float | None:
    """The fraction of Lemma B.21 as found at t = 0 and 1; None for the smooth activation."""
    if ACTIVATIONS[shape]().lipschitz is not None:
        return None
    rows = main.filter(pl.col("activation") == shape, pl.col("step") <= 1)
    shares = rows.select(pl.min_horizontal("active of examples", "active of neurons").alias("c0"))
    return max(float(shares["c0"].mean()), 1e-3)  # type: ignore[arg-type]


def _loss_bounds(main: pl.DataFrame) -> pl.DataFrame:
    case = main.row(0, named=True)
    steps = main.filter(pl.col("step") >= 1)["step"].unique().sort()
    eta, length, m, d = _eta(case), case["mu_norm"], case["width"], case["d"]
    parts = []
    for shape, name in NAMES.items():
        c0 = _measured_c0(main, shape)
        if c0 is None:
            bound = slrelu_loss_bound(steps.to_numpy(), length, eta, _gamma(shape), m, 1.0)
        else:
            bound = training_loss_bound(steps.to_numpy(), length, eta, _gamma(shape), m, d, c0=c0)
        parts.append(
            pl.DataFrame({"step": steps, "L_rob": bound}).with_columns(network=pl.lit(name))
        )
    return pl.concat(parts)


def _attacks(main: pl.DataFrame) -> list:
    flipped = main.with_columns(flipped=-pl.col("noisy signal high"))
    return [
        _over_time(main, "clean signal low", "<mu, y x~>/||mu||² on clean labels (B.11)", "least",
                   theory=_levels("clean signal low", 1 / 3)),
        _over_time(flipped, "flipped", "-<mu, y x~>/||mu||² on flipped labels (B.11)", "least",
                   theory=_levels("flipped", 1 / 3)),
    ]  # fmt: skip


def _weights(main: pl.DataFrame) -> list:
    first = main.filter(pl.col("step") == 0)
    length = float(first["mu_norm"][0])
    floors = sorted({first_step_floor(length, _gamma(shape)) for shape in NAMES})
    moves = charts.points(
        first, "network", "move", "network", title="First step; floors gamma ||mu||/10 (B.34)",
        x_title="network", y_title="||W¹ - W⁰||/||W⁰||", log_y=True,
        theory=_levels("move", *floors),
    )  # fmt: skip
    return [
        moves,
        _over_time(main, "active of examples", "Active examples of a neuron (B.21)", "least share"),
        _over_time(main, "active of neurons", "Active neurons of an example (B.21)", "least share"),
        _over_time(main, "lost pairs", "Active pairs lost (B.26)", "pairs since the last point"),
    ]  # fmt: skip


def _fresh(rows: pl.DataFrame) -> list:
    main = rows.filter(pl.col("kind") == "main")
    unit = pl.col("mu_norm") ** 2 * (pl.col("n") / pl.col("d")).sqrt()
    margins = main.with_columns(margin=pl.col("normalised margin") / unit)
    last = rows.filter(pl.col("step") == pl.col("steps"))
    plain = last.filter(pl.col("kind").is_in(["radius", "dimension", "start"]))
    plain = plain.filter(pl.col("alpha") == 1, pl.col("ratio") == 1)
    by_d = plain.with_columns(margin=pl.col("normalised margin") / pl.col("q"))
    starts = last.filter(pl.col("kind") == "start")
    return [
        _over_time(margins, "margin", "Normalised margin (B.14, B.33)", "over ||mu||² sqrt(n/d)"),
        charts.points(by_d, "d", "margin", "network", title="Normalised margin over q (flat)",
                      log_x=True, y_title="min M/(||W||₂ q)"),
        _by_start(rows, "span distance", "max", "Distance to the span by size of the start",
                  "largest distance", log_y=True, theory=_reaches(starts)),
        _by_start(rows, "attack cosine", "min", "Attack against the mean by size of the start",
                  "least cosine"),
        *_by_radius(rows),
    ]  # fmt: skip


def _by_start(rows: pl.DataFrame, value: str, how: str, title: str, y_title: str, **more: Any):
    """The worst of a measure over t >= 1 for each size of the start."""
    later = rows.filter(pl.col("kind") == "start", pl.col("step") >= 1)
    by = later.drop_nulls(value).group_by("network", "ratio", "seed", maintain_order=True)
    worst = by.agg(getattr(pl.col(value), how)())
    return charts.points(
        worst, "ratio", value, "network", title=title, x_title="omega sqrt(m d)/eta",
        y_title=y_title, log_x=True, **more,
    )  # fmt: skip


def _reaches(starts: pl.DataFrame) -> pl.DataFrame:
    """min(omega sqrt(m d)/eta, alpha)"""
    sizes = starts.select("ratio", "alpha").unique(maintain_order=True)
    reach = pl.min_horizontal("ratio", "alpha")
    return sizes.select("ratio", reach.alias("span distance")).sort("ratio")


def _by_radius(rows: pl.DataFrame) -> list:
    runs = rows.filter(pl.col("kind") == "radius")
    later = runs.filter(pl.col("step") >= 1, pl.col("cosine").is_not_null())
    crowded = rows.filter(pl.col("step") >= 1, pl.col("ratio") == 1).with_columns(
        crowding=pl.col("n") * pl.col("alpha") ** 2 / pl.col("d")
    )
    signal = crowded.group_by("network", "crowding", "seed", maintain_order=True).agg(
        pl.min("clean signal low")
    )
    last = runs.filter(pl.col("step") == pl.col("steps"))
    case = rows.row(0, named=True)
    radii = [0.1 * k for k in range(1, math.ceil(10 * case["mu_norm"]) + 1)]
    bound = robust_error_lower_bound(case["mu_norm"], radii, case["beta"], "tight")
    least = later.group_by("network", "alpha", "seed", maintain_order=True).agg(pl.min("cosine"))
    return [
        charts.points(signal, "crowding", "clean signal low", "network", log_x=True,
                      title="Least <mu, y x~>/||mu||² (B.11, B.28)", x_title="n alpha²/d",
                      y_title="least", theory=_levels("clean signal low", 1 / 3)),
        charts.points(least, "alpha", "cosine", "network",
                      title="Least cosine with standard training", y_title="cos(W_adv, W_std)"),
        charts.points(last, "alpha", "clean error", "network", title="Clean test error",
                      y_title="error", theory=_levels("clean error", case["beta"])),
        charts.points(last, "alpha", "robust error", "network", y_title="error",
                      title="Robust test error and Theorem 3.2",
                      theory=pl.DataFrame({"alpha": radii, "robust error": bound})),
    ]  # fmt: skip
