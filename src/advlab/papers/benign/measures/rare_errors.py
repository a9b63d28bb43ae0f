"""Test errors far below one in a number of fresh points, by importance sampling.

On N(0, I) clusters the error on clean labels falls like exp(-n ||mu||^4/(2d)), so that fresh points
miss it as soon as Theorem 3.1 says something. Points x = y mu + xi - y t v, xi ~ N(0, I), with v
along sum_s a_s w_s, lie on both sides of the boundary when t is their median distance to it. With
the weight exp(y t <v, xi> - t^2/2) of each, their share of errors has the error itself as its mean,
whatever t and v are. How good v is shows in how many points the weights leave (`effective`).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.special import ndtri_exp
from torch import Tensor, nn

from ....attacks import Attack
from ....core.randomness import normal
from ....losses import ModelLoss, margin
from ....threats import Threat
from .snapshot import Networks

SEARCH, HALVINGS = 100, 14
"""Points that look for t, and how often they halve the range of it."""
TOGETHER = 2500
"""Points of a network that are attacked at once, so that memory does not grow with all of them."""


class RareErrors(NamedTuple):
    """The error on clean labels, P(y_c f <= 0 somewhere in the ball), of R networks."""

    log_error: Float[Tensor, " R"]
    effective: Float[Tensor, " R"]
    """(sum w)^2/sum w^2 over the weights of the errors, in the class where it is less."""

    @property
    def margin(self) -> Float[Tensor, " R"]:
        """The m with error Phi(-m): that of a linear rule is its cosine with mu times ||mu||, less
        the radius."""
        return torch.from_numpy(-ndtri_exp(np.asarray(self.log_error.cpu())))


def rare_errors(
    model: nn.Module,
    mu_norm: float,
    ball: Threat,
    attack: Attack,
    rngs: Sequence[torch.Generator],
    draws: int = 1000,
) -> RareErrors:
    """Errors on fresh points of N(0, I) clusters at +- mu_norm e_1, however small they are.

    With independent flips of probability beta the clean test error is beta + (1 - 2 beta) times
    this; the robust one is beta + (1 - 2 beta) times it at least, and beta + (1 - beta) times it at
    most.

    Args:
        model: a symmetric `TwoLayer` without biases or a stack of R, in coordinates in which noise
            is N(0, I) and mu is along the first.
        mu_norm: the length of mu.
        ball, attack: of the robust error, a lower bound of the truth; radius 0 is the clean one.
        rngs: one generator per replicate.
        draws: points per class.

    Example:
        from advlab.attacks import PGD
        from advlab.core.randomness import generators
        from advlab.papers.benign.measures import rare_errors
        from advlab.threats import Ball
        found = rare_errors(model, 20.0, Ball("l2", 0.0), PGD(), generators("mine", seeds=range(5)))
        found.log_error  # log P(y_c f <= 0), one per network
    """
    net = Networks.of(model)
    toward = (net.top[:, :, None] * net.weight).sum(1)
    v = toward / toward.norm(dim=1, keepdim=True)
    shape = (len(v), draws, v.shape[1])

    def wrong(y: int, xi: Tensor, t: Tensor) -> Bool[Tensor, "R k"]:
        return torch.cat([wrong_part(y, part, t) for part in xi.split(TOGETHER, dim=1)], dim=1)

    def wrong_part(y: int, xi: Tensor, t: Tensor) -> Bool[Tensor, "R k"]:
        x = xi - y * t[:, None, None] * v[:, None]
        x[..., 0] += y * mu_norm
        rows, labels = x.flatten(0, 1), x.new_full(x.shape[:2], y).flatten()
        loss = ModelLoss(model, labels, margin)
        with torch.no_grad():
            worst = attack(loss, rows, ball, rng=rngs).loss if ball.radius else loss(rows)
        return (worst >= 0).reshape(x.shape[:2])

    sides = []
    for y in (-1, 1):
        xi = normal(torch.empty(shape, dtype=v.dtype).flatten(0, 1), rngs).reshape(shape)
        t = _median_distance(lambda t, y=y, xi=xi: wrong(y, xi[:, :SEARCH], t), v, 2 * mu_norm)
        weight = y * t[:, None] * (xi @ v[:, :, None])[..., 0] - t[:, None] ** 2 / 2
        sides.append(_share(weight.masked_fill(~wrong(y, xi, t), -math.inf)))
    (first, few), (second, others) = sides
    return RareErrors(torch.logaddexp(first, second) - math.log(2), torch.minimum(few, others))


def _median_distance(wrong, like: Tensor, far: float) -> Float[Tensor, " R"]:
    """The t at which half of the points are errors; 0 where they are without a move."""
    low, high = like.new_zeros(len(like)), like.new_full((len(like),), far)
    lost = wrong(low).double().mean(1) >= 0.5
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        few = wrong(middle).double().mean(1) < 0.5
        low, high = torch.where(few, middle, low), torch.where(few, high, middle)
    return high.masked_fill(lost, 0.0)


def _share(weight: Float[Tensor, "R k"]) -> tuple[Tensor, Tensor]:
    """The log of the mean of exp(weight), and the effective number of points."""
    total = weight.logsumexp(1)
    return total - math.log(weight.shape[1]), (2 * total - (2 * weight).logsumexp(1)).exp()
