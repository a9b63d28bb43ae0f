"""Pairs of antipodes that keep their distance from one another (appendix C.2)."""

from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from ....core.errors import AdvlabError
from ....core.randomness import normal
from .sphere import TRIES, Antipodes, SpherePoints, lift


class SeparatedAntipodes(Antipodes):
    """Antipodes drawn pair by pair, and kept if they are far enough from those before."""

    separation: Annotated[float, Field(gt=0, lt=2)]
    """The least distance of a pair's points from those of another, before lifting."""

    def sample(self, rng: torch.Generator, n: int | None = None) -> SpherePoints:
        """Points and labels.

        Args:
            rng: where they are drawn from.
            n: how many, even; the model's own n by default.
        """
        n = self.n if n is None else n
        if n < 2 or n % 2:
            raise AdvlabError("pairs of antipodes: an even n of at least 2", n)
        half = self._lines(n // 2, rng)
        sign = 1.0 - 2.0 * (torch.arange(n // 2, dtype=torch.float64) % 2)
        x = torch.stack([half, -half], dim=1).flatten(0, 1)
        second = sign if self.labels == "equal" else -sign
        y = torch.stack([sign, second], dim=1).flatten()
        return SpherePoints(lift(x) if self.lifted else x, y)

    def _lines(self, number: int, rng: torch.Generator) -> Float[Tensor, "number d"]:
        """One point of each pair."""
        kept = torch.empty(0, self.d, dtype=torch.float64)
        for _ in range(max(TRIES, 10 * number)):
            point = normal(torch.empty(1, self.d, dtype=torch.float64), rng)
            point = point / point.norm(dim=1, keepdim=True)
            gaps = torch.cat([kept - point, kept + point]).norm(dim=1)
            if bool((gaps >= self.separation).all()):
                kept = torch.cat([kept, point])
            if len(kept) == number:
                return kept
        raise AdvlabError(
            f"a separation that {number} pairs can keep in {self.d} dimensions",
            f"{self.separation:g}, which only {len(kept)} kept",
            "lower the separation or n, or raise d",
        )
