"""Which class an attack drives its rows to."""

from typing import Annotated, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from ...core.errors import AdvlabError
from ...core.randomness import Rng, uniform
from ...losses import ModelLoss
from ..base import BestSoFar
from .margins import classifies, single_output
from .objective import Objective, Target

Class = Annotated[int, Field(ge=0)]
Targets = Literal["most_likely", "least_likely", "random"] | Class | tuple[Class, ...]
"""The most or least likely other classes, random others, one class for all rows, or one per row.

A target is a way to break a row: what is kept is still the worst by the loss that was given. To
have rows taken for a class, whatever else they could be taken for, attack that class as the label:
ModelLoss(model, wanted, lambda outputs, y: -margin(outputs, y))."""


def target_classes(
    which: Targets,
    outputs: Float[Tensor, "batch k"],
    y: Int[Tensor, " batch"],
    count: int,
    rng: Rng,
) -> Int[Tensor, "count batch"]:
    """At most `count` targets per row, none its own label unless that was asked for.

    Classes named by the user are one target; rows of that very class gain nothing by it.

    Args:
        which: The rule, or classes.
        outputs: The scores at the clean inputs.
        y: The labels.
        count: How many targets; all other classes if there are fewer.
        rng: For random targets.
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


def choose_targets(which: Targets | None, best: BestSoFar, count: int, rng: Rng) -> list[Target]:
    """The targets to try one after the other; None stands for any other class.

    Between two classes, or where there are none, a target says nothing. Of many labels at once a
    target is the label that is to become wrong, those nearest to it first.
    """
    if which is None or not isinstance(best.loss, ModelLoss):
        return [None]
    with torch.no_grad():
        outputs = best.loss.outputs(best.x)
    best.forwards += len(best.x)
    two = outputs.ndim == 2 and outputs.shape[1] == 2 and best.loss.y.ndim == 1
    if not classifies(best.loss, outputs) or single_output(outputs) or two:
        return [None]
    if best.loss.y.ndim == 2 and not isinstance(which, int | tuple):
        gaps = (-best.loss.y * outputs).topk(min(count, outputs.shape[1]), dim=1)
        return list(gaps.indices.T)
    return list(target_classes(which, outputs, best.loss.y, count, rng))


def check_target(climb: Objective, which: Targets | None) -> None:
    """A target needs a loss that knows classes."""
    if which is not None and climb == "given":
        raise AdvlabError(
            "a climb that knows classes, where there is a target",
            "climb='given'",
            "use 'cross_entropy', 'dlr' or 'margin'",
        )
