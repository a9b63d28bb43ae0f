"""Random starts of l2 attacks in the coordinates that training can reach.

A uniform start in the ball of R^d has a part in the coordinates k that inputs and weights have used
so far, and a part outside of them. The attack only shortens the outer part, but where the attacked
point keeps some of it, the next gradient step adds its direction to the weights. So each step of
training has n new directions at most. Gaussian directions look alike in every basis: the parts in
the k coordinates are normal, and the outer parts of n points are a triangle of Bartlett's.
"""

import torch
from jaxtyping import Float
from pydantic import PositiveInt
from torch import Tensor

from ....attacks import Attack
from ....core.errors import AdvlabError
from ....core.randomness import Rng, normal, uniform
from ....reductions import bartlett
from ....threats import Ball, Threat
from ....training import Adversarial


class SpanBall(Ball):
    """The l2 ball of R^dim in the coordinates of a subspace; only its random draws differ.

    Args:
        dim: the dimension of the whole space.
        known: how many coordinates are in use. The draws of n rows use these and the next n.
        replicates: R, the number of equal blocks of rows, each in coordinates of its own.
    """

    dim: PositiveInt
    known: PositiveInt
    replicates: PositiveInt = 1

    def sample(self, center: Float[Tensor, "batch k"], *, rng: Rng) -> Float[Tensor, "batch k"]:
        """Points with the law of uniform draws from the ball of R^dim, in these coordinates."""
        one = isinstance(rng, torch.Generator)
        rngs = [rng] * self.replicates if one else list(rng)
        if center.ndim != 2 or len(center) % len(rngs):
            raise AdvlabError(f"{len(rngs)} equal blocks of rows (n, k)", tuple(center.shape))
        blocks = zip(center.chunk(len(rngs)), rngs, strict=True)
        return center + torch.cat([self._moves(block, rng) for block, rng in blocks])

    def _moves(self, rows: Float[Tensor, "n k"], rng: torch.Generator) -> Float[Tensor, "n k"]:
        outside = self.dim - self.known
        moves = torch.zeros_like(rows)
        moves[:, : self.known] = normal(rows[:, : self.known], rng)
        length2 = moves.square().sum(1, keepdim=True)
        if outside:
            own = bartlett(len(rows), outside, rng).to(rows)
            if self.known + own.shape[1] > rows.shape[1]:
                raise AdvlabError(
                    f"{rows.shape[1] - self.known} new directions at most", own.shape[1],
                    "give reduce the number of steps that will be trained",
                )  # fmt: skip
            moves[:, self.known : self.known + own.shape[1]] = own
            length2 = length2 + own.square().sum(1, keepdim=True)
        share = uniform(rows[:, :1], rng) ** (1 / self.dim)
        return self.radius * share * moves / length2.sqrt()


class RandomStarts(Adversarial):
    """`Adversarial` in a subspace, with the random starts of the whole space.

    Args:
        dim: the dimension of the whole space.
        known: the number of coordinates of inputs and first weights.
        rows: n, the number of inputs per replicate: so many directions are new in each step.
        replicates: R, the number of networks.
    """

    dim: PositiveInt
    known: PositiveInt
    rows: PositiveInt
    replicates: PositiveInt = 1

    def adversary(self, step: int) -> tuple[Attack, Threat]:
        attack, ball = super().adversary(step)
        known = min(self.known + step * self.rows, self.dim)
        return attack, SpanBall(
            norm="l2", radius=ball.radius, dim=self.dim, known=known, replicates=self.replicates
        )
