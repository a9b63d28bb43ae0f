"""Points on the unit sphere, the inputs of the convergence paper (sections 3-5)."""

from math import sqrt
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from ....core.errors import AdvlabError
from ....core.randomness import normal
from ....data.base import DataModel

TRIES = 10_000
"""Points drawn before a separation is given up."""


class SpherePoints(NamedTuple):
    """Inputs of norm 1 and labels of +-1; a stack has one more axis in front."""

    x: Float[Tensor, "*stack n d"]
    y: Float[Tensor, "*stack n"]


def lift(x: Float[Tensor, "*stack d"]) -> Float[Tensor, "*stack d_and_1"]:
    """(x, 1)/sqrt(2): unit vectors stay unit vectors, and none is another's antipode.

    The paper lifts to (x, 1) (footnote 14), which leaves the sphere. Distances shrink by sqrt(2).

    Args:
        x: unit vectors along the last axis.
    """
    return torch.cat([x, torch.ones_like(x[..., :1])], dim=-1) / sqrt(2)


class Sphere(DataModel):
    """Uniform points, kept one by one if they keep their distance; labels 1, -1, 1, -1, ...

    Each point is uniform on what its forerunners leave of the sphere.
    """

    d: Annotated[int, Field(ge=2)]
    """Before lifting, which adds one."""
    separation: Annotated[float, Field(ge=0, le=2)] = 0.0
    """The least distance of two inputs, as they are returned."""
    hemisphere: bool = False
    """Only points whose last coordinate, before lifting, is at least 0."""
    lifted: bool = False

    def sample(self, rng: torch.Generator, n: int | None = None) -> SpherePoints:
        """Points and labels.

        Args:
            rng: where they are drawn from.
            n: how many, the model's own n by default.
        """
        n = _whole(self.n if n is None else n)
        x = torch.empty(n, self.d + self.lifted, dtype=torch.float64)
        kept = 0
        for _ in range(max(TRIES, 10 * n)):
            point = self._point(rng)
            if bool(((x[:kept] - point).norm(dim=1) >= self.separation).all()):
                x[kept] = point
                kept += 1
            if kept == n:
                return SpherePoints(x, _alternating(n))
        raise AdvlabError(
            f"a separation that {n} points can keep in {self.d} dimensions",
            f"{self.separation:g}, which only {kept} kept",
            "lower the separation or n, or raise d",
        )

    def _point(self, rng: torch.Generator) -> Float[Tensor, " k"]:
        point = _uniform(1, self.d, rng)[0]
        if self.hemisphere:
            point[-1] = point[-1].abs()
        return lift(point) if self.lifted else point


class Antipodes(DataModel):
    """n/2 pairs of uniform x and -x, one after the other: what a kernel of one parity cannot fit.

    Pairs of equal labels are 1, 1, -1, -1, ...; pairs of opposite ones 1, -1, -1, 1, 1, -1, ...
    """

    d: Annotated[int, Field(ge=2)]
    """Before lifting, which adds one."""
    labels: Literal["equal", "opposite"] = "equal"
    lifted: bool = False

    def sample(self, rng: torch.Generator, n: int | None = None) -> SpherePoints:
        """Points and labels.

        Args:
            rng: where they are drawn from.
            n: how many, even; the model's own n by default.
        """
        n = _whole(self.n if n is None else n)
        if n % 2:
            raise AdvlabError("pairs of antipodes: an even n", n)
        half, sign = _uniform(n // 2, self.d, rng), _alternating(n // 2)
        x = torch.stack([half, -half], dim=1).flatten(0, 1)
        second = sign if self.labels == "equal" else -sign
        return SpherePoints(
            lift(x) if self.lifted else x, torch.stack([sign, second], dim=1).flatten()
        )


def _uniform(n: int, d: int, rng: torch.Generator) -> Float[Tensor, "n d"]:
    point = normal(torch.empty(n, d, dtype=torch.float64), rng)
    return point / point.norm(dim=1, keepdim=True)


def _alternating(n: int) -> Float[Tensor, " n"]:
    return 1.0 - 2.0 * (torch.arange(n, dtype=torch.float64) % 2)


def _whole(n: int) -> int:
    if n < 1:
        raise AdvlabError("a sample needs n >= 1", n)
    return n
