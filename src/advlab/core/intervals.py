"""One number and its confidence interval from one value per replicate, or why there is none.

scipy.stats takes a second to import and workers never need it, so each statistic asks for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .errors import AdvlabError


@runtime_checkable
class Column(Protocol):
    """A column of a table, as polars has it; polars itself need not be imported for it."""

    def cast(self, dtype: Any) -> Any: ...

    def to_numpy(self) -> Any: ...


Number = float | int | np.number
Sample = Number | np.bool | np.ndarray | Column | Sequence | None
"""A number (exact), or one value per replicate; None is a value that is missing."""

CONFIDENCE = 0.95
FEWEST = 3
"""Two replicates can agree by chance, and a spread of zero would pass for certainty."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval; without one of them, the note says why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""


def estimate(sample: Sample, statistic: str, level: float = CONFIDENCE) -> Estimate:
    """The statistic of a sample with its interval; a bare number is exact and its own interval.

    Args:
        sample: a number, or one value per replicate.
        statistic: "mean" (Student's interval), "median" (between order statistics) or "share"
            (Clopper and Pearson's interval for values 0 and 1).
        level: the probability that the interval covers the truth.

    Returns:
        The value and its interval; without a value, a note that says why there is none.

    Example:
        from advlab.core.intervals import estimate
        estimate([0.9, 1.1, 1.0], "mean")  # value 1.0, low 0.75, high 1.25
    """
    values = numbers(sample)
    missing = int(np.count_nonzero(~np.isfinite(values)))
    if values.ndim == 0:
        exact = None if missing else float(values)
        return Estimate(exact, exact, exact, "the value is missing" if missing else "exact value")
    if missing:
        return Estimate(None, note=f"{missing} of {values.size} values are missing or not finite")
    if values.size < FEWEST:
        note = f"{_count(values.size)}: an interval needs at least {FEWEST}"
        middle = np.median if statistic == "median" else np.mean
        return Estimate(float(middle(values)) if values.size else None, note=note)
    with np.errstate(over="ignore", invalid="ignore"):
        found = STATISTICS[statistic](values, level)
    if not np.isfinite(found).all():
        return Estimate(None, note=f"{_count(values.size)}: the {statistic} has no finite interval")
    agree = ", all equal" if np.ptp(values) == 0 else ""
    return Estimate(*(float(number) for number in found), note=_count(values.size) + agree)


def numbers(sample: Sample) -> np.ndarray:
    """The sample as floats: no axis for an exact number, else one axis of replicates."""
    if isinstance(sample, Column):
        sample = sample.cast(float).to_numpy()
    values = np.asarray(sample, dtype=float)
    if values.ndim > 1:
        raise AdvlabError("a sample is one value per replicate", f"an array of {values.shape}")
    return values


def clopper_pearson(hits: float | int, n: int, level: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of Clopper and Pearson for a probability, from `hits` in `n` trials.

    Args:
        hits: how often it happened; a broken number, where trials count by shares, is taken into
            the same formula, whose ends are quantiles of beta distributions.
        n: how often it was tried.
        level: the interval covers the probability at least this often.

    Returns:
        Its low and its high end.
    """
    from scipy import stats

    if isinstance(hits, int):
        low, high = stats.binomtest(hits, n).proportion_ci(level, method="exact")
        return float(low), float(high)
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, hits, n - hits + 1) if hits > 0 else 0.0
    high = stats.beta.ppf(1 - tail, hits + 1, n - hits) if hits < n else 1.0
    return float(low), float(high)


def student(freedom: int, level: float = CONFIDENCE) -> float:
    """How many standard errors Student's interval reaches to either side.

    Args:
        freedom: degrees of freedom.
        level: the interval covers the mean of normal values this often.
    """
    from scipy import stats

    return float(stats.t.ppf((1 + level) / 2, freedom))


def _mean(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """Student's interval."""
    from scipy import stats

    mean = values.mean()
    half = student(values.size - 1, level) * stats.sem(values)
    return mean, mean - half, mean + half


def _median(values: np.ndarray, level: float) -> tuple[float, float, float]:
    """The interval between two order statistics, right for any distribution; nan below six."""
    from scipy import stats

    low, high = stats.quantile_test(values, p=0.5).confidence_interval(level)
    return np.median(values), low, high


def _share(values: np.ndarray, level: float) -> tuple[float, float, float]:
    if not np.isin(values, (0, 1)).all():
        raise AdvlabError("a share needs one true or false per replicate", values.tolist())
    held = int(values.sum())
    return held / values.size, *clopper_pearson(held, values.size, level)


STATISTICS: dict[str, Callable[[np.ndarray, float], tuple[float, float, float]]] = {
    "mean": _mean,
    "median": _median,
    "share": _share,
}


def _count(size: int) -> str:
    return f"{size} replicate{'' if size == 1 else 's'}"
