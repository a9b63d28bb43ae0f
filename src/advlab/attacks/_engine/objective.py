"""What an attack climbs: the loss it was given, or one that shows the way better."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...core.randomness import Rng
from ...losses import ModelLoss, PerExample, cross_entropy, dlr, logistic, margin, targeted_dlr
from ..base import Loss, Scout, input_gradient, value_and_gradient
from .margins import classifies, rows_may_leave

Climb = Literal["given", "cross_entropy", "dlr", "margin"]
"""The loss the attack was given, or one of the model's outputs. A loss that is no ModelLoss, or one
of real targets, has no outputs to take another from: it is climbed itself."""

MANY: dict[str, PerExample] = {"cross_entropy": cross_entropy, "dlr": dlr, "margin": margin}
SINGLE: dict[str, PerExample] = {"cross_entropy": logistic, "dlr": margin, "margin": margin}


def single(outputs: Tensor) -> bool:
    return outputs.ndim == 1 or outputs.shape[1:] == (1,)


def toward(climb: Climb, outputs: Tensor, y: Tensor, target: Int[Tensor, " batch"]) -> Tensor:
    """How near the target is: a function to climb."""
    if climb == "cross_entropy":
        return -cross_entropy(outputs, target)
    if climb == "dlr":
        return targeted_dlr(outputs, y, target)
    gap = outputs.gather(1, target[:, None]) - outputs.gather(1, y[:, None])
    return gap[:, 0]


def may_leave(loss: Loss, rng: Rng) -> bool:
    """Whether broken rows can leave the batch: one generator must serve any number of rows."""
    return isinstance(rng, torch.Generator) and rows_may_leave(loss, rng)


class Seen(NamedTuple):
    """One look at a point: the loss climbed, the loss given, and the margin where there is one."""

    climbed: Float[Tensor, " batch"]
    given: Float[Tensor, " batch"]
    margin: Float[Tensor, " batch"] | None


class Hill:
    """The loss that an attack climbs around the rows of a scout.

    The model runs once a point: both losses are computed from the same outputs, and the scout notes
    the given one. With `leave` the rows that were seen broken (a positive margin) can be sent home.
    `draws` evaluations are averaged, for models that are random even in eval mode.
    """

    def __init__(
        self,
        scout: Scout,
        climb: Climb = "given",
        *,
        leave: bool = False,
        draws: int = 1,
    ):
        self.home = self.scout = scout
        self.climb: Climb = climb
        self.draws = draws
        self.target: Int[Tensor, " batch"] | None = None
        self.leave = leave
        self.broken = torch.zeros(len(scout.x), dtype=torch.bool, device=scout.x.device)
        self.index = torch.arange(len(scout.x), device=scout.x.device)
        if leave or draws > 1:
            # One draw of the clean inputs, by luck, would beat the mean of many elsewhere.
            self.value(self.center)
            self.stay()

    @property
    def center(self) -> Tensor:
        return self.scout.x

    def aim(self, target: Int[Tensor, " all"] | None) -> None:
        """Climb towards these classes, or away from the label; one for each row of the start."""
        self.target = None if target is None else target[self.index]

    @property
    def plain(self) -> bool:
        """Whether this is the given loss of all rows, no more."""
        return self.climb == "given" and not self.leave and self.draws == 1

    def clean_gradient(self) -> Float[Tensor, "batch *shape"]:
        if self.plain:
            return self.scout.clean_gradient
        return self.value_and_gradient(self.center)[1]

    def value(self, point: Tensor) -> Float[Tensor, " batch"]:
        with torch.no_grad():
            seen = [self._look(point) for _ in range(self.draws)]
        self.scout.forwards += self.draws * len(point)
        return self._noted(point, seen)

    def value_and_gradient(
        self, point: Tensor
    ) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch *shape"]]:
        seen, total = [], torch.zeros(())
        for draw in range(self.draws):
            one, grad = self._slope(point)
            seen.append(one)
            total = grad if draw == 0 else total + grad
        self.scout.forwards += self.draws * len(point)
        self.scout.backwards += self.draws * len(point)
        return self._noted(point, seen), total / self.draws if self.draws > 1 else total

    def stay(self) -> Int[Tensor, " rows"] | None:
        """Send broken rows home; the places of those that stay, or None if all do."""
        if not (self.leave and bool(self.broken.any())):
            return None
        places = (~self.broken).nonzero()[:, 0]
        self.come_home()
        self.index, self.broken = self.index[places], self.broken[places]
        self.target = None if self.target is None else self.target[places]
        self.scout = self.home.part(self.index)
        return places

    def come_home(self) -> None:
        """Tell the scout of all rows what was found since some left."""
        if self.scout is not self.home:
            self.home.join(self.index, self.scout)

    def _slope(self, point: Tensor) -> tuple[Seen, Tensor]:
        loss = self.scout.loss
        if not isinstance(loss, ModelLoss) or self.plain:
            value, grad = value_and_gradient(loss, point)
            return Seen(value, value, None), grad
        with torch.enable_grad():
            leaf = point.detach().requires_grad_()
            seen = self._look(leaf)
            grad = input_gradient(seen.climbed, leaf)
        return Seen(seen.climbed.detach(), seen.given.detach(), seen.margin), grad

    def _look(self, point: Tensor) -> Seen:
        loss = self.scout.loss
        if not isinstance(loss, ModelLoss):
            value = loss(point)
            return Seen(value, value, None)
        outputs = loss.outputs(point)
        if not classifies(loss, outputs):
            value = loss.loss(outputs, loss.y)
            return Seen(value, value, None)
        climbed = self._uphill(loss, outputs)
        with torch.no_grad():
            given = climbed if self.climb == "given" else loss.loss(outputs, loss.y)
            lead = given.detach() if loss.loss is margin else margin(outputs, loss.y)
        return Seen(climbed, given, lead)

    def _uphill(self, loss: ModelLoss, outputs: Tensor) -> Tensor:
        if self.climb == "given":
            return loss.loss(outputs, loss.y)
        if single(outputs):
            return SINGLE[self.climb](outputs, loss.y)
        if self.target is None:
            return MANY[self.climb](outputs, loss.y)
        return toward(self.climb, outputs, loss.y, self.target)

    def _noted(self, point: Tensor, seen: list[Seen]) -> Tensor:
        climbed, given, lead = seen[0] if len(seen) == 1 else _mean(seen)
        self.scout.note(point, self.scout.checked(given))
        if lead is not None:
            self.broken |= lead > 0
        return climbed


def _mean(seen: list[Seen]) -> Seen:
    leads = [one.margin for one in seen if one.margin is not None]
    return Seen(
        torch.stack([one.climbed for one in seen]).mean(0),
        torch.stack([one.given for one in seen]).mean(0),
        torch.stack(leads).mean(0) if leads else None,
    )
