"""One number and its confidence interval from one value per replicate, or why there is none.

scipy.stats takes a second to import and workers never need it, so each statistic asks for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ..core.errors import AdvlabError

Number = float | int | np.number
Sample = Number | np.bool | np.ndarray | pl.Series | Sequence | None
"""A number (exact), or one value per replicate; None is a value that is missing."""

CONFIDENCE = 0.95
FEWEST = 3
"""Two replicates can agree by chance, and a spread of zero would pass for certainty."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; without a value, the note says why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


def estimate(sample: Sample, statistic: str, level: float = CONFIDENCE) -> Estimate:
    """The statistic of a sample with its interval; a bare number is exact and its own interval."""
    values = numbers(sample)
    missing = int(np.count_nonzero(~np.isfinite(values)))
    if values.ndim == 0:
        exact = None if missing else float(values)
        return Estimate(exact, exact, exact, "the value is missing" if missing else "exact value")
    if missing:
        return Estimate(None, note=f"{missing} of {values.size} values are missing or not finite")
    if values.size < FEWEST:
        return Estimate(None, note=f"{_count(values.size)}: an interval needs at least {FEWEST}")
    with np.errstate(over="ignore", invalid="ignore"):
        found = STATISTICS[statistic](values, level)
    if not np.isfinite(found).all():
        return Estimate(None, note=f"{_count(values.size)}: the {statistic} has no finite interval")
    agree = ", all equal" if np.ptp(values) == 0 else ""
    return Estimate(*(float(number) for number in found), note=_count(values.size) + agree)


def numbers(sample: Sample) -> np.ndarray:
    """The sample as floats: no axis for an exact number, else one axis of replicates."""
    if isinstance(sample, pl.Series):
        sample = sample.cast(pl.Float64).to_numpy()
    values = np.asarray(sample, dtype=float)
    if values.ndim > 1:
        raise AdvlabError("a sample is one value per replicate", f"an array, shape {values.shape}")
    return values


def _mean(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Student's interval."""
    from scipy import stats

    mean = values.mean()
    half = stats.t.ppf((1 + level) / 2, values.size - 1) * stats.sem(values)
    return mean, mean - half, mean + half


def _median(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """The interval between two order statistics, right for any distribution; nan below six."""
    from scipy import stats

    low, high = stats.quantile_test(values, p=0.5).confidence_interval(level)
    return np.median(values), low, high


def _share(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Clopper and Pearson's exact interval."""
    from scipy import stats

    if not np.isin(values, (0, 1)).all():
        raise AdvlabError("a share needs one true or false per replicate", values.tolist())
    held = int(values.sum())
    low, high = stats.binomtest(held, values.size).proportion_ci(level, method="exact")
    return held / values.size, low, high


STATISTICS: dict[str, Callable[[np.ndarray, float], tuple[float, float, float]]] = {
    "mean": _mean,
    "median": _median,
    "share": _share,
}


def _count(size: int) -> str:
    return f"{size} replicate{'' if size == 1 else 's'}"
