"""Activations as layers of image networks, by name; one has the gradient of another function."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..core.checks import length
from ..core.nearest import unknown


class ReLUSoftplus(nn.Module):
    """max(z, 0) with the gradient of Softplus: sigmoid(beta z) (generalization, section 5.2).

    Its values are those of ReLU to the last bit, so errors and certificates are those of a ReLU
    network: certificates read a ReLU here. Only gradients differ, in training and in attacks; they
    change continuously with the input, as the theory of the surrogate attack asks.

    Args:
        beta: the sharpness of Softplus, log(1 + exp(beta z)) / beta. The paper has 10.

    Example:
        from advlab.models import WideResNet
        net = WideResNet(depth=34, widen=1, activation="relu_softplus")
    """

    def __init__(self, beta: float = 10.0):
        super().__init__()
        self.beta = length("beta", beta)

    def forward(self, z: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return _ReLUSoftplus.apply(z, self.beta)  # type: ignore[return-value]

    def extra_repr(self) -> str:
        return f"beta={self.beta:g}"


class _ReLUSoftplus(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, beta: float) -> Tensor:  # type: ignore[override]
        return F.relu(z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.beta = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (z,) = ctx.saved_tensors
        return grad * torch.sigmoid(ctx.beta * z), None


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "relu_softplus": ReLUSoftplus,
    "leaky_relu": lambda: nn.LeakyReLU(0.1),
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softplus": lambda: nn.Softplus(beta=10.0),
}
"""Layers by name: a stored model says which one it has, and nothing else is built for it."""


def activation_layer(name: str) -> nn.Module:
    """A new layer.

    Args:
        name: one of `LAYERS`.
    """
    if name not in LAYERS:
        raise unknown("an activation", name, LAYERS)
    return LAYERS[name]()
