"""Where robust margins are 0, and how they compare at equal S - alpha or S/C - alpha.

Values between settings are interpolated; beyond them nothing is said.
"""

import numpy as np
import polars as pl

from .scaling_settings import ACROSS

MOVED = {"n": "n", "d": "d", "mu": "mu_norm"}
"""What reaches S, and its column."""
HIGH = 4.0
"""The S at which alpha crosses it."""
EQUAL = (0.0, 0.5, 1.0)
"""Values of S - alpha and S/C - alpha at which margins are compared."""


def crossing(x: np.ndarray, margin: np.ndarray) -> float:
    """The x at which margins change their sign for the first time; not a number if they never do.

    Args:
        x: what is moved, in any order.
        margin: the margin at each.
    """
    order = np.argsort(x)
    at, y = np.asarray(x, dtype=float)[order], np.asarray(margin, dtype=float)[order]
    changed = np.flatnonzero((y[:-1] > 0) != (y[1:] > 0))
    if not len(changed) or not np.isfinite(y).all():
        return np.nan
    i = changed[0]
    return float(at[i] - y[i] * (at[i + 1] - at[i]) / (y[i + 1] - y[i]))


def across(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs in which n, d or ||mu|| is moved at alpha = 2, the base among them."""
    return runs.filter(pl.col("route").is_in(list(MOVED)), pl.col("alpha") == ACROSS)


def along(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs in which alpha is moved at S = 4."""
    return runs.filter(pl.col("route").is_in(list(MOVED)), pl.col("level") == HIGH)


def thresholds(runs: pl.DataFrame) -> dict[str, dict[str, list[float]]]:
    """alpha/S where the robust margin is 0: by network and what moves S, of each seed in order.

    The outer names are "S", where S moves at alpha = 2, and "alpha", where alpha does at S = 4.
    """
    return {
        "S": _by_seed(across(runs), lambda one: ACROSS / crossing(one["S"], one["robust_margin"])),
        "alpha": _by_seed(
            along(runs), lambda one: crossing(one["alpha"], one["robust_margin"]) / HIGH
        ),
    }


def _by_seed(rows: pl.DataFrame, value) -> dict[str, list[float]]:
    parts = rows.partition_by("activation", "route", as_dict=True)
    return {
        f"{shape}, S by {route}": [
            value({name: one[name].to_numpy() for name in ("S", "alpha", "robust_margin")})
            for _, one in sorted(part.partition_by("seed", as_dict=True).items())
        ]
        for (shape, route), part in sorted(parts.items())
    }


def implied_constant(grid: pl.DataFrame) -> float:
    """The C of the law m = S/C of clean margins."""
    return float(grid["S"].to_numpy().sum() / grid["clean_margin"].to_numpy().sum())


def drifts(grid: pl.DataFrame, scaled: bool) -> dict[str, list[float]]:
    """How far the robust margin moves per unit of S while S - alpha stays: 0 if margins collapse.

    Args:
        grid: runs at several S and alpha.
        scaled: whether S/C - alpha is to stay, with the C of the network's clean margins, of each
            seed.

    Returns:
        Changes from the smallest S, by network, value of the difference and S, of each seed.
    """
    found: dict[str, list[float]] = {}
    for (shape, _), one in sorted(grid.partition_by("activation", "seed", as_dict=True).items()):
        C = implied_constant(one) if scaled else 1.0
        levels = {S: rows for (S,), rows in one.partition_by("level", as_dict=True).items()}
        for kept in EQUAL:
            margins = {S: _margin(levels[S], S / C - kept) for S in sorted(levels)}
            (least, first), *others = margins.items()
            for S, margin in others:
                name = f"{shape}, difference {kept:g}, S = {S:g}"
                found.setdefault(name, []).append((margin - first) / (S - least))
    return found


def _margin(rows: pl.DataFrame, alpha: float) -> float:
    ordered = rows.sort("alpha")
    x, y = ordered["alpha"].to_numpy(), ordered["robust_margin"].to_numpy()
    return float(np.interp(alpha, x, y, left=np.nan, right=np.nan))
