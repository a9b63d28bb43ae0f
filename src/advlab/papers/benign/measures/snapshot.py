"""Adversarial training of two-layer networks, frozen at one step: Algorithm 1's own quantities."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ....attacks import Attack
from ....core.errors import AdvlabError
from ....core.randomness import Rng, generator
from ....losses import ModelLoss, logistic
from ....models import Activation, Stack, TwoLayer
from ....models.two_layer import mirrored
from ....threats import Threat
from ..data import Clusters


@dataclass(frozen=True)
class Networks:
    """R networks f(x) = (1/sqrt(m)) sum_s a_s phi(<w_s, x>)."""

    weight: Float[Tensor, "R m d"]
    top: Float[Tensor, "R m"]
    activation: Activation

    @classmethod
    def of(cls, model: nn.Module) -> "Networks":
        """A copy of the weights of a symmetric `TwoLayer` without biases, or of a stack of them."""
        stacked = isinstance(model, Stack)
        one = model.skeleton if stacked else model
        if not isinstance(one, TwoLayer) or one.init != "symmetric" or one.bias is not None:
            raise AdvlabError("a symmetric TwoLayer without biases, or a stack of them", type(one))
        weight, top = model.get_parameter("weight"), model.get_buffer("top")
        weight, top = (weight, top) if stacked else (weight[None], top[None])
        return cls(weight.detach().clone(), top.detach().clone(), one.activation)

    @property
    def width(self) -> int:
        return self.weight.shape[1]

    def inner(self, x: Float[Tensor, "R k d"]) -> Float[Tensor, "R k m"]:
        """<w_s, x>"""
        return x @ self.weight.mT

    def value(self, x: Float[Tensor, "R k d"]) -> Float[Tensor, "R k"]:
        return self.read(self.inner(x))

    def read(self, inner: Float[Tensor, "R k m"]) -> Float[Tensor, "R k"]:
        """f given the <w_s, x>; exactly 0 while the second half mirrors the first."""
        f = (self.activation.phi(inner) @ self.top[:, :, None])[:, :, 0] / math.sqrt(self.width)
        return torch.where(self.mirrored()[:, None], 0.0, f)

    def mirrored(self) -> Bool[Tensor, " R"]:
        """Which networks are still at a start where their halves cancel."""
        return mirrored(self.weight, self.top)

    def moved(self, step: Float[Tensor, "R m d"]) -> "Networks":
        return replace(self, weight=self.weight + step)


@dataclass(frozen=True)
class Snapshot:
    """Networks at a step with the inputs that the attack makes of their training data."""

    net: Networks
    data: Clusters
    mu: Float[Tensor, "R d"]
    radius: float
    x: Float[Tensor, "R n d"]
    """The attacked inputs x~."""
    slope: Float[Tensor, "R n m"]
    """phi'(<w_s, x~_i>)"""
    margin: Float[Tensor, "R n"]
    """y_i f(x~_i)"""

    @classmethod
    def take(
        cls,
        model: nn.Module,
        data: Clusters,
        mu: Tensor,
        ball: Threat,
        attack: Attack,
        rng: Rng | None = None,
    ) -> "Snapshot":
        """Attack the model once. data has a stack axis where the model is a stack; mu is (d,) or
        one per replicate, in the coordinates of the data."""
        net = Networks.of(model)
        data = stacked(data)
        if data.x.shape[0] != net.weight.shape[0] or data.x.shape[2] != net.weight.shape[2]:
            raise AdvlabError(
                f"data (R, n, d) with R and d of the weights {tuple(net.weight.shape)}",
                tuple(data.x.shape),
            )
        loss = ModelLoss(model, data.y.flatten(), logistic)
        rng = generator("snapshot") if rng is None else rng
        x = attack(loss, data.x.flatten(0, 1), ball, rng=rng).x.reshape(data.x.shape)
        return cls.at(net, data, mu.to(x).expand(len(x), -1), float(ball.radius), x)

    @classmethod
    def at(
        cls,
        net: Networks,
        data: Clusters,
        mu: Float[Tensor, "R d"],
        radius: float,
        x: Float[Tensor, "R n d"],
    ) -> "Snapshot":
        """The same with given inputs x~."""
        inner = net.inner(x)
        return cls(net, data, mu, radius, x, net.activation.dphi(inner), data.y * net.read(inner))

    @cached_property
    def g(self) -> Float[Tensor, "R n"]:
        """g~_i = -l'(y_i f(x~_i)) for the logistic loss l."""
        return torch.sigmoid(-self.margin)

    @property
    def L_rob(self) -> Float[Tensor, " R"]:
        """The robust training loss."""
        return F.softplus(-self.margin).mean(1)

    @property
    def G_rob(self) -> Float[Tensor, " R"]:
        """The mean of the g~_i."""
        return self.g.mean(1)

    @cached_property
    def gradient(self) -> Float[Tensor, "R m d"]:
        """Of L_rob in W, x~ held fixed: -(a_s/(n sqrt m)) sum_i g~_i phi'(<w_s, x~_i>) y_i x~_i."""
        pull = (self.g * self.data.y)[:, :, None] * self.slope
        n, root = self.x.shape[1], math.sqrt(self.net.width)
        return -(self.net.top[:, :, None] / (n * root)) * (pull.mT @ self.x)

    def after(self, eta: float) -> Networks:
        """The networks of the next step of Algorithm 1."""
        return self.net.moved(-eta * self.gradient)


def frobenius(matrix: Float[Tensor, "R m d"]) -> Float[Tensor, " R"]:
    return matrix.flatten(1).norm(dim=1)


def stacked(data: Clusters) -> Clusters:
    """Data with a replicate axis in front, where it has none."""
    return data if data.x.ndim == 3 else Clusters(*(part[None] for part in data))
