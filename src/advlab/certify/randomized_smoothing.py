"""Randomised smoothing: a certificate for the majority vote under Gaussian noise.

J. Cohen, E. Rosenfeld, J. Z. Kolter: Certified adversarial robustness via randomized smoothing
(ICML 2019), arXiv:1902.02918.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from scipy import stats
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import normal
from ..losses import evaluating, outputs_of


@dataclass(frozen=True)
class Vote:
    """What the smoothed classifier says of each example, on the CPU wherever the model is."""

    label: Int[Tensor, " batch"]
    """A class, or -1, +1 for models of one output; meaningless where it abstains."""
    abstains: Bool[Tensor, " batch"]
    radius: Float[Tensor, " batch"]
    """No l2 move shorter than this changes the label, with confidence 1 - alpha for each example;
    0 where it abstains."""
    p_lower: Float[Tensor, " batch"]
    """A lower confidence bound of the label's probability under the noise."""


@dataclass(frozen=True)
class Smoothed:
    """g(x) = the class that the model gives most often to x + N(0, sigma^2 I).

    If it gives a class with probability at least p > 1/2, then g is constant within the l2 distance
    sigma Phi^-1(p) of x (Theorem 1). This certifies g, not the model: g is what must be deployed.

    Called as a model it is the classifier as deployed: the shares of `votes` votes, whose noise
    comes from torch's global generators and is new in each call. The gradient is that of the mean
    probabilities (SmoothAdv, Salman et al. 2019). `advlab.evaluate` takes it as a random model and
    certifies it (`certify.Smoothing`).

    Args:
        model: The network that votes.
        sigma: The standard deviation of the noise.
        batch: Noisy inputs run at once.
        votes: Noisy inputs that vote in a call.

    Example:
        >>> import advlab
        >>> from advlab.certify import Smoothed
        >>> from advlab.core.randomness import generator
        >>> from advlab.threats import Ball
        >>> vote = Smoothed(model, sigma=0.25).certify(x, n=10_000, rng=generator("votes"))
        >>> robust = (vote.label == y) & (vote.radius > 0.5)
        >>> advlab.evaluate(Smoothed(model, sigma=0.25), x, y, Ball("l2", 0.5))
    """

    model: Callable[[Tensor], Tensor]
    sigma: float
    batch: int = 1024
    votes: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.sigma < float("inf"):
            raise AdvlabError("sigma above 0", self.sigma)
        if self.batch < 1:
            raise AdvlabError("a batch of at least 1", self.batch)
        if self.votes < 1:
            raise AdvlabError("at least one vote", self.votes)

    def __call__(self, x: Float[Tensor, "n *shape"]) -> Float[Tensor, "n *classes"]:
        """The share of votes of each class; for one signed output, those for +1 less those for -1.

        The values are shares of whole votes, the gradients those of mean probabilities.
        """
        at_once = max(1, self.batch // max(1, len(x)))
        total, done = torch.zeros(()), 0
        with evaluating(self.model):
            while done < self.votes:
                count = min(at_once, self.votes - done)
                noise = torch.randn(count, *x.shape, dtype=x.dtype, device=x.device)
                scores = outputs_of(self.model, (x + self.sigma * noise).flatten(0, 1))
                total = total + _votes_of(scores).unflatten(0, (count, len(x))).sum(0)
                done += count
        return total / self.votes

    def error_bound(self, bound: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """At most so likely is a call wrong, from upper bounds of its margin over a set.

        A margin of at most b leaves the label with the probability p >= (1 - b) / 2, and a call is
        right if more than half of its votes are: the bound is P(Bin(votes, p) <= votes / 2).

        Args:
            bound: upper bounds of 1 - 2 p, such as `certify.Smoothing` gives; infinite for none.
        """
        p = ((1 - bound.double()) / 2).clamp(0, 1).cpu().numpy()
        return torch.from_numpy(stats.binom.cdf(self.votes // 2, self.votes, p))

    def predict(
        self, x: Float[Tensor, "n *shape"], *, n: int, alpha: float = 0.001, rng: torch.Generator
    ) -> Vote:
        """The winner of n votes, abstaining unless it leads significantly (PREDICT of the paper).

        Args:
            x: Examples.
            n: Votes per example.
            alpha: The label is wrong with probability at most alpha.
            rng: The source of the noise.

        Returns:
            Labels and abstentions; the radii are zero.
        """
        _check(1, n, alpha)
        counts, signed = self.counts(x, n, rng)
        top = counts.topk(2, dim=1)
        ahead = [stats.binomtest(int(a), int(a + b)).pvalue for a, b in top.values.tolist()]
        nothing = torch.zeros(len(x), dtype=torch.float64)
        significant = torch.tensor(ahead, dtype=torch.float64) <= alpha
        return Vote(_labels(top.indices[:, 0], signed), ~significant, nothing, nothing)

    def certify(
        self,
        x: Float[Tensor, "batch *shape"],
        *,
        n0: int = 100,
        n: int = 10_000,
        alpha: float = 0.001,
        rng: torch.Generator,
    ) -> Vote:
        """A guess by n0 votes, then n fresh ones for its Clopper-Pearson bound (CERTIFY).

        Args:
            x: Examples.
            n0: Votes for the guess.
            n: Votes for the bound.
            alpha: Each radius is too large with probability at most alpha.
            rng: The source of the noise.
        """
        _check(n0, n, alpha)
        guess = self.counts(x, n0, rng)[0].argmax(1)
        counts, signed = self.counts(x, n, rng)
        k = counts.gather(1, guess[:, None])[:, 0].numpy()
        lower = np.where(k > 0, stats.beta.ppf(alpha, np.maximum(k, 1), n - k + 1), 0.0)
        radius = self.sigma * stats.norm.ppf(np.clip(lower, 0.5, None))
        return Vote(
            _labels(guess, signed), torch.from_numpy(lower <= 0.5),
            torch.from_numpy(radius), torch.from_numpy(lower),
        )  # fmt: skip

    def certified_error(self, vote: Vote, y: Shaped[Tensor, " batch"], radius: float) -> float:
        """The share of examples that are wrong, abstained from, or not certified to this radius."""
        right = (vote.label == y.cpu()) & ~vote.abstains & (vote.radius > radius)
        return float((~right).double().mean())

    def counts(
        self, x: Float[Tensor, "batch *shape"], n: int, rng: torch.Generator
    ) -> tuple[Int[Tensor, "batch classes"], bool]:
        """Votes for each class of each example, and whether the model has one signed output."""
        if len(x) == 0:
            raise AdvlabError("at least one example", "none")
        found = [self._votes(row[None], n, rng) for row in x]
        return torch.stack([votes for votes, _ in found]), found[0][1]

    def _votes(self, x: Tensor, n: int, rng: torch.Generator) -> tuple[Tensor, bool]:
        votes, signed = 0, False
        with torch.no_grad(), evaluating(self.model):
            for first in range(0, n, self.batch):
                clean = x.detach().expand(min(self.batch, n - first), *x.shape[1:])
                scores = outputs_of(self.model, clean + self.sigma * normal(clean, rng))
                signed = scores.ndim == 1 or scores.shape[1] == 1
                if signed:
                    one = scores.reshape(-1)
                    scores = torch.stack([-one, one], 1)
                votes = votes + scores.argmax(1).bincount(minlength=scores.shape[1])
        return torch.as_tensor(votes).cpu(), signed


def _votes_of(scores: Tensor) -> Tensor:
    """One vote per row by value, by gradient its probabilities."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        soft, hard = scores.tanh(), scores.sign()
    else:
        soft = scores.softmax(1)
        hard = torch.zeros_like(soft).scatter(1, scores.argmax(1, keepdim=True), 1.0)
    return hard + (soft - soft.detach())


def _labels(index: Tensor, signed: bool) -> Tensor:
    return 2 * index - 1 if signed else index


def _check(n0: int, n: int, alpha: float) -> None:
    if min(n0, n) < 1:
        raise AdvlabError("at least one vote", f"n0 {n0}, n {n}")
    if not 0 < alpha < 1:
        raise AdvlabError("alpha between 0 and 1", alpha)
