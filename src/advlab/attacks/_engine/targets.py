"""Which class an attack drives its rows to."""

from typing import Annotated, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from ...core.errors import AdvlabError
from ...core.randomness import Rng, uniform
from ...losses import ModelLoss
from ..base import Scout
from .margins import classifies
from .objective import Climb, single

Class = Annotated[int, Field(ge=0)]
Targets = Literal["most_likely", "least_likely", "random"] | Class | tuple[Class, ...]
"""The most or least likely other classes, random others, one class for all rows, or one a row.

A target is a way to break a row: the scout still keeps what is worst by the loss it was given. To
have rows taken for a class, whatever else they could be taken for, attack that class as the label:
ModelLoss(model, wanted, lambda outputs, y: -margin(outputs, y))."""


def targets(
    which: Targets,
    outputs: Float[Tensor, "batch k"],
    y: Int[Tensor, " batch"],
    count: int,
    rng: Rng,
) -> Int[Tensor, "count batch"]:
    """At most `count` targets for each row, none its own label unless that was asked for.

    Classes named by the user are one target; rows of that very class gain nothing by it.
    """
    if isinstance(which, int | tuple):
        return _named(which, outputs)[None]
    scores = uniform(outputs, rng) if which == "random" else outputs.detach()
    if which == "least_likely":
        scores = -scores
    others = scores.scatter(1, y[:, None], float("-inf"))
    return others.topk(min(count, outputs.shape[1] - 1), dim=1).indices.T


def _named(which: int | tuple[int, ...], outputs: Float[Tensor, "batch k"]) -> Tensor:
    rows, classes = outputs.shape
    given = (which,) * rows if isinstance(which, int) else which
    if len(given) != rows or (rows and max(given) >= classes):
        raise AdvlabError(
            f"a target class below {classes} for each of {rows} rows",
            f"{len(given)}, the largest is {max(given, default=0)}",
        )
    return torch.tensor(given, dtype=torch.long, device=outputs.device)


def aims(
    which: Targets | None, scout: Scout, count: int, rng: Rng
) -> list[Int[Tensor, " batch"] | None]:
    """The targets to try one after the other; None stands for any other class.

    Between two classes, or where there are none, a target says nothing.
    """
    if which is None or not isinstance(scout.loss, ModelLoss):
        return [None]
    with torch.no_grad():
        outputs = scout.loss.outputs(scout.x)
    scout.forwards += len(scout.x)
    if not classifies(scout.loss, outputs) or single(outputs) or outputs.shape[1] == 2:
        return [None]
    return list(targets(which, outputs, scout.loss.y, count, rng))


def check_climb(climb: Climb, which: Targets | None) -> None:
    """A target needs a loss that knows classes."""
    if which is not None and climb == "given":
        raise AdvlabError(
            "a climb that knows classes, where there is a target",
            "climb='given'",
            "use 'cross_entropy', 'dlr' or 'margin'",
        )
