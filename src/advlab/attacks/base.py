"""The interface of every attack: a map into the threat set, as a rule to the worst point seen."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..core import inputs
from ..core.autocast import outside_autocast
from ..core.config import ExactConfig
from ..core.display import html_table
from ..core.errors import AdvlabError
from ..core.files import replacing
from ..core.inputs import Given, TensorLike
from ..core.randomness import Rng
from ..losses import ModelLoss, evaluating
from ..threats import Threat
from ..threats.base import per_example
from ._engine.channels_last import relaid

Loss = Callable[[Tensor], Tensor]
"""Inputs of shape (batch, ...) to one loss per example, shape (batch,).

A loss may bring a method `value_and_gradient(x)`; all others are left to autograd."""


@dataclass(frozen=True)
class Attacked:
    """The worst inputs that an attack found, and their losses, one row per example.

    `broken` says which rows a classifier gets wrong there; attacks on a loss, which know no
    classes, leave it None.
    """

    x: Float[Tensor, "batch *shape"]
    loss: Float[Tensor, " batch"]
    broken: Bool[Tensor, " batch"] | None = None

    def save(self, path: Path | str, **more: Tensor) -> Path:
        """Write an .npz file with x, loss and, where it is known, broken; whole or not at all.

        Args:
            path: where; `numpy.load(path)["x"]` reads it back.
            more: other tensors to keep in it by name, such as labels, `y=y`.
        """
        place = inputs.path("path", path)
        arrays = {"x": self.x, "loss": self.loss, **more}
        arrays |= {} if self.broken is None else {"broken": self.broken}
        try:
            with replacing(place) as part, part.open("wb") as file:
                np.savez(file, allow_pickle=False, **{k: _array(one) for k, one in arrays.items()})
        except OSError as error:
            raise AdvlabError(f"{place} takes a file", error.strerror or error) from None
        return place

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows = {"examples": len(self.x), "shape of one": tuple(self.x.shape[1:])}
        if self.broken is not None and len(self.x):
            share = float(self.broken.double().mean())
            rows["broken"] = f"{int(self.broken.sum())}, {share:.4f} (a lower bound)"
        if len(self.x):
            rows["largest loss"] = f"{float(self.loss.max()):.4g}"
        return html_table("Attacked", rows)


class Attack(ExactConfig):
    """A way to search a threat set for inputs of high loss. A new attack writes `search` only.

    Example:
        >>> from advlab.attacks import Attack
        >>> class RandomSearch(Attack):
        ...     tries: int = 100
        ...
        ...     def search(self, best, threat, rng):
        ...         for _ in range(self.tries):
        ...             best.value(threat.sample(best.x, rng=rng))
    """

    ascends: ClassVar[bool] = True
    """Whether it looks for high loss. If not it is only a map into the set, which is all that the
    convergence theorems ask of an attack, and its points may cost less than the clean ones."""
    uses_gradient: ClassVar[bool] = True
    """Whether it needs gradients; if not it works on models that let none through."""
    settles: ClassVar[bool] = False
    """Whether it ends with `best.settle` in any case: what it saw before need not be remembered."""

    def __call__(
        self, loss: Given[Loss], x: Given[TensorLike], ball: Given[Threat], *, rng: Given[Rng | int]
    ) -> Attacked:
        """The worst point seen around each row of x, never below the clean loss.

        Args:
            loss: Maps inputs to one value per example, such as `ModelLoss(model, y, margin)`.
            x: The clean inputs, one row per example, of any shape; arrays and lists are taken too.
            ball: The threat set around each input.
            rng: One generator, or one per replicate when the rows are a stack of replicates; a
                whole number is a seed.

        Returns:
            The inputs found, all in the threat set, and their losses. A loss that is not a number
            somewhere in the set is the worst there is: it is returned as infinity.
        """
        loss, x, rng = checked_call(loss, x, ball, rng)
        with in_full_precision(loss) as loss, explained(best := BestSoFar(loss, x)):
            if ball.radius > 0:
                found = self._searched(best, ball, rng)
                if found is not best:  # what a faster form of the loss found is judged as given
                    (best.settle if found.settled else best.value)(found.points)
                    best.forwards += found.forwards
                    best.backwards += found.backwards
            self._check_inside(best.points, best.x, ball)
            return best.worst

    def perturb(
        self, loss: Given[Loss], x: Given[TensorLike], ball: Given[Threat], *, rng: Given[Rng | int]
    ) -> Tensor:
        """The inputs that a call gives, without the work for their losses: what training asks for.

        Where the search used a faster form of the loss, that decides which point is the worst: it
        is the same up to rounding.

        Args:
            loss, x, ball, rng: as in a call.

        Example:
            from advlab.attacks import PGD
            moved = PGD(steps=10)(loss, x, ball, rng=0).x
            moved = PGD(steps=10).perturb(loss, x, ball, rng=0)  # the same for less
        """
        if type(self).__call__ is not Attack.__call__:  # its own way to be called
            return self(loss, x, ball, rng=rng).x
        loss, x, rng = checked_call(loss, x, ball, rng)
        if ball.radius == 0:
            return x
        with in_full_precision(loss) as loss, explained(best := BestSoFar(loss, x)):
            points = self._searched(best, ball, rng, remembers=not self.settles).points
            self._check_inside(points, x, ball)
            return points

    def _searched(
        self, best: "BestSoFar", ball: Threat, rng: Rng, *, remembers: bool = True
    ) -> "BestSoFar":
        """The account of a search, by the loss itself or by a faster form of it."""
        faster = relaid(best.loss, best.x)
        found = best if faster is best.loss else BestSoFar(faster, best.x)
        found.remembers = remembers
        # Once here, not at every call of the model: it has many modules to set.
        with evaluating(loss.model if isinstance(loss := found.loss, ModelLoss) else None):
            self.search(found, ball, rng)
        return found

    def _check_inside(self, found: Tensor, x: Tensor, ball: Threat) -> None:
        outside = ~ball.contains(found, x)
        if bool(outside.any()):
            raise AdvlabError(
                f"{type(self).__name__} must return points of its threat set, {ball!r}",
                f"{int(outside.sum())} of {len(x)} rows outside, the first is row "
                f"{int(outside.nonzero()[0])}",
                "bring points back with threat.project(point, best.x)",
            )

    @abstractmethod
    def search(self, best: "BestSoFar", threat: Threat, rng: Rng) -> None:
        """Evaluate points of the threat set with `best.value` and `best.gradient`.

        Args:
            best: Knows the clean inputs `best.x` and remembers the worst point of each row among
                all that are evaluated: nothing is returned.
            threat: The set around each input; it owns all geometry.
            rng: One generator, or one per replicate.
        """


class BestSoFar:
    """Evaluates points for an attack and remembers the worst of each row.

    Args:
        loss: Maps inputs to one value per example.
        x: The clean inputs.

    `forwards` and `backwards` count the rows that went through the loss, and back; `settled` says
    that the answer stands whatever its loss. Where `remembers` is False only that answer is kept.
    """

    def __init__(self, loss: Loss, x: Tensor):
        self.loss, self.x = loss, x
        self.forwards = self.backwards = 0
        self.settled, self.remembers = False, True
        self._clean: tuple[Tensor, Tensor] | None = None
        self._worst: Attacked | None = None
        self._answer: Tensor | None = None
        self._clean_noted = False

    @property
    def worst(self) -> Attacked:
        """The worst point of each row, the clean inputs included; or the one that was settled."""
        self.remembers = True
        if self._answer is not None:
            answer, self._answer = self._answer, None
            self.value(answer)
        self.note_clean()
        return self._worst  # type: ignore[return-value]

    @property
    def points(self) -> Float[Tensor, "batch *shape"]:
        """The inputs of `worst`; of those that were settled the losses are not computed."""
        return self.worst.x if self._answer is None else self._answer

    def value(self, point: Tensor) -> Float[Tensor, " batch"]:
        """The loss of each row at a point of the threat set, remembered."""
        with torch.no_grad():
            own = isinstance(self.loss, ModelLoss)
            value = self.loss(point) if own else inputs.call(self.loss, point)
        self.forwards += len(point)
        self.note(point, value)
        return value

    def value_and_gradient(
        self, point: Tensor
    ) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch *shape"]]:
        """The loss of each row and its gradient in that row's input; the point is remembered.

        At the clean inputs both are computed once, whoever asks.
        """
        clean = point is self.x
        if clean and self._clean is not None:
            return self._clean
        value, grad = value_and_gradient(self.loss, point)
        self.forwards += len(point)
        self.backwards += len(point)
        self.note(point, value)
        if clean:
            self._clean = value, grad
        return value, grad

    def gradient(self, point: Tensor) -> Float[Tensor, "batch *shape"]:
        """The gradient of each row's loss in its input; the point itself is remembered."""
        return self.value_and_gradient(point)[1]

    @property
    def clean_gradient(self) -> Float[Tensor, "batch *shape"]:
        """The gradient at the clean inputs."""
        return self.gradient(self.x)

    def note(self, point: Tensor, value: Given[Tensor]) -> None:
        """Remember points of the set whose losses are known already; NaN is worse than any."""
        if getattr(value, "shape", None) != self.x.shape[:1]:
            self.checked(value)
        if not self.remembers:
            return
        self._clean_noted = self._clean_noted or point is self.x
        point = point.detach()
        if self._worst is None:
            self._worst = Attacked(point, _judged(point, value))
            return
        worse = ~(value <= self._worst.loss)
        if worse.is_cpu and not bool(worse.any()):
            return
        if not value.is_cpu or bool(value.isnan().any()):
            value = _judged(point, value)
            worse = value > self._worst.loss
        rows = worse.reshape(-1, *[1] * (point.ndim - 1))
        self._worst = Attacked(
            torch.where(rows, point, self._worst.x), torch.where(worse, value, self._worst.loss)
        )

    def note_clean(self) -> None:
        """Evaluate the clean inputs, unless they are known already: no attack ends below them."""
        if not self._clean_noted:
            self.value(self.x)

    def settle(self, point: Tensor) -> None:
        """Answer with this point of the set whatever its loss: for maps that do not ascend."""
        self._worst, self._answer = None, point.detach()
        self._clean_noted = self.settled = True  # and clean inputs are not asked for

    def drop_broken(self) -> Int[Tensor, " kept"] | None:
        """Which rows are left after the broken ones were dropped; None where all stay, as here."""
        return None

    def nested(self, *, remembers: bool = True) -> "BestSoFar":
        """For an attack inside an attack: it shares what is known of the clean inputs.

        Args:
            remembers: Whether the inner attack asks for the worst point that it sees.
        """
        inner = BestSoFar(self.loss, self.x)
        inner._clean, inner.remembers = self._clean, remembers
        if remembers:
            inner._worst, inner._clean_noted = self._worst, self._clean_noted
            if self._clean is not None and not self._clean_noted:
                inner.note(self.x, self._clean[0])
        return inner

    def part(self, rows: Int[Tensor, " rows"]) -> "BestSoFar":
        """For some of the rows of a ModelLoss, with what is known of them."""
        some = BestSoFar(self._loss_of(rows), self.x[rows])
        some._clean_noted = self._clean_noted
        if self._worst is not None:
            some._worst = Attacked(self._worst.x[rows], self._worst.loss[rows])
        return some

    def join(self, rows: Int[Tensor, " rows"], part: "BestSoFar") -> None:
        """Take over what was found for these rows by a `part`, and its work."""
        self.note_clean()
        worst, found = self.worst, part.worst
        x, loss = worst.x.clone(), worst.loss.clone()
        x[rows], loss[rows] = found.x, found.loss
        self._worst = Attacked(x, loss)
        self.forwards += part.forwards
        self.backwards += part.backwards

    def _loss_of(self, rows: Int[Tensor, " rows"]) -> ModelLoss:
        if not isinstance(self.loss, ModelLoss):
            raise AdvlabError("a ModelLoss, of which rows can be taken", type(self.loss).__name__)
        return self.loss.rows(rows)

    def checked(self, value: Given[Tensor]) -> Tensor:
        """The values, if there is one per example."""
        inputs.instance("a loss that gives a tensor, one value per example", value, Tensor, "")
        if value.shape != self.x.shape[:1]:
            raise AdvlabError(
                f"the loss must give one value per example, shape {tuple(self.x.shape[:1])}",
                f"shape {tuple(value.shape)}",
                "do not average over the batch",
            )
        return value


def checked_call(
    loss: Given[Loss], x: Given[TensorLike], ball: Given[Threat], rng: Given[Rng | int]
) -> tuple[Loss, Tensor, Rng]:
    """What an attack is called with, in the types that it works on, or one line of refusal.

    Args:
        loss: What to climb.
        x: The clean inputs: a tensor, an array or a list.
        ball: The threat set.
        rng: Generators, or whole numbers as seeds.
    """
    if not callable(loss):
        advice = "for example ModelLoss(model, y, cross_entropy)"
        raise AdvlabError("a loss, a function of inputs", f"{loss!r:.60}", advice)
    check_threat(ball)
    x = inputs.inputs(x, getattr(loss, "model", None)).detach()
    if x.ndim < 2:
        raise AdvlabError("inputs of shape (examples, features...)", tuple(x.shape))
    if isinstance(loss, ModelLoss) and loss.y.shape[:1] != x.shape[:1]:
        raise AdvlabError(
            f"one label per input, {len(x)} of them", f"labels of shape {tuple(loss.y.shape)}"
        )
    ball.check_center(x)
    return loss, x, inputs.randomness(rng)


def check_threat(ball: object) -> None:
    """Refuse what is no threat set, such as a number."""
    inputs.instance("ball as a threat set", ball, Threat, 'for example Ball("linf", 0.1)')


@contextmanager
def explained(best: "BestSoFar") -> Iterator[None]:
    """Tell a loss that cannot take the inputs, in one line, from a mistake elsewhere."""
    try:
        yield
    except AdvlabError:
        raise
    except inputs.TROUBLES:
        model = getattr(best.loss, "model", None)
        inputs.check_weights(model)
        try:
            value_and_gradient(best.loss, best.x)
        except AdvlabError:
            raise
        except inputs.TROUBLES as cause:
            raise AdvlabError(
                f"a loss of inputs of shape {tuple(best.x.shape)} and {best.x.dtype}",
                inputs.whole_line(cause),
            ) from cause
        raise


@contextmanager
def in_full_precision(loss: Loss) -> Iterator[Loss]:
    """Autocast, where it is on, for the loss alone: points keep to the threat set in full."""
    own = isinstance(loss, ModelLoss)
    with outside_autocast(loss.model if own else loss) as inner:
        if not own:
            yield inner
        else:
            yield loss if inner is loss.model else loss.under(inner)


def _array(values: Tensor) -> np.ndarray:
    values = values.detach().cpu()
    # numpy has no bfloat16.
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


def _judged(point: Tensor, value: Tensor) -> Tensor:
    """Values that compare: not a number is the worst, except where the point is none itself."""
    nan = value.isnan()
    if nan.is_cpu and not bool(nan.any()):
        return value
    astray = ~torch.isfinite(point).flatten(1).all(1)
    return value.masked_fill(nan, float("inf")).masked_fill(astray, float("-inf"))


def value_and_gradient(loss: Loss, point: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's loss and its gradient in that row's input, by the loss itself or by autograd.

    Args:
        loss: Maps inputs to one value per example. Its own `value_and_gradient` is asked if it has
            one.
        point: Where: one row per example.
    """
    own = getattr(loss, "value_and_gradient", None)
    if own is not None:
        return own(point.detach())
    with torch.enable_grad():
        leaf = point.detach().requires_grad_()
        value = loss(leaf) if isinstance(loss, ModelLoss) else inputs.call(loss, leaf)
        if not isinstance(value, Tensor):
            came = type(value).__name__
            raise AdvlabError("a loss that gives a tensor, one value per example", came)
        if not value.requires_grad:
            return value, torch.zeros_like(leaf)
        (grad,) = torch.autograd.grad(value.sum(), leaf, materialize_grads=True)
    return value.detach(), grad


def input_gradient(value: Tensor, leaf: Tensor, retain: bool = False) -> Tensor:
    """The gradient of sum(value) in the leaf, zero where the model lets none through."""
    if not value.requires_grad:
        return torch.zeros_like(leaf)
    return torch.autograd.grad(value.sum(), leaf, retain_graph=retain, materialize_grads=True)[0]


@dataclass(frozen=True)
class Signed:
    """A loss times +-1 per row: an attack on it climbs or descends the loss row by row."""

    loss: Loss
    sign: Float[Tensor, " batch"]

    def __call__(self, x: Tensor) -> Tensor:
        return self.sign * self.loss(x)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, grad = value_and_gradient(self.loss, x)
        return self.sign * value, per_example(self.sign, grad) * grad
