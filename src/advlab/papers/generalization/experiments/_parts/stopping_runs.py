"""Networks in high dimension, trained from zero until Theorems 5 to 7 stop them and beyond."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ...reductions import RepeatedNeurons
from .lazy_nets import PHI, SQUARE, TOPS, from_zero


@dataclass(frozen=True)
class StoppingPath:
    """Of each iteration and replicate; `weights` are those of every iteration."""

    residual: Tensor
    outputs: Tensor
    theta: Tensor
    gap: Tensor
    """|g(eps) - g(0)|/|g(0)| of the gradients."""
    loss: Tensor
    weights: list[RepeatedNeurons]


def train(
    name: str, width: int, x: Tensor, y: Tensor, eps: float, xi: float, eta: float
) -> StoppingPath:
    """Algorithm 1 from zero for 4 n iterations; T is near n (log log n)/2.

    Args:
        name: of the network in `lazy_nets.PHI`; ReLU has its step behind it.
        width: h.
        x, y: the samples (R, n, d) and (R, n).
        eps, xi: of the surrogate attack.
        eta: the step of the linear model.
    """
    phi = PHI[name.split()[0]]
    net = from_zero(x, TOPS["signed"], width, phi)
    # phi'(0) of a ReLU is 1/8 here, half of the other slopes: four times the step.
    lr = eta / (phi.slope**2 * SQUARE) / (2 if name == "relu twice" else 1)
    rows: dict[str, list[Tensor]] = {name: [] for name in ("residual", "outputs", "theta")}
    rows |= {"gap": [], "loss": []}
    weights = []
    for _ in range(4 * x.shape[1]):
        value = net.values(x)[0]
        plain, attacked = (net.gradient(x, y, size, xi).flatten(1) for size in (0.0, eps))
        moved = x + net.attack(x, y, eps, xi)
        rows["residual"].append((value - y).norm(dim=1))
        rows["outputs"].append(value.norm(dim=1))
        rows["theta"].append(net.linear_part.norm(dim=1))
        rows["gap"].append((attacked - plain).norm(dim=1) / plain.norm(dim=1))
        rows["loss"].append((net.values(moved)[0] - y).square().mean(1))
        weights.append(net)
        net = net.step(x, y, eps, xi, lr)
    return StoppingPath(
        **{key: torch.stack(values) for key, values in rows.items()}, weights=weights
    )


def crossing(residual: Tensor, stop: Tensor, level: float) -> Tensor:
    """T as a real number: where the logarithm of the residual, drawn straight, meets the level."""
    after = stop.clamp(min=1)[None]
    two, one = (residual.gather(0, at)[0].log() for at in (after, after - 1))
    share = (one - math.log(level)) / (one - two)
    return torch.where(stop > 0, after[0] - 1 + share, math.nan)
