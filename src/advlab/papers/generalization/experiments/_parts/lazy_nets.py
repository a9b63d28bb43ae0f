"""Networks of repeated neurons: their activations, and second layers of few values."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from .....models.activations import ACTIVATIONS, SHAPES, Activation
from ...measures.expansion_terms import straight
from ...reductions import RepeatedNeurons

TOPS: dict[str, tuple[float, ...]] = {"positive": (0.5, 1.0), "signed": (-1.0, -0.5, 0.5, 1.0)}
"""The different weights of the second layer, each taken equally often."""
SQUARE = 0.625
"""|a|^2/h, of both."""
PHI: dict[str, Activation] = {"gelu": SHAPES["gelu"](), **ACTIVATIONS}
"""By name. phi'(0) of "relu" is 1/8, half of the slopes of "linear" and "sigmoid"."""


def from_zero(
    like: Tensor, top: Sequence[float], width: int, activation: Activation
) -> RepeatedNeurons:
    """Networks at zero, one for each sample.

    Args:
        like: the inputs (R, n, d).
        top: the different weights of the second layer.
        width: h.
        activation: phi.
    """
    start = torch.zeros(len(like), len(top), like.shape[2], dtype=like.dtype)
    return RepeatedNeurons(start, torch.tensor(top, dtype=like.dtype), width, activation)


def beyond_linear(
    net: RepeatedNeurons,
    x: Float[Tensor, "points d"],
    y: Float[Tensor, " points"],
    eps: float,
    xi: float,
) -> float:
    """How far the mean loss of one network is above that of its linear part, each under its own
    surrogate attack: with the closed form of the latter's risk, a risk that varies little.

    Args:
        net: one network.
        x, y: fresh points and their answers.
        eps, xi: of the attack.
    """
    line = replace(net, activation=straight(net.activation.slope))
    bent, flat = (
        one.values(x[None] + one.attack(x[None], y[None], eps, xi))[0][0] - y for one in (net, line)
    )
    return float((bent.square() - flat.square()).mean())
