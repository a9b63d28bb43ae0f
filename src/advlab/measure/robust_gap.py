"""The robust generalisation gap: how much worse the worst case is on fresh than on training data.

L_adv(test) - L_adv(train), of the loss (CGRO paper, Theorem E.1 and Figure 3 right) and of the
error (Figure 1).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..attacks import Attack
from ..certify import Certificate
from ..core.randomness import Rng
from ..losses import PerExample
from ..threats import Threat
from ._parts.batches import Examples, randomness
from .loss_change import CHEAP, LossChange, loss_change

Bracket = tuple[float, float]


@dataclass(frozen=True)
class RobustGap:
    """Both halves at one radius; the gap of what attacks found, and a bracket of the true gap."""

    train: LossChange
    test: LossChange

    @property
    def loss_gap(self) -> float:
        """Mean worst loss found, test less train.

        A difference of two lower bounds is no bound itself: see `loss_bracket`.
        """
        return self._loss("test")[0] - self._loss("train")[0]

    @property
    def error_gap(self) -> float:
        """Share of rows for which an error was found, test less train."""
        return self._error("test")[0] - self._error("train")[0]

    @property
    def loss_bracket(self) -> Bracket | None:
        """What the gap of worst losses of these rows is proved to lie between."""
        return _difference(self._loss("test"), self._loss("train"))

    @property
    def error_bracket(self) -> Bracket | None:
        """What the gap of robust errors of these rows is proved to lie between."""
        return _difference(self._error("test"), self._error("train"))

    def _loss(self, half: str) -> tuple[float, float | None]:
        one: LossChange = getattr(self, half)
        base = float(one.clean.mean())
        return base + float(one.low.mean()), _plus(base, one.high)

    def _error(self, half: str) -> tuple[float, float | None]:
        one: LossChange = getattr(self, half)
        proved = None if one.certified is None else ~one.certified
        return float(one.broken.double().mean()), _plus(0.0, proved)


def _plus(base: float, values: Tensor | None) -> float | None:
    return None if values is None else base + float(values.double().mean())


def _difference(
    one: tuple[float, float | None], other: tuple[float, float | None]
) -> Bracket | None:
    if one[1] is None or other[1] is None:
        return None
    return one[0] - other[1], one[1] - other[0]


def robust_gap(
    model: Callable[[Tensor], Any],
    train: Examples,
    test: Examples,
    ball: Threat,
    *,
    loss: str | PerExample = "cross_entropy",
    attack: Attack | None = None,
    certificates: Sequence[Certificate] = CHEAP,
    batch: int | None = None,
    rng: Rng | int | None = None,
) -> RobustGap:
    """The gap of the worst loss and of the robust error between test and training data.

    Args:
        model: the network, judged in eval mode and left as it was.
        train: inputs and labels that it was trained on; some of them are enough.
        test: inputs and labels that it was not trained on.
        ball: the threat set, the same for both.
        loss: as in `loss_change`.
        attack: as in `loss_change`, the same for both halves.
        certificates: what the brackets' other ends come from; () for none.
        batch: rows at a time; all at once if left out.
        rng: where random starts come from; a whole number is a seed.

    Example:
        from advlab.measure.robust_gap import robust_gap
        from advlab.threats import Ball
        gap = robust_gap(model, (x, y), (x_test, y_test), Ball("linf", 8 / 255, box=(0, 1)))
        gap.loss_gap, gap.error_gap, gap.error_bracket
    """
    rng = randomness(rng, "robust_gap")
    settings: dict[str, Any] = {
        "loss": loss, "attack": attack, "certificates": certificates, "batch": batch, "rng": rng,
    }  # fmt: skip
    return RobustGap(*(loss_change(model, *one, ball, **settings) for one in (train, test)))
