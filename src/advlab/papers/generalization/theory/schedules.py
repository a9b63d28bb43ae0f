"""The settings that Theorems 2, 3, 4 and 9 prescribe, with the numbers their assumptions are about.

The theorems are asymptotic and leave constants open; nothing here passes or fails. At sample sizes
of the experiments the prescribed xi is far too large to be of use.
"""

from dataclasses import dataclass, field

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, scalar, vector
from ....core.errors import AdvlabError


@dataclass(frozen=True)
class TheoremSchedule:
    """xi, step size and number of steps; `report` names what should tend to 0 or stay bounded."""

    xi: float
    eta: float
    steps: int
    report: dict[str, float] = field(default_factory=dict)


def theorem2_schedule(n: int, d: int, v2: Scalar, constant: Scalar = 1.0) -> TheoremSchedule:
    """Theorem 2 (linear): xi = v^2 (d/sqrt n) log n, eta = xi/(v^2 L), T = v^2 (log log n)/xi.

    The paper prints xi = v^2 d/sqrt n log n; this reading is the one its proof needs.

    Args:
        n, d: the numbers of samples and inputs.
        v2: the variance of y.
        constant: L, which the theorem leaves open.
    """
    _sizes(n, d, v2, constant)
    ratio = d / np.sqrt(n) * np.log(n)
    return _schedule(n, v2, ratio, ratio / constant, {"log n sqrt(d^2/n)": float(ratio)})


def theorem3_schedule(
    n: int, d: int, v2: Scalar, top: ArrayLike, delta: Scalar, constant: Scalar = 1.0
) -> TheoremSchedule:
    """Theorem 3 (lazy network, smooth activation) with top layer `top` of width h.

    xi/v^2 = -log log n / log max(sqrt(d^2 log n/n), d log n ||a||_inf/sqrt h),
    eta = xi h / (v^2 L ||a||^2), T = v^2 (log log n)/xi.

    Args:
        n, d, v2, constant: as in `theorem2_schedule`.
        top: the weights a of the second layer.
        delta: the start has variance 1/(d h^(1 + delta)).
    """
    _sizes(n, d, v2, constant)
    a = _top(top)
    h, norm, largest = len(a), float(np.linalg.norm(a)), float(np.abs(a).max())
    wide = d * np.log(n) * largest / np.sqrt(h)
    ratio = _slow_ratio(n, max(np.sqrt(d**2 * np.log(n) / n), wide))
    eta = ratio * h / (constant * norm**2)
    v = np.sqrt(v2)
    smallest = float(np.abs(a).min())
    report = {
        "||a||_inf": largest,
        "max|a|/min|a|": largest / smallest if smallest else float("inf"),
        "d log n ||a||_inf v/sqrt h": float(wide * v),
        "d log n ||a||_inf v sqrt h/||a||^2": float(wide * v * h / norm**2),
        "xi/v^2": ratio,
    }
    schedule = _schedule(n, v2, ratio, eta, report)
    growth = v2 * eta * norm**3 / (h**1.5 * schedule.xi) + constant * eta * v
    # The power overflows at small n, so its logarithm is what is reported.
    initial = 0.5 * np.log(d * np.log(n)) + schedule.steps * np.log1p(growth)
    report["log initialisation term"] = float(initial - delta / 2 * np.log(h))
    return schedule


def lazy_width(n: int, d: int, v2: Scalar, width: int, largest: Scalar = 1.0) -> float:
    """d (log n) ||a||_inf v / sqrt h, which tends to 0 in Theorem 3: small for a lazy network.

    Args:
        n, d, v2: as in `theorem2_schedule`.
        width: h, the number of hidden nodes.
        largest: ||a||_inf, the largest weight of the second layer.
    """
    _sizes(n, d, v2, 1.0)
    return float(d * np.log(n) * scalar("largest", largest) * np.sqrt(v2 / width))


def theorem4_schedule(
    n: int, d: int, v2: Scalar, top: ArrayLike, constant: Scalar = 1.0
) -> TheoremSchedule:
    """Theorem 4 (ReLU, zero initialisation): xi/v^2 = -log log n / log sqrt(d^2 log n/n).

    Arguments as in `theorem3_schedule`.
    """
    _sizes(n, d, v2, constant)
    a = _top(top)
    ratio = _slow_ratio(n, np.sqrt(d**2 * np.log(n) / n))
    negative = float(np.linalg.norm(np.minimum(a, 0)))
    positive = float(np.linalg.norm(np.maximum(a, 0)))
    report = {
        "||a||_inf": float(np.abs(a).max()),
        "||a_+||/||a_-||": positive / negative if negative else float("inf"),
        "xi/v^2": ratio,
    }
    return _schedule(n, v2, ratio, ratio * len(a) / (constant * float(a @ a)), report)


def linear_eta(eta: Scalar, top: ArrayLike, slope: Scalar = 1.0) -> float:
    """The step of the linear model that a linear network from zero follows exactly.

    eta phi'(0)^2 ||a||^2 / h (derived here). A ReLU network on symmetrised data has slope 1/2, so
    it needs four times the step; the proof of Theorem 4 says twice.

    Args:
        eta: the network's step.
        top: the weights a of its second layer.
        slope: phi'(0).
    """
    a = _top(top)
    return scalar("eta", eta) * slope**2 * float(a @ a) / len(a)


def lasso_lambda(
    n: int,
    d: int,
    sparsity: int,
    v2: Scalar,
    xi: Scalar = 0.0,
    constant: Scalar = 1.0,
    growth: Scalar | None = None,
) -> float:
    """Theorem 9: lambda = v max(c sqrt(s log d/n), xi a_n/v^2).

    Args:
        n, d, v2: as in `theorem2_schedule`.
        sparsity: s, the number of non-zero entries of theta*.
        xi: of the attack.
        constant: c, large in the theorem.
        growth: a_n, any diverging sequence; log n by default.
    """
    _sizes(n, d, v2, constant)
    if not 1 <= sparsity <= d:
        raise AdvlabError(f"sparsity must lie between 1 and d = {d}", sparsity)
    a_n = float(np.log(n)) if growth is None else growth
    sampling = constant * np.sqrt(sparsity * np.log(d) / n)
    return float(np.sqrt(v2) * max(sampling, scalar("xi", xi) * a_n / v2))


def _schedule(
    n: int, v2: Scalar, ratio: float, eta: Scalar, report: dict[str, float]
) -> TheoremSchedule:
    steps = max(1, int(np.ceil(np.log(np.log(n)) / ratio)))
    return TheoremSchedule(float(ratio * v2), float(eta), steps, report)


def _slow_ratio(n: int, smallness: float) -> float:
    if smallness >= 1:
        raise AdvlabError(
            "the theorem's xi is defined only where its small quantity is below 1",
            f"{smallness:.3g}",
            "use more samples, fewer inputs or a wider network",
        )
    return float(-np.log(np.log(n)) / np.log(smallness))


def _sizes(n: int, d: int, v2: Scalar, constant: Scalar) -> None:
    if n < 3:
        raise AdvlabError("log log n is positive only for n of 3 or more", n)
    if d < 1:
        raise AdvlabError("d must be at least 1", d)
    if scalar("v2", v2) == 0 or scalar("constant", constant) == 0:
        raise AdvlabError("v2 and the constant must be positive", f"{v2} and {constant}")


def _top(top: ArrayLike) -> Array:
    a = vector("top", top)
    if not a.any():
        raise AdvlabError("the top layer must not be zero", a)
    return a
