"""The geometry-inspired transferable attack: a step to where a surrogate changes its mind."""

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import ConfigDict, PositiveFloat, field_serializer
from torch import Tensor, nn

from ..core.errors import AdvlabError
from ..core.fingerprint import digest
from ..core.randomness import Rng
from ..losses import evaluating
from ..threats import Threat
from ..threats.base import per_example
from .base import Attack, BestSoFar, value_and_gradient


class GTA(Attack):
    """x - gamma g(x) / ||grad g(x)||^norm_power * grad g(x), brought back into the threat set.

    The attack of the CGRO paper, (A) of its section 3.3. It never sees the model under attack,
    unless that is its surrogate. g is any classifier: one output, whose sign is its answer, or
    several, of which g is the lead of the largest over the second. The threat's radius is the
    budget.

    With the norm squared and gamma = 1 this is DeepFool's step, to the nearest point at which g,
    linearised, is undecided, however g is scaled. The paper divides by the norm once: the same
    where ||grad g|| = 1, as with its own surrogate `SignalPatch`, but 2 g then moves twice as far.

    Args:
        surrogate: The classifier g. In settings and their keys it stands as a digest.
        gamma: How far to go, as a fraction of the way to where g is undecided.
        norm_power: 2, or 1 as in the paper.

    Example:
        >>> from advlab.attacks import GTA, SignalPatch
        >>> from advlab.losses import ModelLoss, logistic
        >>> from advlab.threats import Ball
        >>> attack = GTA(surrogate=SignalPatch(direction), gamma=0.8)
        >>> found = attack(ModelLoss(net, y, logistic), x, Ball(norm="l2", radius=1.0), rng=rng)
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    ascends: ClassVar[bool] = False
    surrogate: nn.Module | Callable
    gamma: PositiveFloat = 1.0
    norm_power: Literal[1, 2] = 2

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        with evaluating(self.surrogate):
            g, grad = value_and_gradient(self._decision, best.x)
        square = grad.flatten(1).square().sum(1)
        self._check_slope(square)
        length = square if self.norm_power == 2 else square.sqrt()
        move = per_example(self.gamma * g / length, grad) * grad
        best.settle(threat.project(best.x - move, best.x))

    def _decision(self, x: Tensor) -> Float[Tensor, " batch"]:
        """g: positive on one side of the decision boundary, zero on it."""
        outputs = self.surrogate(x).reshape(len(x), -1)
        if outputs.shape[1] == 1:
            return outputs[:, 0]
        first, second = outputs.topk(2, dim=1).values.unbind(1)
        return first - second

    def _check_slope(self, square: Float[Tensor, " batch"]) -> None:
        flat = (~(square > 0)).nonzero().flatten().tolist()
        if flat:
            shown = ", ".join(map(str, flat[:10])) + (", ..." if len(flat) > 10 else "")
            raise AdvlabError(
                "GTA: the surrogate must have a gradient at every input",
                f"none in {len(flat)} of {len(square)} rows: {shown}",
                "use a surrogate that is not flat there",
            )

    @field_serializer("surrogate")
    def _digest(self, surrogate: object) -> str:
        return digest(surrogate)


class SignalPatch(nn.Module):
    """g(X) = <w*, X[signal]>, the surrogate of the CGRO paper: it knows w* and the signal patch.

    The signal patch is the one with the largest |<w*, X[j]>|: on the paper's data all others are
    orthogonal to w*. A row of inputs is read as patches of the length of w*.

    Args:
        direction: w*, of any length.
    """

    direction: Tensor

    def __init__(self, direction: Float[Tensor, " d"]):
        super().__init__()
        self.register_buffer("direction", direction / direction.norm())

    def forward(self, x: Tensor) -> Float[Tensor, " batch"]:
        along = patches(x, len(self.direction)) @ self.direction.to(x.dtype)
        return along.gather(1, along.abs().argmax(1, keepdim=True))[:, 0]


def patches(x: Tensor, d: int) -> Float[Tensor, "batch P {d}"]:
    """Rows of any shape as patches of length d."""
    if x[0].numel() % d:
        raise AdvlabError(
            f"inputs made of patches of length {d}", f"{x[0].numel()} numbers per row"
        )
    return x.reshape(len(x), -1, d)


def unit(direction: tuple[float, ...]) -> tuple[float, ...]:
    """The direction, if its length is one."""
    length = float(torch.tensor(direction, dtype=torch.float64).norm())
    if abs(length - 1) > 1e-6:
        raise AdvlabError("a signal direction of length one", f"length {length:.6g}")
    return direction
