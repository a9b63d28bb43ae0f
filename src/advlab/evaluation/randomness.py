"""How random a model is: what changes from call to call on the same inputs."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..attacks._engine.random_models import DRAWS, seeded
from ..certify import Smoothed
from ..core.devices import device_of
from ..losses import ModelLoss, margin

FEW = 64
CALLS = 4
ROUNDING = 1e-5
"""Scores that differ by less, as a share of the largest, differ by the order of sums alone."""


@dataclass(frozen=True)
class Randomness:
    """What calls of a random model on the same inputs have in common, and what not."""

    changed: float
    """The share of rows whose label differs between two calls."""
    spread: float
    """The standard deviation of a row's margin over calls, averaged over rows."""
    size: float
    """The mean of |margin|, beside which the spread is small or large."""
    climbing: int = DRAWS
    """Calls that an attack averages at each point; a smoothed classifier averages by itself."""

    def __str__(self) -> str:
        return (
            f"{self.changed:.0%} of labels change from one call to the next, and margins (mean "
            f"size {self.size:.3g}) vary by {self.spread:.2g}"
        )


def randomness(
    model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, seed: int = 0
) -> Randomness | None:
    """How random a model is on some rows, in eval mode; None if calls agree up to rounding.

    Args:
        model: maps inputs to scores.
        x: the inputs, of which some are tried.
        y: their labels.
        seed: of the draws that the model makes from torch's global generators.
    """
    few = torch.linspace(0, len(x) - 1, min(FEW, len(x))).round().long()
    place = device_of(model, x)
    tried, loss = x[few].to(place), ModelLoss(model, y[few].to(place), margin)
    with torch.no_grad(), seeded(x, "randomness", seed):
        first, second = (loss.outputs(tried) for _ in range(2))
        if _same(first, second):
            return None
        outputs = [first, second, *(loss.outputs(tried) for _ in range(CALLS - 2))]
    margins = torch.stack([margin(one, loss.y) for one in outputs]).double()
    labels = torch.stack([_labels(one) for one in outputs])
    return Randomness(
        changed=float((labels[0] != labels[1:]).double().mean()),
        spread=float(margins.std(0).mean()),
        size=float(margins.abs().mean()),
        climbing=1 if isinstance(model, Smoothed) else DRAWS,
    )


def _same(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape:
        return False
    close = (one - two).abs() <= ROUNDING * one.abs().amax()
    return torch.equal(one, two) or bool((close & (_labels(one) == _labels(two))[:, None]).all())


def _labels(outputs: Tensor) -> Tensor:
    single = outputs.ndim == 1 or outputs.shape[1] == 1
    return outputs.flatten().sign() if single else outputs.argmax(1)
