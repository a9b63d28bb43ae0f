"""Inequality (10) in the proof of Theorem 2, along runs of Algorithm 1, and its sharp form.

The paper prints, for eta = xi/(2L),

    R~(t+1) <= R~(t) - (xi/4L) |grad R~|^2 + xi^2 B_2^2/(L B_3) + xi delta B_2/(2L) + o.

With L = xi/(2 eta) the fall is (eta/2) |grad R~|^2 and the slack 2 eta (xi/B_3) B_2^2 +
eta delta B_2, where (xi/B_3) B_2 stands for the gap |grad R_xi - grad R~| <= (xi/B_3) |grad R~|
(2 = 1 + 1: once from the inner product, once from the square). With the gap itself the slack is
2 eta gap B_2 + eta delta B_2, without a factor of our own; the printed "+ o", of order
L eta^2 delta^2/xi, is left out, so that what is tested is a little more.

The sharp form is what the same two lines give without B_2: if R~ is smooth with constant at most
1/eta (eta = xi/(2L) is 1/(2L/xi), the proof's own), then for the step g of the sample

    R~(t+1) <= R~(t) - eta grad R~'g + (eta/2) |g|^2
             = R~(t) - (eta/2) |grad R~|^2 + (eta/2) |g - grad R~|^2,

and |g - grad R~| <= gap + deviation, both of this iteration.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

FAR, NEARER = 0.25, 0.01
"""Far from the limit |grad R~|^2 is above this share of the run's largest, for (10) and for its
sharp form."""


@dataclass(frozen=True)
class InequalityTen:
    """Its terms: one row per seed, one column per iteration."""

    change: np.ndarray
    """R~(t) - R~(t+1)."""
    fall: np.ndarray
    """(eta/2) |grad R~|^2."""
    slack: np.ndarray
    """2 eta gap B_2 + eta delta B_2."""
    sharp: np.ndarray
    """(eta/2) (gap + deviation)^2."""

    def holds(self) -> np.ndarray:
        """Of each seed, whether R~ falls by the fall less the slack, or more, at each iteration."""
        return np.all(self.change >= self.fall - self.slack - 1e-12, axis=1)

    def holds_sharply(self) -> np.ndarray:
        """The same of the sharp form."""
        return np.all(self.change >= self.fall - self.sharp - 1e-12, axis=1)

    def largest_share(self) -> float:
        """Slack over fall, the largest far from the limit: (10) says something below 1."""
        return self._largest(self.slack, FAR)

    def largest_sharp_share(self) -> float:
        """The sharp form's slack over fall, the largest down to `NEARER`."""
        return self._largest(self.sharp, NEARER)

    def _largest(self, slack: np.ndarray, share: float) -> float:
        asked = self.fall >= share * self.fall.max(axis=1, keepdims=True)
        return float((slack / self.fall)[asked].max())


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
        sharp=eta / 2 * (gap + deviation)[:, :-1] ** 2,
    )


def by_seed(rows: pl.DataFrame, column: str) -> np.ndarray:
    """A column as one row per seed, in the order of steps."""
    wide = rows.sort("seed", "step").group_by("seed", maintain_order=True).agg(column)
    return np.stack(wide[column].to_list())
