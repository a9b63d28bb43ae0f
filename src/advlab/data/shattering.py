"""The clusters that balls shatter (convergence paper, proof of Theorem 6.1)."""

from math import sqrt
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from ..errors import AdvlabError
from ..randomness import uniform
from .base import DataModel


class ClusterPoints(NamedTuple):
    """Inputs, labels of +-1 and the cluster of each; a stack has one more axis in front."""

    x: Float[Tensor, "*stack n d"]
    y: Float[Tensor, "*stack n"]
    cluster: Int[Tensor, "*stack n"]
    """i = 1, 2, ... of the centre c_i."""


class Shattering(DataModel):
    """Points c_i + eps e_j with labels of a fair coin, c_i = (6 i delta, 0, ..., 0).

    n examples fill cluster after cluster, d points each. Whatever the labels, two disjoint balls of
    radius delta a cluster hold its points of label 1 and of label -1
    (`advlab.theory.capacity.shatter` gives them): a network that fits these balls robustly has
    learnt the labels of d points from two.
    """

    d: PositiveInt
    delta: PositiveFloat = 1.0
    eps: PositiveFloat
    """Less than delta and than 2 delta/sqrt(d), or some labels have no such balls."""

    @model_validator(mode="after")
    def _every_labelling_is_possible(self) -> "Shattering":
        most = self.delta * min(1.0, 2 / sqrt(self.d))
        if not self.eps < most:
            raise ValueError(
                f"eps = {self.eps:g} must be below delta and 2 delta/sqrt(d), so below {most:g}"
            )
        return self

    def sample(self, rng: torch.Generator, n: int | None = None) -> ClusterPoints:
        """n examples (the model's own n by default), float64; only their labels are random."""
        n = self.n if n is None else n
        if n < 1:
            raise AdvlabError("a sample needs n >= 1", n)
        place = torch.arange(n)
        cluster = place // self.d + 1
        x = self.eps * torch.eye(self.d, dtype=torch.float64)[place % self.d]
        x[:, 0] += 6 * self.delta * cluster
        coins = uniform(torch.empty(n, dtype=torch.float64), rng)
        return ClusterPoints(x, (coins < 0.5).to(x) * 2 - 1, cluster)
