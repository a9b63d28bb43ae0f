"""How many lottery tickets a Gaussian start holds: the exact laws behind Lemma B.2.

With w_i ~ N(0, sigma_0^2 I) and an orthogonal M all A_ij are independent N(0, sigma_0^2).
"""

import math
from dataclasses import dataclass

from jaxtyping import Bool, Float
from scipy import stats
from torch import Tensor

from .tickets import TicketRules

MAIN_LOW, MAIN_HIGH = 2.01, 2.02


@dataclass(frozen=True)
class Count:
    """The law of a set size |S_j|, binomial, and of its mean over the atoms j."""

    mean: float
    deviation: float
    """Of |S_j| for one j."""
    deviation_of_mean: float
    """Of (1/D) sum_j |S_j|."""

    def sigmas(self, sets: Bool[Tensor, "*R m D"]) -> Float[Tensor, "*R"]:
        """How many standard deviations the measured mean set size is from its expectation."""
        return (sets.sum(-2).double().mean(-1) - self.mean) / self.deviation_of_mean


def tail(level: float) -> float:
    """Pr[g^2 >= level] for a standard normal g: 2 (1 - Phi(sqrt(level)))."""
    return float(2 * stats.norm.sf(math.sqrt(level)))


def expected_potential(rules: TicketRules, width: int) -> Count:
    """E|S_pot| = m p2. All pairs are independent, so the mean over j has m D p2 (1 - p2) / D^2."""
    p2 = tail(rules.low)
    return _count(width, rules.d, p2, p2 * (1 - p2) / rules.d)


def expected_sure(rules: TicketRules, width: int) -> Count:
    """E|S_sure| = m (p1/2) (1 - p2)^(d - 1).

    A neuron is sure for one atom at most, so the number of sure pairs is binomial in the neurons.
    """
    d = rules.d
    q = tail(rules.high) / 2 * (1 - tail(rules.low)) ** (d - 1)
    return _count(width, d, q, q * (1 - d * q) / d)


def _count(width: int, d: int, p: float, variance: float) -> Count:
    return Count(width * p, math.sqrt(width * p * (1 - p)), math.sqrt(width * variance))


@dataclass(frozen=True)
class MainText:
    """The simplified tickets of section 6.1, as shares of the neurons."""

    some: Float[Tensor, "*R"]
    """max_j A_ij^2 >= 2.01 sigma_0^2 log d, claimed to be at most d^-c4."""
    one: Float[Tensor, "*R"]
    """One A_ij^2 >= 2.02 sigma_0^2 log d and all others below 2.01, claimed at least d^-c3."""


def main_text(A: Float[Tensor, "*R m D"], sigma0: float) -> MainText:
    """The shares (ii) and (iii) of section 6.1 in a start A = W M of scale sigma0."""
    unit = sigma0**2 * math.log(A.shape[-1])
    high, low = MAIN_HIGH * unit <= A**2, MAIN_LOW * unit <= A**2
    one = high.any(-1) & (low.sum(-1) == 1)
    return MainText(low.any(-1).double().mean(-1), one.double().mean(-1))


def expected_main_text(d: int) -> tuple[float, float]:
    """The probabilities that a neuron is in either set."""
    high, low = tail(MAIN_HIGH * math.log(d)), tail(MAIN_LOW * math.log(d))
    return 1 - (1 - low) ** d, d * high * (1 - low) ** (d - 1)
