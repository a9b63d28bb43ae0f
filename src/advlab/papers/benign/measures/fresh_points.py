"""Margins and errors on fresh points: what Lemma B.2 and Theorem 3.1 speak of."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....attacks import Attack
from ....core.randomness import Rng, generator
from ....losses import ModelLoss, margin
from ....threats import Threat
from ..data import Clusters
from .snapshot import Networks, stacked


class Errors(NamedTuple):
    """Shares of fresh points whose label, noisy as it is, is missed."""

    clean: Float[Tensor, " R"]
    robust: Float[Tensor, " R"]
    """By the attack: a lower bound of the truth."""


def errors(
    model: nn.Module, test: Clusters, ball: Threat, attack: Attack, rng: Rng | None = None
) -> Errors:
    """The shares of y f(x) <= 0, and of those for which the attack finds such a point.

    Args:
        model: a network, or a stack of R.
        test: fresh examples, with a replicate axis if the model is a stack.
        ball, attack, rng: the attack, which sees the noisy labels.
    """
    test = stacked(test)
    shape = test.y.shape
    loss = ModelLoss(model, test.y.flatten(), margin)
    x, rng = test.x.flatten(0, 1), generator("errors") if rng is None else rng
    with torch.no_grad():
        clean = loss(x)
    worst = attack(loss, x, ball, rng=rng).loss
    found = ((lost >= 0).to(x).reshape(shape).mean(1) for lost in (clean, worst))
    return Errors(*found)


def class_margins(net: Networks, test: Clusters) -> Float[Tensor, "R 2"]:
    """M = E[y_c f(x) | y_c] for y_c = -1 and +1, as means over the points of each cluster."""
    test = stacked(test)
    f = net.value(test.x)
    means = []
    for side in (-1, 1):
        own = test.y_clean == side
        means.append(side * (f * own).sum(1) / own.sum(1))
    return torch.stack(means, dim=1)


def spectral_norm(net: Networks) -> Float[Tensor, " R"]:
    """||W||_2"""
    return torch.linalg.matrix_norm(net.weight, ord=2)


def normalised_margin(net: Networks, test: Clusters) -> Float[Tensor, " R"]:
    """Lemmas B.14, B.33: min over clusters of M/||W||_2, of order ||mu||^2 sqrt(n/d) for t >= 1."""
    return class_margins(net, test).amin(1) / spectral_norm(net)


def aligned_share(net: Networks, test: Clusters) -> Float[Tensor, " R"]:
    """Corollary B.31: the share of pairs with a_s y_c <w_s, x> > 0 on fresh points."""
    test = stacked(test)
    signs = test.y_clean[:, :, None] * net.top[:, None]
    return (signs * net.inner(test.x) > 0).to(test.x).mean(dim=(1, 2))
