"""The noisy mixture x = y_c mu + xi of two clusters (benign overfitting paper, Definition 2.1)."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cached_property
from math import hypot, sqrt
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from scipy.integrate import quad
from torch import Tensor

from ....core.config import Config
from ....core.errors import AdvlabError
from ....core.randomness import normal, uniform
from ....data.base import DataModel
from .unit_laws import UnitLaw

Flips = Literal["independent", "count", "margin"]
Numbers = float | np.ndarray


class Clusters(NamedTuple):
    """Inputs, labels of +-1 and how they came about; a stack has one more axis in front."""

    x: Float[Tensor, "*stack n d"]
    y: Float[Tensor, "*stack n"]
    """The labels to learn from; some differ from y_clean."""
    y_clean: Float[Tensor, "*stack n"]
    """The cluster, y_c."""
    noise: Float[Tensor, "*stack n d"]
    """xi = x - y_c mu."""

    @property
    def clean(self) -> Bool[Tensor, "*stack n"]:
        """Which examples kept their label: the paper's set C."""
        return self.y == self.y_clean

    @property
    def noisy(self) -> Bool[Tensor, "*stack n"]:
        """Which labels were flipped: the paper's set N."""
        return self.y != self.y_clean


class Scaled(Config):
    """N(0, s^2): lam = 1/s^2. Its psi_2 norm is s sqrt(8/3), so Definition 2.1 wants s^2 <= 3/8."""

    s: PositiveFloat

    @property
    def lam(self) -> float:
        return self.s**-2

    @property
    def variance(self) -> float:
        return self.s**2

    def log_density(self, t: Numbers) -> Numbers:
        """Up to a constant."""
        return -((t / self.s) ** 2) / 2

    def draw(self, like: Tensor, rng: torch.Generator) -> Tensor:
        return self.s * normal(like, rng)


class Quartic(Config):
    """Density proportional to exp(-lam t^2/2 - c t^4), lam-strongly log-concave, tails lighter."""

    lam: PositiveFloat
    c: PositiveFloat

    @cached_property
    def variance(self) -> float:
        # In units of the envelope's width the integrand has scale one whatever lam and c are.
        width = 1 / sqrt(self._precision)

        def weight(t: float, power: int) -> float:
            return t**power * float(np.exp(self.log_density(t * width)))

        moments = [quad(weight, 0, np.inf, args=(power,), epsabs=0)[0] for power in (0, 2)]
        return width**2 * moments[1] / moments[0]

    def log_density(self, t: Numbers) -> Numbers:
        """Up to a constant."""
        return -self.lam * t**2 / 2 - self.c * t**4

    def draw(self, like: Tensor, rng: torch.Generator) -> Tensor:
        """Exact, by rejection from N(0, 1/a); at least 0.79 of the proposals are accepted.

        The ratio of the densities is exp(-c (t^2 - r)^2) with r = (a - lam)/(4c), up to a constant.
        """
        a = self._precision
        # (a - lam)/(4c) = 1/a by the choice of a, and this way nothing cancels.
        r = 1 / a
        out = normal(like, rng).div_(sqrt(a)).reshape(-1)
        left = torch.nonzero(~self._accepted(out, r, rng))[:, 0]
        while len(left):
            out[left] = again = normal(out[left], rng) / sqrt(a)
            left = left[~self._accepted(again, r, rng)]
        return out.reshape(like.shape)

    def _accepted(self, t: Tensor, r: float, rng: torch.Generator) -> Tensor:
        return uniform(t, rng) < (-self.c * (t**2 - r) ** 2).exp()

    def of_unit_variance(self) -> "Quartic":
        """The same law in other units, so that its variance is 1."""
        return Quartic(lam=self.lam * self.variance, c=self.c * self.variance**2)

    @property
    def _precision(self) -> float:
        """The a = 1/variance of the normal envelope that rejects least: a (a - lam) = 4c."""
        return (self.lam + hypot(self.lam, 4 * sqrt(self.c))) / 2


class NoisyMixture(DataModel):
    """x = y_c mu + xi with y_c = +-1 a fair coin, mu = mu_norm e_1, and xi of independent entries.

    y is y_c but on a share beta of the examples. The clean data come first from the generator, so
    the ways and the shares of flipping can be compared on the same x.
    """

    d: PositiveInt
    mu_norm: NonNegativeFloat
    beta: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    cluster: Literal["gaussian"] | Scaled | Quartic | UnitLaw = "gaussian"
    """The law of the entries of xi; "gaussian" is N(0, 1)."""
    flips: Flips = "independent"
    """Each with probability beta; floor(beta n) at random; those with smallest <mu, y_c x>."""

    @property
    def law(self) -> Scaled | Quartic | UnitLaw:
        """The law of one entry of xi, with its log density."""
        return Scaled(s=1.0) if self.cluster == "gaussian" else self.cluster

    @property
    def lam(self) -> float:
        """xi is lam-strongly log-concave; 0 where it is not, which Definition 2.1 excludes."""
        return self.law.lam

    @property
    def kappa(self) -> float:
        """The largest kappa with E||xi||^2 >= kappa d. (The paper also wants it below 1.)"""
        return self.law.variance

    def mu(self) -> Float[Tensor, " d"]:
        """The centre of the cluster y_c = 1."""
        centre = torch.zeros(self.d, dtype=torch.float64)
        centre[0] = self.mu_norm
        return centre

    def sample(self, rng: torch.Generator, n: int | None = None) -> Clusters:
        """n examples (the model's own n by default), float64; only `independent` makes them iid."""
        n = self.n if n is None else n
        if n < 1:
            raise AdvlabError("a sample needs n >= 1", n)
        coins = uniform(torch.empty(n, dtype=torch.float64), rng)
        noise = self.law.draw(torch.empty(n, self.d, dtype=torch.float64), rng)
        return self.around(noise, coins, rng)

    def around(
        self, noise: Float[Tensor, "n k"], coins: Float[Tensor, " n"], rng: torch.Generator
    ) -> Clusters:
        """The examples with this noise, in any orthonormal coordinates that have mu along the
        first; a coin below 1/2 is a y_c of 1."""
        y_clean = (coins < 0.5).to(noise) * 2 - 1
        x = noise.clone()
        x[:, 0] += y_clean * self.mu_norm
        flipped = _FLIPS[self.flips](self, y_clean * x[:, 0], rng)
        return Clusters(x, torch.where(flipped, -y_clean, y_clean), y_clean, noise)

    def sample_stack(self, generators: Sequence[torch.Generator], n: int | None = None) -> Clusters:
        """Every part with a first axis of R replicates; replicate r depends on generator r only."""
        return Clusters(*super().sample_stack(generators, n))


def _independent(model: NoisyMixture, margin: Tensor, rng: torch.Generator) -> Tensor:
    return uniform(margin, rng) < model.beta


def _count(model: NoisyMixture, margin: Tensor, rng: torch.Generator) -> Tensor:
    return _first(torch.randperm(len(margin), generator=rng), model.beta)


def _margin(model: NoisyMixture, margin: Tensor, rng: torch.Generator) -> Tensor:
    return _first(torch.argsort(margin, stable=True), model.beta)


def _first(order: Tensor, beta: float) -> Tensor:
    """The mask of the first floor(beta n) of an order."""
    flipped = torch.zeros(len(order), dtype=torch.bool)
    # beta as the decimal that was written: in binary 0.29 * 100 is below 29.
    flipped[order[: int(Decimal(str(beta)) * len(order))]] = True
    return flipped


_FLIPS: dict[Flips, Callable[[NoisyMixture, Tensor, torch.Generator], Tensor]] = {
    "independent": _independent,
    "count": _count,
    "margin": _margin,
}
