"""Weaken the signal patch and write the opposite signal into a noise patch."""

from typing import Annotated, ClassVar

import torch
from jaxtyping import Int
from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, model_validator
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..threats import Threat
from .base import Attack, BestSoFar
from .gta import patches, unit

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class FakeSignal(Attack):
    """X[signal] - a delta y w* and X[noise] - b delta y w*, where delta is the threat's radius.

    Against the cubic network of the CGRO paper with y f = alpha^3 U + V this leaves, but for cross
    terms, alpha^3 U ((1-a)^3 - b^3) + V for delta = alpha: least, -0.554 alpha^3 U, at a = 0.40 and
    a^2 + b^2 = 1, the defaults; GTA, which is a = gamma and b = 0, leaves V. A row of inputs is
    read as patches of the length of w*, the label as the sign of the signal.

    Args:
        direction: w*, of length one.
        a, b: The weights of the two moves, a^2 + b^2 at most 1.
        signal: The signal patch of each row; by default the one with the largest |<w*, X[j]>|,
            which on the paper's data is exact.
        noise: How many patches after the signal the fake is, going round.

    Example:
        >>> from advlab.attacks import FakeSignal
        >>> from advlab.losses import ModelLoss, logistic
        >>> from advlab.threats import Ball
        >>> attack = FakeSignal(direction=(1.0, 0.0, 0.0))
        >>> found = attack(ModelLoss(net, y, logistic), x, Ball(norm="l2", radius=1.0), rng=rng)
    """

    ascends: ClassVar[bool] = False
    direction: Annotated[tuple[float, ...], AfterValidator(unit)]
    a: Share = 0.40
    b: Share = 0.9165
    signal: tuple[NonNegativeInt, ...] | None = None
    noise: PositiveInt = 1

    @model_validator(mode="after")
    def _within_budget(self) -> "FakeSignal":
        if self.a**2 + self.b**2 > 1 + 1e-12:
            raise AdvlabError("a^2 + b^2 of at most 1", f"{self.a**2 + self.b**2:.6g}")
        return self

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        w = torch.tensor(self.direction, dtype=best.x.dtype, device=best.x.device)
        point = patches(best.x, len(w)).clone()
        along = point @ w
        rows, signal = torch.arange(len(point)), self._signal(along)
        fake = (signal + self.noise) % point.shape[1]
        if self.b > 0 and bool((fake == signal).any()):
            raise AdvlabError(
                "a patch beside the signal for the fake",
                f"patch {self.noise} after the signal of {point.shape[1]} patches, itself",
            )
        move = threat.radius * along[rows, signal].sign()[:, None] * w
        point[rows, signal] -= self.a * move
        point[rows, fake] -= self.b * move
        best.settle(threat.project(point.reshape(best.x.shape), best.x))

    def _signal(self, along: Tensor) -> Int[Tensor, " batch"]:
        if self.signal is None:
            return along.abs().argmax(1)
        if len(self.signal) != len(along) or max(self.signal) >= along.shape[1]:
            raise AdvlabError(
                f"one signal patch below {along.shape[1]} for each of {len(along)} rows",
                f"{len(self.signal)}, the largest is {max(self.signal, default=0)}",
            )
        return torch.tensor(self.signal, device=along.device)
