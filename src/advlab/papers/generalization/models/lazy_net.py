"""Two-layer networks in the lazy regime: the first layer trains a little, the second not at all."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....core.errors import AdvlabError
from ....models.activations import ACTIVATIONS


class LazyNet(nn.Module):
    """f(x) = sum_j a_j phi(x'theta_j) / sqrt(h); theta trains, a is fixed, no bias."""

    top: Tensor

    def __init__(self, theta: Float[Tensor, "h d"], top: Float[Tensor, " h"], activation: str):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise AdvlabError(f"activation must be one of {', '.join(ACTIVATIONS)}", activation)
        self.theta = nn.Parameter(theta.detach().clone())
        self.register_buffer("top", top.detach().clone())
        self.activation = activation

    @classmethod
    def draw(
        cls,
        d: int,
        width: int,
        activation: str,
        rng: torch.Generator,
        delta: float | None = 0.5,
        dtype: torch.dtype = torch.float64,
    ) -> "LazyNet":
        """a_j uniform on [-1, 1]; theta_j ~ N(0, I / (d h^(1 + delta))): a vanishing start.

        For ReLU the negative a_j are rescaled so that |a_+| = |a_-| (Theorem 4).

        Args:
            d: the dimension of the inputs.
            width: the number h of hidden units.
            activation: a name in `models.ACTIVATIONS`.
            rng: where the draws come from.
            delta: how fast the start vanishes with the width; None starts at zero.
            dtype: of the weights.
        """
        top = 2 * torch.rand(width, generator=rng, dtype=dtype) - 1
        if activation == "relu":
            positive, negative = top.clamp(min=0).norm(), top.clamp(max=0).norm()
            top = torch.where(top < 0, top * positive / negative.clamp(min=1e-12), top)
        theta = torch.randn(width, d, generator=rng, dtype=dtype)
        scale = 0.0 if delta is None else 1 / math.sqrt(d * width ** (1 + delta))
        return cls(scale * theta, top, activation)

    def forward(self, x: Float[Tensor, "batch d"]) -> Float[Tensor, " batch"]:
        hidden = ACTIVATIONS[self.activation].phi(x @ self.theta.T)
        return hidden @ self.top / math.sqrt(len(self.top))

    def linear_part(self) -> Float[Tensor, " d"]:
        """beta with f(x) = beta'x + o(|x|): the linear model this network follows when lazy."""
        slope = ACTIVATIONS[self.activation].slope
        return slope * self.theta.T @ self.top / math.sqrt(len(self.top))
