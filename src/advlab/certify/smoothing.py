"""Randomised smoothing as a certificate: for models that are smoothed classifiers."""

from typing import ClassVar

import torch
from jaxtyping import Float, Shaped
from pydantic import Field, PositiveInt
from scipy import stats
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import generator
from ..threats import Threat
from ._graph.graph import Graph
from ._graph.input_sets import InputSets
from .base import Certificate, Model
from .randomized_smoothing import Smoothed


class Smoothing(Certificate):
    """Theorem 1 of Cohen et al. 2019 as an upper bound of the margin of a `Smoothed` model.

    If the label has the probability p at x then within the l2 distance r it has at least

        p' = Phi(Phi^-1(p) - r / sigma),

    and the margin of probabilities, the largest other one less the label's, is at most 1 - 2 p'.
    p is bounded from below by votes (Clopper and Pearson). In other norms r is the l2 length of the
    longest move: the radius in l1, sqrt(d) times it in linf.

    Args:
        alpha: each bound is too low with probability at most this. By the union bound all of n are
            right with probability at least 1 - n alpha, whatever draws they share.
        votes: noisy inputs per example.
        seed: of the noise.

    Example:
        >>> from advlab.certify import Smoothed, Smoothing
        >>> from advlab.threats import Ball
        >>> smooth, ball = Smoothed(net, sigma=0.25), Ball("l2", 0.5)
        >>> robust = Smoothing(votes=100_000).worst_margin(smooth, x, y, ball) < 0
    """

    name: ClassVar[str] = "smoothing"
    alpha: float = Field(default=1e-6, gt=0, lt=1)
    votes: PositiveInt = 10_000
    seed: int = 0

    def refuses(self, model: Model, ball: Threat, x: Tensor | None = None) -> str | None:
        if not ball.states_support:
            return f"{type(ball).__name__} does not state its support function"
        if x is not None and not isinstance(model, Smoothed):
            return "the network is no smoothed classifier (advlab.certify.Smoothed)"
        if not ball.within_radius:
            return f"{type(ball).__name__} does not state that all its moves are within its radius"
        return None

    def worst_margin(
        self,
        model: Model,
        x: Float[Tensor, "batch *shape"],
        y: Shaped[Tensor, " batch"],
        ball: Threat,
    ) -> Float[Tensor, " batch"]:
        ball.check_center(x)
        if not ball.states_support:
            raise AdvlabError("a threat set with a support function", type(ball).__name__)
        reason = self.refuses(model, ball, x)
        if reason is not None or not isinstance(model, Smoothed):
            raise AdvlabError(f"a network and a threat set that {self.name} can bound", reason)
        counts, signed = model.counts(x, self.votes, generator("smoothing", self.seed))
        own = (y + 1) // 2 if signed else y
        k = counts.gather(1, own.long().cpu()[:, None])[:, 0].double().numpy()
        lower = stats.beta.ppf(self.alpha, k.clip(1), self.votes - k + 1)
        longest = ball.radius * max(1.0, x[0].numel() ** (0.5 - 1 / ball.order))
        moved = stats.norm.cdf(stats.norm.ppf(lower) - longest / model.sigma)
        return torch.from_numpy(1 - 2 * moved * (k > 0)).to(x)

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        raise AdvlabError("a smoothed classifier, which has no graph", type(graph).__name__)

    def confidence(self, examples: int) -> float:
        """The bounds of so many examples all hold with at least this probability."""
        return max(0.0, 1 - examples * self.alpha)
