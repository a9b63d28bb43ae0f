"""Where accuracy crosses a level on a heat map, and the power law that the crossing follows."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

LEVEL = 0.8
"""The accuracy whose contour is followed; the best possible is 1 - beta = 0.9."""

NEAR = 0.5
"""How near an exponent must be to the power that is claimed: the next whole number is not."""


def crossings(
    table: pl.DataFrame, along: str, across: str, value: str, level: float = LEVEL
) -> pl.DataFrame:
    """For each seed and level of `across`, the place `along` where the value crosses `level`.

    The value is made monotone along the axis first (least squares), so there is one crossing at
    most, and is taken as linear in log(along) between grid points. Where there is none, no row.
    """
    keys = ["seed", across]
    found = [
        {**dict(zip(keys, key, strict=True)), along: place}
        for key, rows in table.sort(along).partition_by(keys, as_dict=True).items()
        if (place := _crossing(rows[along].to_numpy(), rows[value].to_numpy(), level)) is not None
    ]
    schema = {"seed": table.schema["seed"], across: table.schema[across], along: pl.Float64}
    return pl.DataFrame(found, schema=schema)


def first_colour(table: pl.DataFrame, x: str, y: str, *values: str) -> float:
    """Where the colours of a map begin: at 0.5, or at the tenth below its least accuracy.

    Under attack more than half of the points can be wrong.
    """
    means = table.group_by(x, y).agg(pl.mean(*values)).select(values)
    return min(0.5, float(np.floor(10 * means.to_numpy().min())) / 10)


def drawn(lines: pl.DataFrame) -> pl.DataFrame | None:
    """Contours for a heat map; None where there are none, as an empty layer has no size."""
    return None if lines.is_empty() else lines


def exponents(table: pl.DataFrame, along: str, across: str) -> dict[int, float]:
    """The p of across ~ along^p, by seed; not a number where a seed has fewer than 3 crossings.

    log(along) is regressed on log(across): the grid is exact, the crossing has the noise.
    """
    return {seed: _exponent(rows, along, across) for seed, rows in _by_seed(table)}


def ranks(table: pl.DataFrame, along: str, across: str, value: str, level: float) -> list[float]:
    """Spearman's correlation of `across` and the place of the crossing, by seed; not a number where
    a seed has fewer than 3 crossings."""
    found = crossings(table, along, across, value, level)
    return [
        _spearman(found.filter(seed=seed), along, across) for seed in sorted(table["seed"].unique())
    ]


def _spearman(rows: pl.DataFrame, along: str, across: str) -> float:
    if rows.height < 3:
        return float("nan")
    return float(np.corrcoef(rankdata(rows[across]), rankdata(rows[along]))[0, 1])


def _by_seed(table: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    for (seed,), rows in sorted(table.partition_by("seed", as_dict=True).items()):
        yield seed, rows


def _exponent(rows: pl.DataFrame, along: str, across: str) -> float:
    if rows.height < 3:
        return float("nan")
    return 1 / float(np.polyfit(np.log(rows[across]), np.log(rows[along]), 1)[0])


def _crossing(places: np.ndarray, values: np.ndarray, level: float) -> float | None:
    rising = values[-1] >= values[0]
    smooth = isotonic_regression(values, increasing=bool(rising)).x
    above = smooth >= level
    if above.all() or not above.any():
        return None
    right = int(np.argmax(above != above[0]))
    low, high = smooth[right - 1], smooth[right]
    share = (level - low) / (high - low)
    logs = np.log(places[right - 1 : right + 1])
    return float(np.exp(logs[0] + share * (logs[1] - logs[0])))
