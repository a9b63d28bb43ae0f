"""The interface of every attack: a map into the threat set, as a rule to the worst point seen."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..core.config import Config
from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..losses import ModelLoss
from ..threats import Threat
from ..threats.base import per_example

Loss = Callable[[Tensor], Tensor]
"""Inputs of shape (batch, ...) to one loss an example, shape (batch,)."""


@runtime_checkable
class Differentiated(Protocol):
    """A loss that knows its own gradient; all others are left to autograd."""

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True)
class Attacked:
    """The worst inputs an attack found, and what they cost."""

    x: Float[Tensor, "batch *shape"]
    loss: Float[Tensor, " batch"]


class Attack(Config):
    """A way to search a threat set for inputs of high loss. A new attack writes `search` only."""

    ascends: ClassVar[bool] = True
    """Whether it looks for high loss. If not it is only a map into the set, which is all that the
    convergence theorems ask of an attack, and its points may cost less than the clean ones."""

    def __call__(self, loss: Loss, x: Tensor, ball: Threat, *, rng: Rng) -> Attacked:
        """The worst point seen around each row of x, never below the clean loss.

        `rng` is one generator, or one a replicate when the rows are a stack of replicates.
        """
        ball.check_center(x)
        scout = Scout(loss, x.detach())
        if ball.radius > 0:
            self.search(scout, ball, rng)
        self._check_inside(scout.worst.x, scout.x, ball)
        return scout.worst

    def _check_inside(self, found: Tensor, x: Tensor, ball: Threat) -> None:
        outside = ~ball.contains(found, x)
        if bool(outside.any()):
            raise AdvlabError(
                f"{type(self).__name__} must return points of its threat set, {ball!r}",
                f"{int(outside.sum())} of {len(x)} rows outside, the first is row "
                f"{int(outside.nonzero()[0])}",
                "bring points back with threat.project(point, scout.x)",
            )

    @abstractmethod
    def search(self, scout: "Scout", threat: Threat, rng: Rng) -> None:
        """Look around `scout.x` with `scout.value` and `scout.gradient`; the scout remembers."""


class Scout:
    """Evaluates points for an attack, remembers the worst of each row, and counts rows it saw."""

    def __init__(self, loss: Loss, x: Tensor):
        self.loss, self.x = loss, x
        self.forwards = self.backwards = 0
        self._clean_gradient: Tensor | None = None
        self._worst: Attacked | None = None
        self._clean_noted = False

    @property
    def worst(self) -> Attacked:
        self.start()
        return self._worst  # type: ignore[return-value]

    def value(self, point: Tensor) -> Tensor:
        """The loss at a point of the threat set, noted."""
        with torch.no_grad():
            value = self.checked(self.loss(point))
        self.forwards += len(point)
        self.note(point, value)
        return value

    def gradient(self, point: Tensor) -> Tensor:
        """The gradient of each row's loss in its input; the point itself is noted on the way."""
        value, grad = value_and_gradient(self.loss, point.detach())
        self.forwards, self.backwards = self.forwards + len(point), self.backwards + len(point)
        self.note(point, self.checked(value))
        return grad

    def settle(self, point: Tensor) -> None:
        """Answer with this point of the set whatever it costs: for maps that do not ascend."""
        self._worst = None
        self.value(point)
        self._clean_noted = True  # and is not asked for

    def start(self) -> None:
        """Note the clean inputs, unless they are known already: no attack ends below them."""
        if not self._clean_noted:
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
        inner._clean_noted = self._clean_noted
        return inner

    def part(self, index: Int[Tensor, " rows"]) -> "Scout":
        """A scout for some of the rows of a ModelLoss, who knows what is known of them."""
        if not isinstance(self.loss, ModelLoss):
            raise AdvlabError("a ModelLoss, of which rows can be taken", type(self.loss).__name__)
        some = Scout(self.loss.rows(index), self.x[index])
        some._clean_noted = self._clean_noted
        if self._worst is not None:
            some._worst = Attacked(self._worst.x[index], self._worst.loss[index])
        return some

    def join(self, index: Int[Tensor, " rows"], part: "Scout") -> None:
        """Take over what a scout of some of the rows has found, and its work."""
        self.start()
        worst, found = self.worst, part.worst
        x, loss = worst.x.clone(), worst.loss.clone()
        x[index], loss[index] = found.x, found.loss
        self._worst = Attacked(x, loss)
        self.forwards += part.forwards
        self.backwards += part.backwards

    def note(self, point: Tensor, value: Tensor) -> None:
        """Remember points of the set whose losses are known already."""
        self._clean_noted = self._clean_noted or point is self.x
        point = point.detach()
        if self._worst is None:
            self._worst = Attacked(point, value)
            return
        worse = value > self._worst.loss
        if not bool(worse.any()):
            return
        self._worst = Attacked(
            torch.where(per_example(worse, point), point, self._worst.x),
            torch.where(worse, value, self._worst.loss),
        )

    def checked(self, value: Tensor) -> Tensor:
        """The values, if there is one an example."""
        if value.shape != self.x.shape[:1]:
            raise AdvlabError(
                f"the loss must give one value an example, shape {tuple(self.x.shape[:1])}",
                f"shape {tuple(value.shape)}",
                "do not average over the batch",
            )
        return value


def value_and_gradient(loss: Loss, point: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's loss and its gradient in that row's input, by the loss itself or by autograd."""
    if isinstance(loss, Differentiated):
        return loss.value_and_gradient(point)
    with torch.enable_grad():
        leaf = point.detach().requires_grad_()
        value = loss(leaf)
        grad = input_gradient(value, leaf)
    return value.detach(), grad


def input_gradient(value: Tensor, leaf: Tensor, retain: bool = False) -> Tensor:
    """The gradient of sum(value), zero where the model lets none through."""
    if not value.requires_grad:
        return torch.zeros_like(leaf)
    return torch.autograd.grad(value.sum(), leaf, retain_graph=retain, materialize_grads=True)[0]


@dataclass(frozen=True)
class Signed:
    """A loss times +-1 for each row: an attack on it climbs or descends the loss row by row."""

    loss: Loss
    sign: Float[Tensor, " batch"]

    def __call__(self, x: Tensor) -> Tensor:
        return self.sign * self.loss(x)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, grad = value_and_gradient(self.loss, x)
        return self.sign * value, per_example(self.sign, grad) * grad
