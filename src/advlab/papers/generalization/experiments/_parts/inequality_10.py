"""Inequality (10) in the proof of Theorem 2, along runs of Algorithm 1."""

from dataclasses import dataclass

import numpy as np
import polars as pl

FAR = 0.25
"""Far from the limit |grad R~|^2 is above this share of the run's largest."""


@dataclass(frozen=True)
class InequalityTen:
    """Its terms: one row per seed, one column per iteration."""

    change: np.ndarray
    """R~(t) - R~(t+1)."""
    fall: np.ndarray
    """(eta/2) |grad R~|^2."""
    slack: np.ndarray
    """2 eta gap B_2 + eta delta B_2."""

    def holds(self) -> np.ndarray:
        """Of each seed, whether R~ falls by the fall less the slack, or more, at each iteration."""
        return np.all(self.change >= self.fall - self.slack - 1e-12, axis=1)

    def largest_share(self) -> float:
        """Slack over fall, the largest far from the limit: (10) says something below 1."""
        far = self.fall >= FAR * self.fall.max(axis=1, keepdims=True)
        return float((self.slack / self.fall)[far].max())


def inequality_10(rows: pl.DataFrame) -> InequalityTen:
    """The terms of (10) with eta = xi/(2L) and the run's own B_2 and delta.

    Args:
        rows: of one setting, with a seed, a step, the step size lr, the potential R~, and the
            lengths of its `gradient`, of Algorithm 1's (`frozen`), of their difference (`gap`) and
            of the sample's deviation from the latter.
    """
    names = ("potential", "gradient", "frozen", "gap", "deviation")
    potential, gradient, frozen, gap, deviation = (by_seed(rows, name) for name in names)
    eta = float(rows["lr"][0])
    largest = np.maximum(gradient, frozen).max(axis=1, keepdims=True)  # B_2
    delta = deviation.max(axis=1, keepdims=True)
    return InequalityTen(
        change=-np.diff(potential, axis=1),
        fall=eta / 2 * gradient[:, :-1] ** 2,
        slack=2 * eta * gap[:, :-1] * largest + eta * delta * largest,
    )


def by_seed(rows: pl.DataFrame, column: str) -> np.ndarray:
    """A column as one row per seed, in the order of steps."""
    wide = rows.sort("seed", "step").group_by("seed", maintain_order=True).agg(column)
    return np.stack(wide[column].to_list())
