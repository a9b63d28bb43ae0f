"""Signal and noise in patches, the data of the CGRO paper (section 3.1)."""

from math import log, sqrt
from typing import Annotated, NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import Field, PositiveFloat
from torch import Tensor

from ....core.errors import AdvlabError
from ....core.randomness import normal, uniform
from ....data.base import DataModel


class PatchPoints(NamedTuple):
    """Inputs of P patches, labels of +-1 and which patch has the signal; a stack has one more axis
    in front."""

    x: Float[Tensor, "*stack n P d"]
    y: Float[Tensor, "*stack n"]
    signal: Int[Tensor, "*stack n"]


class Patches(DataModel):
    """One patch of P, at a uniform place, is alpha y w*; the others are N(0, sigma^2 (I - w* w*')).

    w* is the first unit vector, so noise has a first coordinate of exactly 0. The attack of the
    paper (GTA) takes the share gamma of the signal away: it moves by delta = alpha gamma.
    """

    d: Annotated[int, Field(ge=2)]
    P: Annotated[int, Field(ge=2)] = 4
    alpha: PositiveFloat
    sigma: PositiveFloat
    gamma: Annotated[float, Field(gt=0, lt=1)]

    @classmethod
    def scaled(cls, n: int, d: int, P: int = 4, polylog: float | None = None) -> "Patches":
        """The paper's scaling: alpha = d^.249, sigma = d^-.509, 1 - gamma = 1/(sqrt(d) polylog).

        Args:
            n: the number of examples.
            d: the dimension of a patch.
            P: the number of patches.
            polylog: log d by default. With 1 the theorem is not seen at sizes that can be run.
        """
        if d < 2:
            raise AdvlabError("at least two coordinates per patch", d)
        left = 1 / (sqrt(d) * (log(d) if polylog is None else polylog))
        return cls(n=n, d=d, P=P, alpha=d**0.249, sigma=d**-0.509, gamma=1 - left)

    @property
    def delta(self) -> float:
        """How far GTA moves an input in l2."""
        return self.alpha * self.gamma

    def direction(self) -> Float[Tensor, " d"]:
        """w*."""
        return torch.eye(1, self.d, dtype=torch.float64)[0]

    def sample(self, rng: torch.Generator, n: int | None = None) -> PatchPoints:
        """Examples in float64.

        Args:
            rng: where they are drawn from.
            n: how many, the model's own n by default.
        """
        n = self.n if n is None else n
        if n < 1:
            raise AdvlabError("a sample needs n >= 1", n)
        x = self.sigma * normal(torch.empty(n, self.P, self.d, dtype=torch.float64), rng)
        x[..., 0] = 0
        y = (uniform(x[:, 0, 0], rng) < 0.5).to(x) * 2 - 1
        signal = torch.randint(self.P, (n,), generator=rng)
        x[torch.arange(n), signal] = self.alpha * y[:, None] * self.direction()
        return PatchPoints(x, y, signal)

    def gta(self, points: PatchPoints) -> Float[Tensor, "*stack n P d"]:
        """The paper's attack in closed form: the signal patch becomes alpha (1 - gamma) y w*."""
        place = torch.nn.functional.one_hot(points.signal, self.P).to(points.x)
        return points.x * (1 - self.gamma * place)[..., None]


PATCH_SETTINGS: dict[str, Patches] = {
    "A": Patches.scaled(n=20, d=1000),
    "N50": Patches.scaled(n=50, d=1000),
    "tiny": Patches.scaled(n=20, d=300),
}
"""Finite settings in which the three phases of Theorem 4.1 can be seen."""
