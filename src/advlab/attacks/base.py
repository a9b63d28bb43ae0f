"""The interface of every attack: search a threat set, return the worst point seen."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..config import Config
from ..errors import AdvlabError
from ..randomness import Rng
from ..threats import Threat
from ..threats.base import per_example

Loss = Callable[[Tensor], Tensor]
"""Inputs of shape (batch, ...) to one loss an example, shape (batch,)."""


@dataclass(frozen=True)
class Attacked:
    """The worst inputs an attack found, and what they cost."""

    x: Float[Tensor, "batch *shape"]
    loss: Float[Tensor, " batch"]


class Attack(Config):
    """A way to search a threat set for inputs of high loss. A new attack writes `search` only."""

    def __call__(self, loss: Loss, x: Tensor, ball: Threat, *, rng: Rng) -> Attacked:
        """The worst point seen around each row of x, never below the clean loss.

        `rng` is one generator, or one a replicate when the rows are a stack of replicates.
        """
        ball.check_center(x)
        scout = Scout(loss, x.detach())
        if ball.radius > 0:
            self.search(scout, ball, rng)
        return scout.worst

    @abstractmethod
    def search(self, scout: "Scout", threat: Threat, rng: Rng) -> None:
        """Look around `scout.x` with `scout.value` and `scout.gradient`; the scout remembers."""


class Scout:
    """Evaluates points for an attack, row by row remembers the worst, and counts the work."""

    def __init__(self, loss: Loss, x: Tensor):
        self.loss, self.x = loss, x
        self.forwards = self.backwards = 0
        self._clean_gradient: Tensor | None = None
        self._worst: Attacked | None = None

    @property
    def worst(self) -> Attacked:
        self.start()
        return self._worst  # type: ignore[return-value]

    def value(self, point: Tensor) -> Tensor:
        """The loss at a point of the threat set, noted."""
        with torch.no_grad():
            value = self._checked(self.loss(point))
        self.forwards += 1
        self._note(point, value)
        return value

    def gradient(self, point: Tensor) -> Tensor:
        """The gradient of each row's loss in its input; the point itself is noted on the way."""
        with torch.enable_grad():
            leaf = point.detach().requires_grad_()
            value = self._checked(self.loss(leaf))
            if value.requires_grad:
                (grad,) = torch.autograd.grad(value.sum(), leaf)
            else:
                grad = torch.zeros_like(leaf)
        self.forwards, self.backwards = self.forwards + 1, self.backwards + 1
        self._note(leaf.detach(), value.detach())
        return grad

    def start(self) -> None:
        """Note the clean inputs, unless they are known already: no attack ends below them."""
        if self._worst is None:
            self.value(self.x)

    @property
    def clean_gradient(self) -> Tensor:
        """The gradient at the clean inputs, computed once whoever asks."""
        if self._clean_gradient is None:
            self._clean_gradient = self.gradient(self.x)
        return self._clean_gradient

    def nested(self) -> "Scout":
        """A scout for an attack inside an attack: it shares what is known of the clean inputs."""
        inner = Scout(self.loss, self.x)
        inner._clean_gradient, inner._worst = self._clean_gradient, self._worst
        return inner

    def _note(self, point: Tensor, value: Tensor) -> None:
        if self._worst is None:
            self._worst = Attacked(point, value)
            return
        worse = value > self._worst.loss
        self._worst = Attacked(
            torch.where(per_example(worse, point), point, self._worst.x),
            torch.where(worse, value, self._worst.loss),
        )

    def _checked(self, value: Tensor) -> Tensor:
        if value.shape != self.x.shape[:1]:
            raise AdvlabError(
                f"the loss must give one value an example, shape {tuple(self.x.shape[:1])}",
                f"shape {tuple(value.shape)}",
                "do not average over the batch",
            )
        return value
