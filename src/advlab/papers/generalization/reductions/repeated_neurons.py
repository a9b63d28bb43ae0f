"""Lazy networks from zero whose second layer takes few values: any width at the price of these.

From theta = 0 two neurons with the same a_j have the same gradient at every step, so they never
part. A network of h neurons with k values of a, each taken h/k times, is then k neurons: exactly,
for every h (Section 2.2; the runs OP1 and OP2 in the proof of Theorem 3).
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from ....models.activations import Activation


@dataclass(frozen=True)
class RepeatedNeurons:
    """R networks f(x) = sum_j a_j phi(x'theta_j)/sqrt(h), each of k neurons h/k times.

    Args:
        theta: the weights of the k different neurons.
        top: a, their weights in the second layer.
        width: h, the number of neurons; a multiple of k.
        activation: phi.
    """

    theta: Float[Tensor, "R k d"]
    top: Float[Tensor, " k"]
    width: int
    activation: Activation

    @property
    def weights(self) -> Float[Tensor, " k"]:
        """(h/k) a/sqrt(h): what the k neurons weigh in f."""
        return self.top * math.sqrt(self.width) / len(self.top)

    @property
    def linear_part(self) -> Float[Tensor, "R d"]:
        """beta = phi'(0) sum_j a_j theta_j/sqrt(h)."""
        return self.activation.slope * torch.einsum("rkd,k->rd", self.theta, self.weights)

    def values(self, x: Float[Tensor, "R n d"]) -> tuple[Tensor, Tensor]:
        """f(x), and phi' at each neuron (R, n, k)."""
        phi, slope = self.activation.both(x @ self.theta.mT)
        return phi @ self.weights, slope

    def attack(
        self, x: Float[Tensor, "R n d"], y: Float[Tensor, "R n"], eps: float, xi: float
    ) -> Float[Tensor, "R n d"]:
        """A_{eps,xi} by the fast gradient: eps g/sqrt(|g|^2 + xi^2), g = 2 (f - y) grad f."""
        value, slope = self.values(x)
        grad = slope @ (self.weights[:, None] * self.theta)
        return shrunk(2 * (value - y)[:, :, None] * grad, eps, xi)

    def gradient(
        self, x: Float[Tensor, "R n d"], y: Float[Tensor, "R n"], eps: float, xi: float
    ) -> Float[Tensor, "R k d"]:
        """g_j of the proof of Theorem 3: of one neuron each, at attacks that are held fixed."""
        x = x + self.attack(x, y, eps, xi)
        value, slope = self.values(x)
        sums = slope.mT @ ((value - y)[:, :, None] * x)
        return 2 / x.shape[1] * (self.top / math.sqrt(self.width))[:, None] * sums

    def step(
        self, x: Float[Tensor, "R n d"], y: Float[Tensor, "R n"], eps: float, xi: float, lr: float
    ) -> "RepeatedNeurons":
        """The networks after one iteration of Algorithm 1.

        Args:
            x, y: the sample.
            eps, xi: of the surrogate attack.
            lr: eta.
        """
        return replace(self, theta=self.theta - lr * self.gradient(x, y, eps, xi))


def shrunk(grad: Float[Tensor, "*n d"], eps: float, xi: float) -> Float[Tensor, "*n d"]:
    """eps g/sqrt(|g|^2 + xi^2), and no move where g and xi are zero."""
    size = (grad.square().sum(-1, keepdim=True) + xi**2).sqrt()
    return eps * grad / size.clamp(min=torch.finfo(grad.dtype).tiny)
