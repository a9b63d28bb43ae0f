"""The law of the hidden vector z, and of scores <w, z>, without sampling (spec 1.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.special import ndtr

from ....core.checks import Array, Scalar, finite, length, scalar, vector
from ....core.errors import AdvlabError
from .inputs import sizes

Piece = tuple[float, float, float]
"""Low end, high end and probability of |z_j|, uniform between the ends."""


@dataclass(frozen=True)
class HiddenLaw:
    """z_j independent and symmetric: |z_j| = 1 with probability p_big/d, uniform on
    [1, 1 + hi]/sqrt(k) with probability fs k/d, the value of each further level (value, rate) with
    probability rate/d, else 0."""

    d: int
    k: float
    p_big: float = 1.0
    fs: float = 0.5
    hi: float = 0.3
    levels: Sequence[tuple[float, float]] = ()

    def __post_init__(self) -> None:
        sizes(self.d, self.k)
        for name in ("p_big", "fs", "hi"):
            scalar(name, getattr(self, name))
        if self.activity > 1:
            raise AdvlabError("probabilities that sum to at most 1", f"{self.activity:g}")

    @property
    def pieces(self) -> list[Piece]:
        root = np.sqrt(self.k)
        small = (1 / root, (1 + self.hi) / root, self.fs * self.k / self.d)
        found = [(1.0, 1.0, self.p_big / self.d), small]
        return [
            *found,
            *((length("level", v), v, scalar("rate", p) / self.d) for v, p in self.levels),
        ]

    @property
    def activity(self) -> float:
        """P(z_j != 0)."""
        return sum(p for *_, p in self.pieces)

    def moment(self, power: Scalar) -> float:
        """E|z_j|^power."""
        return sum(p * _power_mean(low, high, float(power)) for low, high, p in self.pieces)

    @property
    def squared_norm(self) -> float:
        """E||z||^2 = p_big + fs (1 + hi + hi^2/3) and what the levels add."""
        return self.d * self.moment(2)

    @property
    def squared_norm_variance(self) -> float:
        """Var ||z||^2 = d (E z_j^4 - (E z_j^2)^2)."""
        return self.d * (self.moment(4) - self.moment(2) ** 2)

    @property
    def support(self) -> tuple[float, float]:
        """Mean and variance of ||z||_0, a binomial number."""
        return self.d * self.activity, self.d * self.activity * (1 - self.activity)


@dataclass(frozen=True)
class ScoreLaw:
    """<w, z> on a grid, rounded down and rounded up, so that every tail lies between the two."""

    step: float
    places: Array
    down: Array
    up: Array
    escape: float
    """A bound on the probability that the score leaves the grid."""

    def mean(self, g: Callable[[Array], Array]) -> tuple[float, float]:
        """Bounds on E g(<w, z>) for a g that increases from 0 to 1."""
        values = g(self.places)
        low, high = float(self.down @ values) - self.escape, float(self.up @ values) + self.escape
        return max(low, 0.0), min(high, 1.0)

    def tail(self, t: Scalar) -> tuple[float, float]:
        """Bounds on P(<w, z> > t)."""
        return self.mean(lambda s: (s > float(t)).astype(float))


def score_law(law: HiddenLaw, w: Sequence | np.ndarray, step: Scalar = 1e-3) -> ScoreLaw:
    """The law of <w, z> by convolution over coordinates, each rounded to a grid both ways."""
    weights, h = vector("w", w), length("step", step)
    if len(weights) != law.d:
        raise AdvlabError(f"one weight for each of {law.d} coordinates", len(weights))
    reach, escape = _reach(law, weights)
    # Rounding moves a score by at most a step a coordinate that is not zero.
    half = int(np.ceil(reach / h)) + law.d
    size: Any = fft.next_fast_len(2 * half + 1, real=True)
    spectra: list[Any] = [np.ones(size // 2 + 1, dtype=complex) for _ in range(2)]
    for weight in np.abs(weights):
        for spectrum, way in zip(spectra, (np.floor, np.ceil), strict=True):
            spectrum *= fft.rfft(_rounded(law, weight, h, size, way))
    places = h * (np.arange(size) - half)
    down, up = (np.roll(np.asarray(fft.irfft(one, size)), half) for one in spectra)
    # The transform is good to about 1e-15 an entry; the sum over the grid may gather that.
    return ScoreLaw(h, places, down, up, escape + 1e-15 * size)


def oracle_accuracy(
    scores: ScoreLaw, threshold: Scalar, margin: Scalar = 0.0, noise: Scalar = 0.0
) -> tuple[float, float]:
    """Bounds on the robust accuracy of <w*, M'x>: P(|<w*, z>| + noise N > t | |<w*, z>| > margin).

    t = `threshold` = tau ||w*||_2 for l2 and tau ||M w*||_1 for linf, `noise` = sx ||w*||_2/sqrt(d)
    for Gaussian noise, M orthogonal. By symmetry both events are twice those of positive scores.
    """
    t, edge, sigma = (
        scalar("threshold", threshold),
        scalar("margin", margin),
        scalar("noise", noise),
    )

    def kept(s: Array) -> Array:
        right = ndtr((s - t) / sigma) if sigma else (s > t).astype(float)
        return np.where(s > edge, right, 0.0)

    (low, high), (least, most) = scores.mean(kept), scores.tail(edge)
    if not least > 0:
        raise AdvlabError("a margin that some scores pass", edge, "use a smaller margin")
    return low / most, min(high / least, 1.0)


def _power_mean(low: float, high: float, power: float) -> float:
    """E X^power of X uniform on [low, high]."""
    if high == low:
        return low**power
    return (high ** (power + 1) - low ** (power + 1)) / ((power + 1) * (high - low))


def _reach(law: HiddenLaw, weights: Array) -> tuple[float, float]:
    """A range and P(|<w, z>| beyond it), by Chernoff's bound; the largest sum if that is less."""
    most = max(high for _, high, _ in law.pieces) * float(np.abs(weights).sum())
    best = most, 0.0
    for s in np.geomspace(0.5, 50, 40) / np.abs(weights).max():
        # cosh grows with |z|, so the high end of each piece bounds its mean.
        logs = sum(p * (np.cosh(np.minimum(s * np.abs(weights) * high, 700)) - 1)
                   for _, high, p in law.pieces)  # fmt: skip
        reach = (float(np.log1p(logs).sum()) + np.log(2e12)) / s
        best = min(best, (reach, 1e-12))
    return best


def _rounded(law: HiddenLaw, weight: float, h: float, size: int, way: Callable) -> Array:
    """The law of one w_j z_j on the grid, negative places wrapped to the end."""
    found = np.zeros(size)
    found[0] = 1 - law.activity
    for low, high, p in law.pieces:
        for sign in (1, -1):
            a, b = sorted((sign * weight * low, sign * weight * high))
            places, mass = _cells(a, b, h, way)
            np.add.at(found, places % size, p / 2 * mass)
    return finite("law", found)


def _cells(a: float, b: float, h: float, way: Callable) -> tuple[NDArray[np.integer], Array]:
    """Grid places and shares of a uniform number on [a, b] that is rounded one way."""
    if b - a <= 1e-15 * max(abs(a), abs(b)):
        return np.array([int(way(a / h))]), np.ones(1)
    edges = np.arange(np.floor(a / h), np.ceil(b / h) + 1)
    inside = np.clip(edges * h, a, b)
    places = edges[:-1] if way is np.floor else edges[1:]
    return places.astype(int), np.diff(inside) / (b - a)
