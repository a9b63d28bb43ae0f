"""The network of the purification paper: symmetric pairs of ReLUs with a bias and noise inside."""

from math import sqrt

import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat
from torch import Tensor, nn

from ....core.config import Config
from ....core.errors import AdvlabError
from ....models.stack import Stack


class SymmetricReLU(nn.Module):
    """f(x) = sum_i E[ReLU(<w_i, x> + rho - b) - ReLU(-<w_i, x> + rho - b)], rho ~ N(0, sigma^2).

    The expectation is in closed form: S(v) = E ReLU(v + rho) = v Phi(v/sigma) + sigma phi(v/sigma).
    With sigma = 0 a pair is the soft threshold of <w_i, x> at b. f is odd; only `weight` trains.
    This is the learner network of section 4 with a_i = 1 and one bias for all neurons.

    Args:
        weight: the w_i, one row per neuron.
        bias: b, 0 or more.
        sigma: the standard deviation of the pre-activation noise rho.

    Example:
        from advlab.core.randomness import generator
        from advlab.papers.purification.models import SymmetricReLU
        net = SymmetricReLU.draw(256, 1280, 0.01, bias=0.035, rng=generator("example"))
        margins = y * net(x)
    """

    bias: Tensor
    sigma: Tensor

    def __init__(self, weight: Float[Tensor, "m d"], bias: float, sigma: float = 0.0):
        super().__init__()
        if not (bias >= 0 and sigma >= 0):
            raise AdvlabError("a bias and a noise of 0 or more", f"bias {bias:g}, sigma {sigma:g}")
        self.weight = nn.Parameter(weight.detach().clone())
        self.register_buffer("bias", weight.new_tensor(bias))
        self.register_buffer("sigma", weight.new_tensor(sigma))
        self.smooth = sigma > 0

    @classmethod
    def draw(
        cls,
        d: int,
        width: int,
        sigma0: float,
        bias: float,
        rng: torch.Generator,
        sigma: float = 0.0,
        mean: Float[Tensor, "m d"] | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> "SymmetricReLU":
        """w_i ~ N(mean_i, sigma0^2 I); section 4.1 starts from mean 0.

        Args:
            d: the dimension of the inputs.
            width: m, the number of neurons.
            sigma0: the standard deviation of each weight.
            bias: b at the start.
            rng: draws the weights, in float64.
            sigma: the noise inside.
            mean: where the neurons start, such as `pure_features`; 0 if left out.
            dtype: of the network.
        """
        if d < 1 or width < 1 or not sigma0 >= 0:
            raise AdvlabError(
                "d and width of at least 1 and sigma0 of 0 or more",
                f"d {d}, width {width}, sigma0 {sigma0}",
            )
        noise = sigma0 * torch.randn(width, d, generator=rng, dtype=torch.float64)
        return cls((noise if mean is None else mean + noise).to(dtype), bias, sigma)

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """f(x), the noise integrated out."""
        return self.pairs(self.preactivations(x)).sum(-1)

    def preactivations(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        """u_i = <w_i, x>"""
        return x @ self.weight.mT

    def pairs(self, u: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
        """What each neuron gives for its pre-activation: S(u - b) - S(-u - b)."""
        return pair(u, self.bias, self.sigma if self.smooth else None)

    def gates(self, u: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
        """The slope of each pair: Phi((u - b)/sigma) + Phi((-u - b)/sigma), or 1[|u| > b]."""
        return gate(u, self.bias, self.sigma if self.smooth else None)

    def input_gradient(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """sum_i G_i w_i; the gradient in w_i is G_i x (Fact A.1)."""
        return self.gates(self.preactivations(x)) @ self.weight

    def sampled(self, x: Float[Tensor, "n d"], rho: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
        """f at given noise, as training draws it: its mean over rho is the network."""
        u = self.preactivations(x)
        return (torch.relu(u + rho - self.bias) - torch.relu(-u + rho - self.bias)).sum(-1)


def pure_features(
    M: Float[Tensor, "d D"], w: Float[Tensor, " D"], copies: int, scale: float
) -> Float[Tensor, "m d"]:
    """Neurons without a dense mixture: `copies` times scale sign(w*_j) M_j for each atom j.

    Args:
        M: the dictionary, atoms in its columns.
        w: w* of the labels sign <w*, z>.
        copies: neurons per atom.
        scale: the length of each neuron.
    """
    return scale * (M * w.sign()).mT.repeat(copies, 1)


def pair(u: Tensor, bias: Tensor, sigma: Tensor | None) -> Tensor:
    """S(u - b) - S(-u - b); without noise u less its part in [-b, b]."""
    if sigma is None:
        return u - torch.clamp(u, -bias, bias)
    return smooth_relu(u - bias, sigma) - smooth_relu(-u - bias, sigma)


def gate(u: Tensor, bias: Tensor, sigma: Tensor | None) -> Tensor:
    """The derivative of `pair`. Mind the plus: the paper prints a minus in places."""
    if sigma is None:
        return (u.abs() > bias).to(u)
    return torch.special.ndtr((u - bias) / sigma) + torch.special.ndtr((-u - bias) / sigma)


def smooth_relu(v: Tensor, sigma: Tensor | float) -> Tensor:
    """S(v) = E ReLU(v + sigma N(0, 1)) = v Phi(v/sigma) + sigma phi(v/sigma)."""
    t = v / sigma
    return v * torch.special.ndtr(t) + sigma * torch.exp(-(t**2) / 2) / sqrt(2 * torch.pi)


class BiasGrowth(Config):
    """b(t) = min(end, start + slope t), with noise sigma(t) = noise b(t) (Algorithm 1).

    `ModelSchedule(growth)` among the hooks of `fit` sets bias and noise before each step.
    """

    start: NonNegativeFloat
    slope: NonNegativeFloat
    end: NonNegativeFloat
    noise: NonNegativeFloat = 0.0
    """The standard deviation of rho as a share of the bias."""

    def at(self, step: int) -> float:
        """b(t)"""
        return min(self.end, self.start + self.slope * step)

    def noise_at(self, step: int) -> float:
        """The standard deviation of rho at a step."""
        return self.noise * self.at(step)

    def __call__(self, model: nn.Module, step: int) -> None:
        net = model.skeleton if isinstance(model, Stack) else model
        if getattr(net, "smooth", None) != (self.noise > 0):
            raise AdvlabError(
                "noise in the network and in its schedule, or in neither",
                f"a schedule with noise {self.noise:g} for a network without the like",
                "make the network with sigma = noise * bias",
            )
        model.get_buffer("bias").fill_(self.at(step))
        model.get_buffer("sigma").fill_(self.noise_at(step))
