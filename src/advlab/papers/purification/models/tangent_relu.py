"""The tangent kernel of symmetric ReLU networks, with finitely many random features."""

from math import pi, sqrt
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....core.errors import AdvlabError

Sign = Literal[1, -1]


class TangentReLU(nn.Module):
    """p(x) = sum_i <v_i, x> G_i(x), G_i = P(<w_i, x> + rho >= b) + sign P(-<w_i, x> + rho >= b).

    rho ~ N(0, sigma^2); with sigma = 0 these are indicators. The w_i (`directions`) are frozen, the
    v_i (`weight`) train. sign = +1 is the gradient of the network (Fact A.1), and p is odd. With
    -1, as Definition 5.5 prints it, p is even and knows nothing of labels that are odd.
    """

    directions: Tensor
    bias: Tensor
    sigma: Tensor

    def __init__(
        self,
        weight: Float[Tensor, "m d"],
        directions: Float[Tensor, "m d"],
        bias: float,
        sigma: float = 0.0,
        sign: Sign = 1,
    ):
        super().__init__()
        if sign not in (1, -1) or not sigma >= 0:
            raise AdvlabError("sign 1 or -1 and a noise of 0 or more", f"{sign} and {sigma:g}")
        self.weight = nn.Parameter(weight.detach().clone())
        self.register_buffer("directions", directions.detach().clone())
        self.register_buffer("bias", weight.new_tensor(bias))
        self.register_buffer("sigma", weight.new_tensor(sigma))
        self.sign: Sign = sign
        self.smooth = sigma > 0

    @classmethod
    def draw(
        cls,
        d: int,
        features: int,
        bias: float,
        rng: torch.Generator,
        sigma: float = 0.0,
        sign: Sign = 1,
        dtype: torch.dtype = torch.float64,
    ) -> "TangentReLU":
        """w_i ~ N(0, I) and v_i = 0: p is 0 at first.

        Args:
            d: the dimension of the inputs.
            features: m, the number of random features.
            bias: b of the gates.
            rng: draws the w_i, in float64.
            sigma: the noise of the gates.
            sign: between the two indicators.
            dtype: of the model.
        """
        if d < 1 or features < 1:
            raise AdvlabError("d and features of at least 1", f"d {d}, features {features}")
        w = torch.randn(features, d, generator=rng, dtype=torch.float64).to(dtype)
        return cls(torch.zeros_like(w), w, bias, sigma, sign)

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """p(x)"""
        return ((x @ self.weight.mT) * self.gates(x @ self.directions.mT)).sum(-1)

    def gates(self, u: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
        """G_i at pre-activations u_i = <w_i, x>."""
        up, down = u - self.bias, -u - self.bias
        if not self.smooth:
            return (up >= 0).to(u) + self.sign * (down >= 0).to(u)
        ndtr = torch.special.ndtr
        return ndtr(up / self.sigma) + self.sign * ndtr(down / self.sigma)

    def input_gradient(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """sum_i G_i v_i + sum_i <v_i, x> G_i'(u_i) w_i; indicators have no second part."""
        u = x @ self.directions.mT
        kept = self.gates(u) @ self.weight
        if not self.smooth:
            return kept
        slope = self._density(u - self.bias) - self.sign * self._density(-u - self.bias)
        return kept + ((x @ self.weight.mT) * slope) @ self.directions

    def _density(self, v: Tensor) -> Tensor:
        """That of rho."""
        return torch.exp(-((v / self.sigma) ** 2) / 2) / (self.sigma * sqrt(2 * pi))
