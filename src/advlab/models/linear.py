"""The linear model."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Linear(nn.Module):
    """f(x) = theta'x. Every coordinate trains; there is no intercept."""

    def __init__(self, theta: Float[Tensor, " d"]):
        super().__init__()
        self.theta = nn.Parameter(theta.detach().clone())

    @classmethod
    def zero(cls, d: int, dtype: torch.dtype = torch.float64) -> "Linear":
        return cls(torch.zeros(d, dtype=dtype))

    def forward(self, x: Float[Tensor, "batch d"]) -> Float[Tensor, " batch"]:
        return x @ self.theta
