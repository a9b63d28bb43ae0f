"""Assumption 1 and the conditions of Theorems B.1 and B.17, as the constants they allow."""

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from ....core.checks import Scalar, positive, scalar
from ....core.errors import AdvlabError
from .inputs import flip_rate

ASSUMPTION_1 = ("1", "2", "4", "5")
SMOOTH = (*ASSUMPTION_1, "A1", "A2")
NON_SMOOTH = (*ASSUMPTION_1, "B1", "B2")


@dataclass(frozen=True)
class Assumptions:
    """For each line the largest C that satisfies it, and whether the lines without a C hold.

    The theorems want some large C; "1 relaxed" is line 1 without alpha^2.
    """

    implied: dict[str, float]
    holds: dict[str, bool]

    @property
    def smooth(self) -> float:
        """The largest C for all of Theorem B.1 at once; 0 if a line without a C fails."""
        return self._common(SMOOTH)

    @property
    def non_smooth(self) -> float:
        """The largest C for all of Theorem B.17 at once; 0 if a line without a C fails."""
        return self._common(NON_SMOOTH)

    def _common(self, lines: tuple[str, ...]) -> float:
        return min(self.implied[line] for line in lines) if all(self.holds.values()) else 0.0


def check_assumptions(
    *,
    n: int,
    d: int,
    mu_norm: Scalar,
    alpha: Scalar,
    beta: Scalar,
    omega: Scalar,
    eta: Scalar,
    width: int,
    delta: Scalar,
) -> Assumptions:
    """Lines (1)-(6) of Assumption 1, (A1), (A2) for smooth and (B1), (B2) for other activations.

    (1) d >= C max(n ||mu||^2, n^2 (log(n/delta) + alpha^2)); (2) beta <= 1/C;
    (3) omega sqrt(m d) <= eta; (4) eta <= 1/(C d^2); (5) n >= C log(m/delta); (6) alpha <= ||mu||;
    (A1) d <= ||mu||^4/C; (A2) ||mu||^2 >= C log(n/delta); (B1) m >= C log(n/delta);
    (B2) ||mu||^2 >= C max(sqrt((d/n) log(m d/(n delta))), log(n/delta)).

    Args:
        n, d, mu_norm, alpha, beta: the data and the attack.
        omega, eta, width: start, step size and number of neurons.
        delta: the probability with which the theorems may fail, below 1/2.
    """
    samples, dims, m = (float(positive(*one)) for one in (("n", n), ("d", d), ("width", width)))
    length, radius = scalar("mu_norm", mu_norm), scalar("alpha", alpha)
    rate, start = float(flip_rate(scalar("beta", beta))), scalar("omega", omega)
    step, risk = float(positive("eta", scalar("eta", eta))), scalar("delta", delta)
    if not 0 < risk < 0.5:
        raise AdvlabError("delta must lie between 0 and 1/2", delta)
    signal, log_n = length**2, np.log(samples / risk)
    spread = np.sqrt(dims / samples * max(np.log(m * dims / (samples * risk)), 0.0))
    implied = {
        "1": dims / max(samples * signal, samples**2 * (log_n + radius**2)),
        "1 relaxed": dims / max(samples * signal, samples**2 * log_n),
        "2": 1 / rate if rate else np.inf,
        "4": 1 / (step * dims**2),
        "5": samples / np.log(m / risk),
        "A1": signal**2 / dims,
        "A2": signal / log_n,
        "B1": m / log_n,
        "B2": signal / max(spread, log_n),
    }
    # omega is usually set to eta/sqrt(m d), which rounding may put a hair above.
    small_start = start * np.sqrt(m * dims) <= step * (1 + 1e-12)
    return Assumptions(
        {line: float(C) for line, C in implied.items()},
        {"3": bool(small_start), "6": radius <= length},
    )


class Inside(NamedTuple):
    """A signal and a dimension."""

    mu_norm: float
    d: int


def smallest_inside(C: Scalar, n: int, width: int, ratio: Scalar, delta: Scalar) -> Inside:
    """About the smallest ||mu|| and d that meet lines (1), (A1), (A2) and (B2) with C.

    Lines (2), (4) and (5), (B1) are about beta, eta and n, m alone; they are left to the caller.
    Line (1) bounds d from below by ||mu||, the others bound ||mu|| from below by d; they are solved
    together by iteration.

    Args:
        C: the constant of all lines.
        n, width: examples and neurons.
        ratio: alpha/||mu||, at most 1 by line (6).
        delta: the probability with which the theorems may fail.

    Example:
        from advlab.papers.benign.theory import smallest_inside
        smallest_inside(10, 76, 76, 0.1, 0.05)  # ||mu|| = 140, d = 14,896,000
    """
    c, share, risk = scalar("C", C), scalar("ratio", ratio), scalar("delta", delta)
    for name, value in (("C", c), ("n", n), ("width", width)):
        positive(name, value)
    if not 0 <= share <= 1 or not 0 < risk < 0.5:
        raise AdvlabError("a ratio from 0 to 1 and a delta between 0 and 1/2", f"{ratio}, {delta}")
    log_n, length = log(n / risk), 1.0
    for _ in range(500):
        d = ceil(c * max(n * length**2, n**2 * (log_n + (share * length) ** 2)))
        spread = sqrt(d / n * max(log(width * d / (n * risk)), 0.0))
        needed = sqrt(max(c * spread, c * log_n, sqrt(c * d)))
        if needed <= length:
            return Inside(length, d)
        # Whole numbers where they are large: easier to read, and the iteration ends.
        length = float(ceil(needed)) if needed > 20 else ceil(10 * needed) / 10
    raise AdvlabError("a C for which the lines can be met", C)
