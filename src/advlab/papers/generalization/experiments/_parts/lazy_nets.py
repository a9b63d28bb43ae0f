"""Networks of repeated neurons: their activations, and second layers of few values."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .....models.activations import ACTIVATIONS, SHAPES, Activation
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
