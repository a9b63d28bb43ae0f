"""The conditions of the paper's theorems, and what runs reach of them.

The theorems are asymptotic: "tends to 0" has no threshold. Here it counts as met below `SMALL`.
"""

from collections.abc import Iterable

import numpy as np

from .....report import Assumption
from ... import theory

SMALL = 0.5


def worst(found: Iterable[Assumption]) -> Assumption:
    """Of one condition at several sizes, the one that reaches most."""
    return max(found, key=lambda one: one.reached or 0.0)


def low_dimension(n: int, d: int) -> Assumption:
    """Theorem 2: log n sqrt(d^2/n) tends to 0."""
    (reached,) = theory.theorem2_schedule(n, d, 1.0).report.values()
    return Assumption(
        name="low dimension",
        condition=f"log n sqrt(d^2/n) -> 0, here below {SMALL}",
        reached=reached,
        holds=reached < SMALL,
    )


def high_dimension(n: int, d: int) -> Assumption:
    """Theorems 5 to 7: (log n) sqrt(n/d) tends to 0."""
    reached = theory.wide_growth(n, d)
    return Assumption(
        name="high dimension",
        condition=f"(log n) sqrt(n/d) -> 0, here below {SMALL}",
        reached=reached,
        holds=reached < SMALL,
    )


def smooth_step(shares: Iterable[float]) -> Assumption:
    """Theorem 2's eta = xi/(v^2 L): below half of the largest step that is stable at theta = 0."""
    reached = max(shares)
    return Assumption(
        name="step size",
        condition="eta at most half of the largest stable step (the theorem's large L)",
        reached=reached,
        holds=reached <= 0.5 * (1 + 1e-9),
    )


def start(length: float, v2: float) -> Assumption:
    """Theorem 2: the start is not longer than a multiple of v."""
    reached = length / v2**0.5
    return Assumption(
        name="start", condition="|theta(0)| <= B v, here B = 1", reached=reached, holds=reached <= 1
    )


def interpolation_step(steps: Iterable[float]) -> Assumption:
    """Theorem 5 as printed: lambda_max(eta X'X) < 1 for every design."""
    reached = max(steps)
    return Assumption(
        name="step size",
        condition="lambda_max(eta X'X) < 1, as printed",
        reached=reached,
        holds=reached < 1,
    )


def lazy(n: int, d: int, v2: float, width: int) -> Assumption:
    """Theorems 3 and 6: the network is wide enough to be lazy; output weights are at most 1."""
    reached = theory.lazy_width(n, d, v2, width)
    return Assumption(
        name="lazy",
        condition=f"d (log n) |a|_inf v/sqrt h -> 0, here below {SMALL}",
        reached=reached,
        holds=reached < SMALL,
    )


def second_layer(n: int, d: int, v2: float, width: int, square: float) -> Assumption:
    """Theorem 3: the largest of the output weights, which is 1, against their sum of squares.

    Args:
        n, d, v2, width: as in `lazy`.
        square: |a|^2/h.
    """
    reached = theory.lazy_width(n, d, v2, width) / square
    return Assumption(
        name="second layer",
        condition=f"d (log n) |a|_inf v sqrt h/|a|^2 -> 0, here below {SMALL}",
        reached=reached,
        holds=reached < SMALL,
    )


def second_layer_of_many(n: int, d: int, v2: float, width: int, square: float) -> Assumption:
    """Theorem 6: the same in high dimension; arguments as in `second_layer`."""
    reached = float(np.sqrt(d * n * v2 / width) * np.log(n) ** 2 / square)
    return Assumption(
        name="second layer",
        condition=f"sqrt(dn) (log n)^2 |a|_inf v sqrt h/|a|^2 -> 0, here below {SMALL}",
        reached=reached,
        holds=reached < SMALL,
    )


def weak_attack(eps: float, edge: float) -> Assumption:
    """Theorem 9: the attack is weaker than the one that makes theta* zero."""
    return Assumption(
        name="weak attack",
        condition="eps / eps_0 < 1, so that theta* is not zero",
        reached=eps / edge,
        holds=eps < edge,
    )


def penalty_above_noise(penalty: np.ndarray, noise: np.ndarray) -> Assumption:
    """The proof of Theorem 9: lambda above k, the largest entry of the mean gradient at theta*."""
    reached = float(np.min(penalty / noise))
    return Assumption(
        name="penalty",
        condition="lambda / k > 1 (the proof's cone)",
        reached=reached,
        holds=reached > 1,
    )


def certified(gaps: np.ndarray, asked: float) -> Assumption:
    """Estimates are minimisers up to a relative duality gap."""
    reached = float(gaps.max())
    return Assumption(
        name="minimiser",
        condition=f"certified relative gap at most {asked:g}",
        reached=reached,
        holds=reached <= asked,
    )


def stationary(residuals: np.ndarray, asked: float) -> Assumption:
    """Estimates are stationary points, where the objective need not be convex."""
    reached = float(residuals.max())
    return Assumption(
        name="stationary",
        condition=f"largest entry of the least subgradient at most {asked:g} lambda",
        reached=reached,
        holds=reached <= asked,
    )


def vanishing_penalty(penalty: float, v2: float) -> Assumption:
    """Theorem 9: lambda/v = o(1)."""
    reached = penalty / v2**0.5
    return Assumption(
        name="small penalty",
        condition=f"lambda/v -> 0, here below {SMALL} at the largest n",
        reached=reached,
        holds=reached < SMALL,
    )


def vanishing_xi(xi: float, v2: float) -> Assumption:
    """Theorems 3, 4 and 9: xi/v^2 tends to 0."""
    reached = xi / v2
    return Assumption(
        name="small xi",
        condition=f"xi/v^2 -> 0, here below {SMALL} at the largest n",
        reached=reached,
        holds=reached < SMALL,
    )


def gaussian() -> Assumption:
    """x ~ N(0, Sigma) and Gaussian noise (eq. 4): what every experiment here draws."""
    return Assumption(name="Gaussian", condition="x and noise are Gaussian (eq. 4)", holds=True)
