"""One step of gradient descent on two-layer networks, written out: no autograd."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..losses import PerExample, value_and_slope
from .gram import Layers, Score


@dataclass(frozen=True)
class Step:
    """One step at attacked inputs: the gradient in W is `coefficients` times X~."""

    weight: Float[Tensor, "R m k"]
    attacked: Float[Tensor, "R n k"]
    z: Float[Tensor, "R n m"]
    """W x~, without the bias."""
    phi: Float[Tensor, "R n m"]
    pull: Float[Tensor, "R n m"]
    """The derivative of the mean loss in each preactivation."""
    loss: Float[Tensor, "R n"]
    slope: Float[Tensor, "R n"]
    """The derivative of the mean loss in each output."""
    scale: float
    """What f has before the sum over the units."""

    @classmethod
    def at(
        cls,
        net: Layers,
        attacked: Float[Tensor, "R n k"],
        z: Float[Tensor, "R n m"],
        f: Float[Tensor, "R n"],
        score: Score,
    ) -> "Step":
        """From the preactivations z, bias included, and outputs f at the attacked inputs."""
        loss, slope = score(f)
        slope = slope / z.shape[1]
        return cls(
            weight=net.weight,
            attacked=attacked,
            z=z if net.bias is None else z - net.bias,
            phi=net.activation.phi(z),
            pull=net.activation.dphi(z) * net.top * slope[:, :, None],
            loss=loss,
            slope=slope,
            scale=net.scale,
        )

    @property
    def coefficients(self) -> Float[Tensor, "R m n"]:
        """The gradient in W is these times the attacked inputs."""
        return self.pull.mT

    def gradient(self, name: str) -> Tensor:
        """Of the mean loss in "weight", "bias", "top" or "top_bias"."""
        if name == "weight":
            return torch.bmm(self.coefficients, self.attacked)
        if name == "bias":
            return self.pull.sum(1)
        if name == "top":
            return self.scale * torch.bmm(self.slope[:, None], self.phi)[:, 0]
        return self.slope.sum(1)


def score_of(loss: PerExample, y: Float[Tensor, " rows"]) -> Score:
    """A loss with its labels, as a function of f (R, n) that gives the loss and its derivative."""

    def score(f: Tensor) -> tuple[Tensor, Tensor]:
        value, slope = value_and_slope(loss, f.detach().flatten(), y)
        return value.reshape(f.shape), slope.reshape(f.shape)

    return score


def trained(model: object) -> list[str]:
    """The names of the parameters that require a gradient."""
    parameters = model.named_parameters() if isinstance(model, nn.Module) else ()
    return [name for name, value in parameters if value.requires_grad]
